#include "bindings/guards/renewal.hpp"

#include <unordered_set>

#include "bindings/guards/guards.hpp"
#include "bindings/guards/object_contents.hpp"
#include "bindings/interpreter/errors.hpp"
#include "bindings/interpreter/imports.hpp"
#include "bindings/sizes/size_log.hpp"
#include "bindings/tensor/tensor_object.hpp"

namespace backplane::python {
namespace {

constexpr size_t kMostObjects = 100'000;

// The objects that values lead to, as far as the run made them.
class Reached {
 public:
  explicit Reached(const std::function<bool(PyObject*)>& is_new) : is_new_(is_new) {
    shared = PyRef::steal(PyList_New(0));
    functions = PyRef::steal(PyList_New(0));
  }
  void go_from(PyObject* values) {
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(values); ++i) visit(PyList_GET_ITEM(values, i));
    while (!open_.empty()) {
      PyObject* one = open_.back();
      open_.pop_back();
      const auto next = [](PyObject* object, void* self) {
        static_cast<Reached*>(self)->visit(object);
        return 0;
      };
      if (PyFunction_Check(one)) {  // what else it leads to is its module's
        for (PyObject* part : {PyFunction_GetClosure(one), PyFunction_GetDefaults(one), PyFunction_GetKwDefaults(one),
                               reinterpret_cast<PyFunctionObject*>(one)->func_dict})
          if (part) visit(part);
      } else if (const traverseproc traverse = Py_TYPE(one)->tp_traverse) {
        traverse(one, next, this);
      }
    }
  }
  PyRef shared, functions;
  std::vector<Tensor> tensors;  // that are new
  std::string refusal;

 private:
  void visit(PyObject* object) {
    if (seen_.size() >= kMostObjects) refusal = "it stores too many objects";
    if (!refusal.empty() || (is_plain_value(object) && !is_followed(object)) || !seen_.insert(object).second) return;
    const bool is_new = !is_followed(object) && is_new_(object);
    if (PyType_Check(object) || PyWeakref_Check(object)) {
      if (is_new) refusal = PyType_Check(object) ? "it stores a class that it made" : "it stores a weak reference";
    } else if (PyCFunction_Check(object)) {
      PyObject* self = PyCFunction_GET_SELF(object);
      if (self && !PyModule_Check(self) && is_new_(self)) refusal = "it stores a method of an object that it made";
    } else if (!is_new) {
      PyList_Append(shared.get(), object);
    } else {
      if (PyFunction_Check(object)) PyList_Append(functions.get(), object);
      if (is_tensor(object))
        tensors.push_back(tensor_of(object));
      else
        open_.push_back(object);
    }
  }

  const std::function<bool(PyObject*)>& is_new_;
  std::vector<PyObject*> open_;  // borrowed of the values: no code of Python runs meanwhile
  std::unordered_set<PyObject*> seen_;
};

// [values, functions] anew, by backplane._graphs._renewal. Empty: a Python error.
PyRef copied(PyObject* values, PyObject* shared, PyObject* functions) {
  const PyRef module = imported_module("backplane._graphs._renewal");
  return PyRef::steal(module ? PyObject_CallMethod(module.get(), "renewed", "OOO", values, shared, functions)
                             : nullptr);
}

}  // namespace

std::string Renewal::keep(PyObject* values, const std::function<bool(PyObject*)>& is_new) {
  if (PyList_GET_SIZE(values) == 0) return "";
  Reached reached(is_new);
  reached.go_from(values);
  if (!reached.refusal.empty()) return reached.refusal;
  const PyRef both = copied(values, reached.shared.get(), reached.functions.get());
  forget_error();
  if (!both || !PyTuple_Check(both.get())) return "it stores or returns an object that cannot be copied";
  values_ = PyRef::borrow(PyTuple_GET_ITEM(both.get(), 0));
  functions_ = PyRef::borrow(PyTuple_GET_ITEM(both.get(), 1));
  shared_ = reached.shared;
  return "";
}

PyRef Renewal::renewed() const {
  const PyRef both = copied(values_.get(), shared_.get(), functions_.get());
  return both ? PyRef::borrow(PyTuple_GET_ITEM(both.get(), 0)) : PyRef{};
}

std::vector<Tensor> Renewal::tensors() const {
  if (is_empty()) return {};
  std::unordered_set<PyObject*> shared;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(shared_.get()); ++i) shared.insert(PyList_GET_ITEM(shared_.get(), i));
  const std::function<bool(PyObject*)> is_copy = [&](PyObject* object) { return !shared.contains(object); };
  Reached reached(is_copy);
  reached.go_from(values_.get());
  return std::move(reached.tensors);
}

int Renewal::traverse(visitproc visit, void* arg) const {
  for (const PyRef* list : {&values_, &shared_, &functions_}) Py_VISIT(list->get());
  return 0;
}

}  // namespace backplane::python

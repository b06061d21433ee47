// A function of Python as an argument of an op: five callables over flat lists of tensors; only the first must
// exist. Containers, static arguments and the user's conventions are _custom.py's.
//
// The callables run and end on whatever thread a transform runs or a graph ends on, with or without the interpreter
// lock.
#include "backplane/graph_function.hpp"

#include "backplane/operand.hpp"
#include "bindings/tensor/owned_objects.hpp"
#include "bindings/tensor/tensor_caster.hpp"
#include "bindings/transforms/bind_graph_function.hpp"

namespace backplane::python {
namespace {

namespace py = pybind11;

PyRef list_of(std::span<const Tensor> tensors) {
  PyRef list = PyRef::steal(PyList_New(static_cast<Py_ssize_t>(tensors.size())));
  for (size_t i = 0; list && i < tensors.size(); ++i) {
    PyObject* item = tensors[i] ? wrap_tensor(tensors[i]) : Py_NewRef(Py_None);
    if (!item) return {};
    PyList_SET_ITEM(list.get(), static_cast<Py_ssize_t>(i), item);
  }
  return list;
}

PyRef list_of(const std::vector<bool>& flags) {
  PyRef list = PyRef::steal(PyList_New(static_cast<Py_ssize_t>(flags.size())));
  for (size_t i = 0; list && i < flags.size(); ++i)
    PyList_SET_ITEM(list.get(), static_cast<Py_ssize_t>(i), PyBool_FromLong(flags[i]));
  return list;
}

// What _custom.py returns is a list of tensors and None.
std::vector<Tensor> tensors_of(PyObject* list) {
  std::vector<Tensor> tensors;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); ++i) {
    PyObject* item = PyList_GET_ITEM(list, i);
    tensors.push_back(item == Py_None ? Tensor() : tensor_of(item));
  }
  return tensors;
}

class PythonFunction final : public GraphFunction {
 public:
  PythonFunction(std::string name, bool recompute, PyObject* callables)
      : GraphFunction(std::move(name), recompute), callables_(held(PyRef::borrow(callables))) {
    for (size_t i = 0; i < kCount; ++i) has_[i] = PyTuple_GET_ITEM(callables, static_cast<Py_ssize_t>(i)) != Py_None;
  }

  bool has(Rule rule) const noexcept override {
    return rule == Rule::kBackward ? has_[kForward] && has_[kBackward] : rule == Rule::kJvp ? has_[kJvp] : has_[kBatch];
  }

  std::vector<Tensor> call(std::span<const Tensor> args) override {
    WithGil locked;
    return tensors_of(run(kCall, list_of(args)).get());
  }

  Forward forward(std::span<const Tensor> args) override {
    WithGil locked;
    PyRef found = run(kForward, list_of(args));
    return {tensors_of(PyTuple_GET_ITEM(found.get(), 0)),
            {tensors_of(PyTuple_GET_ITEM(found.get(), 1)), held(PyRef::borrow(PyTuple_GET_ITEM(found.get(), 2)))}};
  }

  std::vector<Tensor> backward(const Residuals& residuals, std::span<const Tensor> cotangents) override {
    WithGil locked;
    const auto* rest = static_cast<const HeldObject*>(residuals.rest.get());
    return tensors_of(
        run(kBackward, PyRef::borrow(rest->get()), list_of(residuals.tensors), list_of(cotangents)).get());
  }

  Duals jvp(std::span<const Tensor> primals, std::span<const Tensor> tangents) override {
    WithGil locked;
    PyRef found = run(kJvp, list_of(primals), list_of(tangents));
    return {tensors_of(PyTuple_GET_ITEM(found.get(), 0)), tensors_of(PyTuple_GET_ITEM(found.get(), 1))};
  }

  Batched batch(int64_t size, const std::vector<bool>& batched, std::span<const Tensor> args) override {
    WithGil locked;
    PyRef found = run(kBatch, PyRef::steal(PyLong_FromLongLong(size)), list_of(batched), list_of(args));
    PyObject* flags = PyTuple_GET_ITEM(found.get(), 1);
    Batched result{tensors_of(PyTuple_GET_ITEM(found.get(), 0)), {}};
    for (Py_ssize_t j = 0; j < PyList_GET_SIZE(flags); ++j)
      result.batched.push_back(PyList_GET_ITEM(flags, j) == Py_True);
    return result;
  }

  const std::shared_ptr<HeldObject>& callables() const noexcept { return callables_; }

 private:
  enum Callable { kCall, kForward, kBackward, kJvp, kBatch, kCount };

  // Throws with the Python error kept; needs the lock.
  template <class... Args>
  PyRef run(Callable which, const Args&... args) const {
    BP_CHECK(callables_->get(), NOT_IMPLEMENTED, name(), ": its functions were taken by the garbage collector");
    if ((args && ...)) {
      PyObject* array[] = {nullptr, args.get()...};
      PyObject* function = PyTuple_GET_ITEM(callables_->get(), which);
      PyRef result = PyRef::steal(
          PyObject_Vectorcall(function, array + 1, sizeof...(args) | PY_VECTORCALL_ARGUMENTS_OFFSET, nullptr));
      if (result) return result;
    }
    throw keep_python_error();
  }

  std::shared_ptr<HeldObject> callables_;  // a tuple, with None for a rule that it lacks
  bool has_[kCount];
};

py::list call_graph(const std::string& op, const std::string& name, bool recompute, py::tuple callables,
                    const std::vector<Tensor>& args) {
  use_context_settings();
  const auto function = std::make_shared<PythonFunction>(name, recompute, callables.ptr());
  const bp_value values[] = {value(*function), detail::borrow(Tensors(args))};
  bp_value out{};
  detail::call_results(detail::op_named(op.c_str()), values, &out, 1);
  py::list results;
  for (Tensor& result : detail::adopt_list(out)) {
    py::object object = py::cast(std::move(result));
    if (!object.is_none()) track_tensor(object.ptr());
    results.append(std::move(object));
  }
  return results;
}

}  // namespace

const std::shared_ptr<HeldObject>* callables_of(const GraphFunction& function) noexcept {
  const auto* ours = dynamic_cast<const PythonFunction*>(&function);
  return ours ? &ours->callables() : nullptr;
}

void bind_graph_function(py::module_& module) {
  module.def(
      "call_graph", &call_graph, py::arg("op"), py::arg("name"), py::arg("recompute"), py::arg("callables"),
      py::arg("args"),
      "Calls an op with a function: (call, forward, backward, jvp, batch) over lists of tensors, None for a rule "
      "that it lacks.");
}

}  // namespace backplane::python

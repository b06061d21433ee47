#include "bindings/guards/kept_tensors.hpp"

#include <unordered_map>
#include <vector>

#include "backplane/transforms.hpp"
#include "bindings/interpreter/errors.hpp"
#include "bindings/interpreter/imports.hpp"
#include "bindings/tensor/tensor_object.hpp"

namespace backplane::python {
namespace {

// Calls visit(held) for each object that the garbage collector sees in `object`, until it returns true.
template <class Visit>
bool any_held(PyObject* object, Visit visit) {
  const traverseproc traverse = Py_TYPE(object)->tp_traverse;
  const auto each = [](PyObject* held, void* to) { return (*static_cast<Visit*>(to))(held) ? 1 : 0; };
  return traverse && traverse(object, each, &visit) != 0;
}

PyRef all_objects() {
  const PyRef gc = imported_module("gc");
  PyRef all = PyRef::steal(gc ? PyObject_CallMethod(gc.get(), "get_objects", nullptr) : nullptr);
  forget_error();
  return all;
}

// These, the objects of `made` that hold one of them, and the objects of `made` that hold those.
Objects holders_among(const Objects& made, std::vector<PyObject*> held) {
  Objects all(held.begin(), held.end());
  std::unordered_map<PyObject*, std::vector<PyObject*>> holders;
  for (PyObject* holder : made)
    any_held(holder, [&](PyObject* one) {
      if (made.count(one) > 0 || all.count(one) > 0) holders[one].push_back(holder);
      return false;
    });
  while (!held.empty()) {
    PyObject* one = held.back();
    held.pop_back();
    for (PyObject* holder : holders[one])
      if (all.insert(holder).second) held.push_back(holder);
  }
  return all;
}

}  // namespace

PyRef keeper_of_traced(const Objects& made, const Objects& entered, const Objects& handed) {
  std::vector<PyObject*> left(entered.begin(), entered.end());
  for (PyObject* object : made)
    if (is_tensor(object) && is_transformed(tensor_of(object))) left.push_back(object);
  if (left.empty()) return {};
  const Objects leading = holders_among(made, std::move(left));
  const PyRef all = all_objects();
  for (Py_ssize_t i = 0; all && i < PyList_GET_SIZE(all.get()); ++i) {
    PyObject* object = PyList_GET_ITEM(all.get(), i);
    if (object == all.get() || made.count(object) > 0 || handed.count(object) > 0) continue;
    if (any_held(object, [&](PyObject* held) { return leading.count(held) > 0; })) return PyRef::borrow(object);
  }
  return {};
}

}  // namespace backplane::python

#include "bindings/guards/kept_tensors.hpp"

#include <unordered_map>
#include <vector>

#include "backplane/transforms.hpp"
#include "bindings/guards/object_contents.hpp"
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

PyRef keeper_of_traced(const Objects& made, const Objects& entered, const Objects& handed,
                       const std::vector<PyObject*>& roots) {
  std::vector<PyObject*> left;
  for (PyObject* object : made)
    if (is_tensor(object) && is_transformed(tensor_of(object))) left.push_back(object);
  if (left.empty() && entered.empty()) return {};
  const auto holds = [](PyObject* object, const Objects& wanted) {
    return any_held(object, [&](PyObject* held) { return wanted.count(held) > 0; });
  };
  const Objects own = holders_among(made, left);
  if (!left.empty())
    for (PyObject* object : handed)
      if (!is_tensor(object) && holds(object, own)) return PyRef::borrow(object);
  left.insert(left.end(), entered.begin(), entered.end());
  const Objects leading = holders_among(made, std::move(left));
  PyObject* found = nullptr;
  visit_contents(roots, [&](PyObject* object) {
    if (found || made.count(object) > 0 || handed.count(object) > 0) return false;
    if (!is_tensor(object) && holds(object, leading)) found = object;
    return !found;
  });
  return PyRef::borrow(found);
}

}  // namespace backplane::python

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

std::vector<PyObject*> traced_among(const Objects& made) {
  std::vector<PyObject*> traced;
  for (PyObject* object : made)
    if (is_tensor(object) && is_transformed(tensor_of(object))) traced.push_back(object);
  return traced;
}

PyRef keeper_of_traced(const std::vector<PyObject*>& left, const Objects& made, const Objects& entered,
                       const Objects& handed, const std::vector<PyObject*>& roots) {
  const auto holds = [](PyObject* object, const Objects& wanted) {
    return !is_tensor(object) && any_held(object, [&](PyObject* held) { return wanted.count(held) > 0; });
  };
  const Objects own = holders_among(made, left);
  if (!left.empty())
    for (PyObject* object : handed)
      if (holds(object, own)) return PyRef::borrow(object);
  std::vector<PyObject*> all = left;
  all.insert(all.end(), entered.begin(), entered.end());
  const Objects leading = holders_among(made, std::move(all));
  PyObject* found = nullptr;
  visit_contents(roots, [&](PyObject* object) {
    if (found || made.count(object) > 0 || handed.count(object) > 0) return false;
    if (holds(object, leading)) found = object;
    return !found;
  });
  return PyRef::borrow(found);
}

}  // namespace backplane::python

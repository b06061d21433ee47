#include "bindings/transforms/what_is_left.hpp"

#include <algorithm>

#include "bindings/interpreter/errors.hpp"
#include "bindings/transforms/object_contents.hpp"

namespace backplane::python {
namespace {

using Change = StateBefore::Change;

constexpr int kMostLevels = 4;  // of containers in containers that are replaced whole

class Left {
 public:
  Left(std::span<const Tensor> used, const char* transform) : used_(used), transform_(transform) {}

  void check(const std::vector<Change>& changes) const {
    const auto replaced = find(changes, [this](const Change& each) { return is_replaced(each); });
    const auto kept = find(changes, [](const Change& each) { return leads_to_traced(each.now.get()); });
    if (!replaced && !kept) return;
    for (const Change& each : changes)
      if ((each.had && is_tensor(each.had.get())) || is_replaced(each) || leads_to_traced(each.now.get()))
        each.put_back();
    if (PyErr_Occurred()) return;
    if (replaced)
      refuse_to_replace(replaced->place);
    else
      refuse_to_keep(kept->place);
  }

  void check(const Variable& variable, bool is_read) const {
    PyObject *had = variable.value.get(), *now = variable.found();
    if (!now || now == had) return;
    const std::string name =
        (variable.is_cell() ? "variable " : "global ") + spelled(variable.name.get(), PyObject_Str);
    if (is_read && is_replaced(had, now))
      refuse_to_replace(name);
    else if (leads_to_traced(now))
      refuse_to_keep(name);
    if (PyErr_Occurred()) variable.put_back();
  }

 private:
  template <class Is>
  static const Change* find(const std::vector<Change>& changes, Is is) {
    const auto found = std::find_if(changes.begin(), changes.end(), is);
    return found == changes.end() ? nullptr : &*found;
  }

  bool is_used(PyObject* tensor) const {
    return std::any_of(used_.begin(), used_.end(), [&](const Tensor& u) { return u.get() == handle_of(tensor); });
  }
  // A container that has got longer is one of notes.
  bool is_replaced(const Change& change) const {
    return change.had && change.of != Change::kElements && is_replaced(change.had.get(), change.now.get());
  }
  // Of containers that stand in each other's place: an element of theirs.
  bool is_replaced(PyObject* had, PyObject* now, int levels = kMostLevels) const {
    if (had == now || levels == 0) return false;
    if (is_tensor(had) || is_tensor(now)) return is_tensor(had) && is_tensor(now) && is_used(had);
    if (PyDict_Check(had) && PyDict_Check(now)) {
      PyObject *key = nullptr, *value = nullptr;
      for (Py_ssize_t at = 0; PyDict_Next(had, &at, &key, &value);)
        if (PyObject* other = PyDict_GetItem(now, key); other && is_replaced(value, other, levels - 1)) return true;
      return false;
    }
    const bool lists = PyList_Check(had) && PyList_Check(now), tuples = PyTuple_Check(had) && PyTuple_Check(now);
    if (!lists && !tuples) return false;
    const Py_ssize_t size = std::min(PySequence_Fast_GET_SIZE(had), PySequence_Fast_GET_SIZE(now));
    for (Py_ssize_t i = 0; i < size; ++i)
      if (is_replaced(PySequence_Fast_GET_ITEM(had, i), PySequence_Fast_GET_ITEM(now, i), levels - 1)) return true;
    return false;
  }

  void refuse_to_replace(const std::string& what) const {
    raise(BP_ERROR_VALUE,
          "%s: the function replaces %s, which it reads, by another tensor: later calls would read the first one "
          "again. Fix: change it in place, as in x[...] = value, or give it as an argument and return the new one",
          transform_, what.c_str());
  }
  void refuse_to_keep(const std::string& what) const {
    raise(BP_ERROR_VALUE,
          "%s: the function keeps a tensor in %s that has no value: it is one of the trace, which runs once and then "
          "ends. Fix: return the tensor, and keep what the call gives; or write it into a tensor that is there before, "
          "as in x[...] = value",
          transform_, what.c_str());
  }

  std::span<const Tensor> used_;
  const char* transform_;
};

}  // namespace

bool check_what_is_left(const StateBefore& state, const NamesOfRun& names, std::span<const Tensor> used,
                        const char* transform) {
  const Left left(used, transform);
  const std::vector<const Variable*> read = names.variables_read();
  left.check(state.changes());
  for (const Variable* variable : names.variables())
    if (!PyErr_Occurred()) left.check(*variable, std::find(read.begin(), read.end(), variable) != read.end());
  return !PyErr_Occurred();
}

void take_back_what_is_left(const StateBefore& state, const NamesOfRun& names) {
  PyObject *type = nullptr, *value = nullptr, *trail = nullptr;
  PyErr_Fetch(&type, &value, &trail);
  for (const Change& each : state.changes())
    if (leads_to_traced(each.now.get())) each.put_back();
  for (const Variable* variable : names.variables()) {
    PyObject* now = variable->found();
    if (now && now != variable->value.get() && leads_to_traced(now)) variable->put_back();
  }
  forget_error();
  PyErr_Restore(type, value, trail);
}

}  // namespace backplane::python

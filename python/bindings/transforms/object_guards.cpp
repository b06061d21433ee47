#include "bindings/transforms/object_guards.hpp"

#include <algorithm>
#include <unordered_set>

#include "backplane/device.hpp"
#include "backplane/transforms.hpp"
#include "bindings/interpreter/errors.hpp"
#include "bindings/tensor/tensor_object.hpp"
#include "bindings/transforms/static_values.hpp"
#include "bindings/transforms/transform_values.hpp"

namespace backplane::python {
namespace {

constexpr size_t kMostWatches = 4096;

bool is_value(PyObject* object) noexcept {
  return object == Py_None || PyBool_Check(object) || PyLong_Check(object) || PyFloat_Check(object) ||
         PyComplex_Check(object) || PyUnicode_Check(object) || PyBytes_Check(object);
}

}  // namespace

// ---- tensors ---------------------------------------------------------------------------------------------------

bool ObjectGuards::Form::is_of(const bp_tensor& found) const {
  if (tensor) return &found == tensor;
  return found.dtype == dtype && found.backend == device.backend && found.ordinal == device.ordinal &&
         std::equal(shape.begin(), shape.end(), found.dl.shape, found.dl.shape + found.dl.ndim);
}

std::string ObjectGuards::Form::text() const {
  return std::string(dtype_name(dtype)) + " of shape " + shape_text(shape) + " on " + device_name(device);
}

// ---- what is looked at -----------------------------------------------------------------------------------------

class ObjectGuards::Walk {
 public:
  Walk(std::vector<Watch>& watches, const NamesOfRun& names, std::span<const Tensor> used, const char* transform)
      : watches_(watches), names_(names), used_(used), transform_(transform) {}

  // State that the function replaces: no later call would see that.
  void check_state(const StateBefore& state) {
    const std::vector<StateBefore::Replaced> all = state.replaced();
    const auto first = std::find_if(all.begin(), all.end(), [this](const StateBefore::Replaced& each) {
      return is_replaced(each.had.get(), each.now.get());
    });
    if (first == all.end()) return;
    for (const StateBefore::Replaced& each : all)
      if (is_tensor(each.had.get()) || is_replaced(each.had.get(), each.now.get())) each.put_back();
    if (!PyErr_Occurred()) refuse(first->place);
  }
  void check_variable(const Variable& variable) {
    PyObject* had = variable.value.get();
    if (!is_replaced(had, variable.found())) return;
    refuse((variable.is_cell() ? "variable " : "global ") + spelled(variable.name.get(), PyObject_Str));
    variable.put_back();
  }

  void object(PyObject* object, const std::string& path, PyObject* before) {
    const PyRef dict = attributes_of(object), slots = slots_of(object);
    if (!(dict || slots) || !is_new(object)) return;
    if (slots) attributes({Watch::kSlots, PyRef::borrow(object), -1, path + ".", {}}, slots.get(), before);
    if (!dict) return;
    Watch own{Watch::kDict, dict, -1, path + ".", {}}, of_class{Watch::kType, {}, -1, path + ".", {}};
    of_class.holder = PyRef::borrow(reinterpret_cast<PyObject*>(Py_TYPE(object)));
    class_attributes(Py_TYPE(object), dict.get(), own, of_class);
    attributes(std::move(own), dict.get(), before);
    keep(std::move(of_class));
  }

  // As it was before the trace, which may have changed it.
  void variable(const Variable& variable) {
    PyObject* value = variable.found();
    if (!value || value != variable.value.get()) return;
    Watch own{variable.is_cell() ? Watch::kCell : Watch::kGlobal, variable.holder, -1, "", {}};
    own.items.push_back(item(variable.name.get(), value));
    const std::string path = place(own, own.items[0]);
    keep(std::move(own));
    if (!is_tensor(value)) descend(value, path, variable.before.get());
  }

  // Watches of what the newest ones lead to.
  void go_on() {
    for (; next_ < watches_.size() && watches_.size() < kMostWatches; ++next_) {
      std::vector<std::pair<PyRef, std::string>> inner;
      for (const Item& i : watches_[next_].items)
        if (i.value) inner.emplace_back(i.value, place(watches_[next_], i));
      for (const auto& [value, path] : inner) descend(value.get(), path, nullptr);
    }
  }

  static std::string place(const Watch& watch, const Item& i) {
    if (watch.kind == Watch::kGlobal) return "global " + spelled(i.key.get(), PyObject_Str);
    if (watch.kind == Watch::kCell) return "variable " + spelled(i.key.get(), PyObject_Str);
    const bool attribute = watch.path.back() == '.';
    return watch.path + (attribute ? spelled(i.key.get(), PyObject_Str) : "[" + spelled(i.key.get()) + "]");
  }

 private:
  bool is_new(PyObject* object) { return seen_.insert(object).second; }

  void attributes(Watch watch, PyObject* found, PyObject* before) {
    PyObject *name = nullptr, *value = nullptr;
    for (Py_ssize_t at = 0; PyDict_Next(found, &at, &name, &value);) {
      if (!names_.has(name) || (before && PyDict_GetItem(before, name) != value)) continue;
      watch.items.push_back(item(name, value));
    }
    keep(std::move(watch));
  }

  void keep(Watch watch) {
    if (!watch.items.empty() || watch.size >= 0) watches_.push_back(std::move(watch));
  }

  bool is_used(PyObject* tensor) const {
    return std::any_of(used_.begin(), used_.end(), [&](const Tensor& u) { return u.get() == handle_of(tensor); });
  }
  bool is_replaced(PyObject* had, PyObject* now) const { return had && now && is_replaced(had, now, 4); }
  // Of containers that stand in each other's place: an element of theirs. `levels`: to look at.
  bool is_replaced(PyObject* had, PyObject* now, int levels) const {
    if (had == now || levels == 0) return false;
    if (is_tensor(had) || is_tensor(now)) return is_tensor(had) && is_tensor(now) && is_used(had);
    if (PyDict_Check(had) && PyDict_Check(now)) {
      PyObject *key = nullptr, *value = nullptr;
      for (Py_ssize_t at = 0; PyDict_GET_SIZE(had) <= kMostElements && PyDict_Next(had, &at, &key, &value);)
        if (PyObject* other = PyDict_GetItem(now, key); other && is_replaced(value, other, levels - 1)) return true;
      return false;
    }
    const bool lists = PyList_Check(had) && PyList_Check(now), tuples = PyTuple_Check(had) && PyTuple_Check(now);
    if (!lists && !tuples) return false;
    const Py_ssize_t size = std::min({PySequence_Fast_GET_SIZE(had), PySequence_Fast_GET_SIZE(now), kMostElements});
    for (Py_ssize_t i = 0; i < size; ++i)
      if (is_replaced(PySequence_Fast_GET_ITEM(had, i), PySequence_Fast_GET_ITEM(now, i), levels - 1)) return true;
    return false;
  }
  void refuse(const std::string& what) const {
    raise(BP_ERROR_VALUE,
          "%s: the function replaces %s, which it reads, by another tensor: later calls would read the first one "
          "again. Fix: change it in place, as in x[...] = value, or give it as an argument and return the new one",
          transform_, what.c_str());
  }

  Item item(PyObject* key, PyObject* value) const {
    if (!is_tensor(value)) return {PyRef::borrow(key), PyRef::borrow(value), {}};
    const Tensor t = tensor_of(value);
    return {PyRef::borrow(key),
            {},
            Form{is_used(value) ? t.get() : nullptr, t.dtype(), t.device(), {t.shape().begin(), t.shape().end()}}};
  }

  // What stands in the class, and is read where the object has none of its own.
  void class_attributes(PyTypeObject* type, PyObject* dict, Watch& own, Watch& of_class) {
    PyRef mro = PyRef::borrow(type->tp_mro);
    for (Py_ssize_t k = 0; mro && k < PyTuple_GET_SIZE(mro.get()); ++k) {
      auto* base = reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(mro.get(), k));
      if (!PyType_HasFeature(base, Py_TPFLAGS_HEAPTYPE)) continue;
      PyRef all = PyRef::steal(PyObject_GetAttrString(reinterpret_cast<PyObject*>(base), "__dict__"));
      PyRef names = PyRef::steal(all ? PySequence_List(all.get()) : nullptr);
      for (Py_ssize_t i = 0; names && i < PyList_GET_SIZE(names.get()); ++i) {
        PyObject* name = PyList_GET_ITEM(names.get(), i);
        PyObject* value = names_.has(name) ? _PyType_Lookup(type, name) : nullptr;
        if (!value || PyDict_GetItem(dict, name)) continue;
        own.items.push_back({PyRef::borrow(name), {}, {}});
        of_class.items.push_back(item(name, value));
      }
      PyErr_Clear();
    }
  }

  // `before`, if given: only what is still as it was there.
  void descend(PyObject* value, const std::string& path, PyObject* before) {
    if (PyDict_Check(value) && is_new(value)) {
      Watch watch{Watch::kDict, PyRef::borrow(value), PyDict_GET_SIZE(value), path, {}};
      if (before && PyDict_GET_SIZE(before) != watch.size) watch.size = -1;
      PyObject *key = nullptr, *inner = nullptr;
      const bool is_short = PyDict_GET_SIZE(value) <= kMostElements;
      for (Py_ssize_t at = 0; is_short && PyDict_Next(value, &at, &key, &inner);)
        if (!before || PyDict_GetItem(before, key) == inner) watch.items.push_back(item(key, inner));
      keep(std::move(watch));
    } else if ((PyList_Check(value) || PyTuple_Check(value)) && is_new(value)) {
      const Py_ssize_t size = PySequence_Fast_GET_SIZE(value);
      if (PyTuple_Check(value)) before = nullptr;  // that of its attributes, where a subclass has any
      Watch watch{Watch::kList, PyRef::borrow(value), size, path, {}};
      // One that the trace appends to is a list of notes, not an input.
      if (before && PyList_GET_SIZE(before) != size) return;
      for (Py_ssize_t i = 0; size <= kMostElements && i < size; ++i) {
        PyObject* inner = PySequence_Fast_GET_ITEM(value, i);
        PyRef key = PyRef::steal(PyLong_FromSsize_t(i));
        if (key && (!before || PyList_GET_ITEM(before, i) == inner)) watch.items.push_back(item(key.get(), inner));
      }
      keep(std::move(watch));
    } else {
      object(value, path, before);
      for (const PyRef& part : parts_of_callable(value)) object(part.get(), path, nullptr);
    }
  }

  std::vector<Watch>& watches_;
  const NamesOfRun& names_;
  std::span<const Tensor> used_;
  const char* transform_;
  std::unordered_set<PyObject*> seen_;
  size_t next_ = 0;
};

void ObjectGuards::add(PyObject* object, std::string name) {
  if (PyDict_Check(object) || PyList_Check(object)) return;  // part of an argument's structure
  state_.note(object, name);
  std::vector<PyRef> parts = parts_of_callable(object);
  parts.push_back(PyRef::borrow(object));
  for (const PyRef& part : parts) {
    const auto is_it = [&](const Root& root) { return root.object.get() == part.get(); };
    if (PyDict_Check(part.get()) || PyList_Check(part.get()) || std::any_of(roots_.begin(), roots_.end(), is_it))
      continue;
    if (PyRef before = snapshot_of(part.get())) roots_.push_back({part, std::move(before), name});
  }
}

bool ObjectGuards::close(const NamesOfRun& names, bool guards_variables, std::span<const Tensor> used,
                         const char* transform) {
  Walk walk(watches_, names, used, transform);
  walk.check_state(state_);
  state_ = {};
  if (!PyErr_Occurred())
    for (const Variable* variable : names.variables_read()) walk.check_variable(*variable);
  if (PyErr_Occurred()) return false;
  for (const Root& root : roots_) walk.object(root.object.get(), root.name, root.before.get());
  if (guards_variables)
    for (const Variable* variable : names.variables_read()) walk.variable(*variable);
  walk.go_on();
  roots_.clear();
  return !PyErr_Occurred();
}

void ObjectGuards::put_back(const NamesOfRun& names) const {
  const auto is_traced = [](PyObject* now) { return now && is_tensor(now) && is_transformed(tensor_of(now)); };
  PyObject *type = nullptr, *value = nullptr, *trail = nullptr;
  PyErr_Fetch(&type, &value, &trail);
  for (const StateBefore::Replaced& each : state_.replaced())
    if (is_traced(each.now.get())) each.put_back();
  for (const Variable* variable : names.variables_read())
    if (variable->found() != variable->value.get() && is_traced(variable->found())) variable->put_back();
  PyErr_Clear();
  PyErr_Restore(type, value, trail);
}

// ---- a call ----------------------------------------------------------------------------------------------------

int ObjectGuards::fit(const Watch& watch, const Item& item, std::string* why) const {
  PyObject* found = nullptr;  // borrowed
  PyRef of_slot;
  switch (watch.kind) {
    case Watch::kCell:
      found = PyCell_GET(watch.holder.get());
      break;
    case Watch::kGlobal:
    case Watch::kDict:
      found = PyDict_GetItemWithError(watch.holder.get(), item.key.get());
      if (!found && PyErr_Occurred()) return -1;
      break;
    case Watch::kList: {
      const Py_ssize_t i = PyLong_AsSsize_t(item.key.get());
      if (i < PySequence_Fast_GET_SIZE(watch.holder.get())) found = PySequence_Fast_GET_ITEM(watch.holder.get(), i);
      break;
    }
    case Watch::kSlots:
      of_slot = PyRef::steal(PyObject_GenericGetAttr(watch.holder.get(), item.key.get()));
      if (!of_slot) PyErr_Clear();
      found = of_slot.get();
      break;
    case Watch::kType:
      found = _PyType_Lookup(reinterpret_cast<PyTypeObject*>(watch.holder.get()), item.key.get());
  }
  const PyRef held = PyRef::borrow(found);  // a comparison may run code that lets go of it
  const bp_tensor* tensor = found && is_tensor(found) ? handle_of(found) : nullptr;
  int same = 0;
  if (item.tensor || tensor)
    same = item.tensor && tensor && item.tensor->is_of(*tensor);
  else if (found == item.value.get())
    same = 1;
  else if (found && item.value && is_value(found) && is_value(item.value.get()))
    same = same_static(item.value.get(), found);
  if (same != 0 || !why) return same;
  *why = Walk::place(watch, item) + ": found " +
         (tensor  ? "another tensor"
          : found ? spelled(found)
                  : "none") +
         ", had " +
         (item.tensor  ? "a tensor, " + item.tensor->text()
          : item.value ? spelled(item.value.get())
                       : "none");
  return 0;
}

int ObjectGuards::fit(std::string* why) const {
  for (const Watch& watch : watches_) {
    const Py_ssize_t size = watch.kind == Watch::kDict   ? PyDict_GET_SIZE(watch.holder.get())
                            : watch.kind == Watch::kList ? PySequence_Fast_GET_SIZE(watch.holder.get())
                                                         : -1;
    if (watch.size >= 0 && size != watch.size) {
      if (why) *why = watch.path + ": found " + std::to_string(size) + " elements, had " + std::to_string(watch.size);
      return 0;
    }
    for (const Item& item : watch.items)
      if (const int same = fit(watch, item, why); same != 1) return same;
  }
  return 1;
}

int ObjectGuards::traverse(visitproc visit, void* arg) const {
  for (const Watch& watch : watches_) {
    Py_VISIT(watch.holder.get());
    for (const Item& item : watch.items) {
      Py_VISIT(item.key.get());
      Py_VISIT(item.value.get());
    }
  }
  return 0;
}

}  // namespace backplane::python

#include "bindings/transforms/object_guards.hpp"

#include <algorithm>
#include <cstring>
#include <unordered_set>

#include "backplane/autograd.hpp"
#include "backplane/device.hpp"
#include "bindings/interpreter/errors.hpp"
#include "bindings/tensor/tensor_object.hpp"
#include "bindings/transforms/object_contents.hpp"
#include "bindings/transforms/static_values.hpp"
#include "bindings/transforms/transform_values.hpp"
#include "bindings/transforms/what_is_left.hpp"

namespace backplane::python {
namespace {

constexpr size_t kMostWatches = 4096;
// Of a container whose elements are looked at one by one. A longer one is compared as a whole: which objects it holds.
constexpr Py_ssize_t kMostElements = 1024;

bool is_value(PyObject* object) noexcept {
  return object == Py_None || PyBool_Check(object) || PyLong_Check(object) || PyFloat_Check(object) ||
         PyComplex_Check(object) || PyUnicode_Check(object) || PyBytes_Check(object);
}

// A new list of all that a container holds: of a dict the keys, then the values.
PyRef listed(PyObject* container) {
  if (!PyDict_Check(container)) return copied_elements(container);
  const PyRef keys = PyRef::steal(PyDict_Keys(container)), values = PyRef::steal(PyDict_Values(container));
  PyRef both = PyRef::steal(keys && values ? PySequence_Concat(keys.get(), values.get()) : nullptr);
  forget_error();
  return both;
}

bool same_object(PyObject* own, PyObject* found) {
  return own == found || (is_value(own) && is_value(found) && same_static(own, found) == 1);
}

// Does the container hold what is listed? Objects that are no values are the same alone. A dict and a list are read in
// place: a copy would touch every object that they hold.
bool holds_listed(PyObject* list, PyObject* container) {
  const Py_ssize_t size = PyList_GET_SIZE(list);
  if (PyDict_Check(container)) {
    const Py_ssize_t count = PyDict_GET_SIZE(container);
    PyObject *key = nullptr, *value = nullptr;
    bool same = 2 * count == size;
    for (Py_ssize_t at = 0, i = 0; same && PyDict_Next(container, &at, &key, &value); ++i)
      same = same_object(PyList_GET_ITEM(list, i), key) && same_object(PyList_GET_ITEM(list, count + i), value);
    return same;
  }
  const bool in_place = PyList_Check(container) || PyTuple_Check(container);
  const PyRef elements = in_place ? PyRef::borrow(container) : copied_elements(container);
  bool same = elements && PySequence_Fast_GET_SIZE(elements.get()) == size;
  for (Py_ssize_t i = 0; same && i < size; ++i)
    same = same_object(PyList_GET_ITEM(list, i), PySequence_Fast_GET_ITEM(elements.get(), i));
  return same;
}

bool holds_bytes(PyObject* bytes, PyObject* buffer) {
  const PyRef now = bytes_of_buffer(buffer);
  return now && PyBytes_GET_SIZE(bytes) == PyBytes_GET_SIZE(now.get()) &&
         std::memcmp(PyBytes_AS_STRING(bytes), PyBytes_AS_STRING(now.get()),
                     static_cast<size_t>(PyBytes_GET_SIZE(bytes))) == 0;
}

}  // namespace

// ---- tensors ---------------------------------------------------------------------------------------------------

bool ObjectGuards::Form::is_of(const Tensor& found) const {
  if (backplane::requires_grad(found) != requires_grad) return false;
  if (tensor) return found.get() == tensor && (!read || version_of(found) == read->version);
  const Shape sizes = found.shape();
  return found.dtype() == dtype && found.get()->backend == device.backend && found.get()->ordinal == device.ordinal &&
         std::equal(shape.begin(), shape.end(), sizes.begin(), sizes.end());
}

const char* ObjectGuards::Form::other(const Tensor& found) const {
  if (backplane::requires_grad(found) != requires_grad)
    return requires_grad ? "a tensor without requires_grad" : "a tensor with requires_grad";
  return found.get() == tensor ? "other values" : "another tensor";
}

std::string ObjectGuards::Form::text() const {
  return std::string(dtype_name(dtype)) + " of shape " + shape_text(shape) + " on " + device_name(device);
}

// ---- what is looked at -----------------------------------------------------------------------------------------

class ObjectGuards::Walk {
 public:
  Walk(std::vector<Watch>& watches, const NamesOfRun& names, std::span<const Tensor> used,
       std::span<const TensorRead> reads)
      : watches_(watches), names_(names), used_(used), reads_(reads) {}

  // `before`, if given, a snapshot_of(value): only what is still as it was there.
  void descend(PyObject* value, const std::string& path, PyObject* before) {
    if (is_value(value) || is_tensor(value) || !is_new(value)) return;
    if (is_buffer(value))
      watches_.push_back({Watch::kBuffer, PyRef::borrow(value), -1, path, {}, bytes_of_buffer(value)});
    const bool has_elements = is_container(value);
    if (has_elements) elements(value, path, before);
    object(value, path, has_elements ? nullptr : before);
    for (const PyRef& part : parts_of_callable(value)) descend(part.get(), path, nullptr);
  }

  // As it was before the trace, which may have changed it.
  void variable(const Variable& variable) {
    PyObject* value = variable.found();
    if (!value || value != variable.value.get()) return;
    Watch own{variable.is_cell() ? Watch::kCell : Watch::kGlobal, variable.holder, -1, "", {}, {}};
    own.items.push_back(item(variable.name.get(), value));
    const std::string path = place(own, own.items[0]);
    keep(std::move(own));
    descend(value, path, variable.before.get());
  }

  // Watches of what the newest ones lead to.
  void go_on() {
    for (; next_ < watches_.size() && watches_.size() < kMostWatches; ++next_) {
      Parts inner;
      for (const Item& i : watches_[next_].items)
        if (i.value) inner.emplace_back(i.value, place(watches_[next_], i));
      if (watches_[next_].kind == Watch::kWhole) parts_of_whole(watches_[next_], inner);
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
  using Parts = std::vector<std::pair<PyRef, std::string>>;

  static void parts_of_whole(const Watch& watch, Parts& parts) {
    const Py_ssize_t size = PyList_GET_SIZE(watch.whole.get()), keys = PyDict_Check(watch.holder.get()) ? size / 2 : 0;
    for (Py_ssize_t i = keys; i < size; ++i) {
      PyObject* part = PyList_GET_ITEM(watch.whole.get(), i);
      if (is_value(part) || is_tensor(part)) continue;
      const std::string at = keys ? spelled(PyList_GET_ITEM(watch.whole.get(), i - keys)) : std::to_string(i);
      parts.emplace_back(PyRef::borrow(part), watch.path + "[" + at + "]");
    }
  }

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

  Item item(PyObject* key, PyObject* value) const {
    if (!is_tensor(value)) return {PyRef::borrow(key), PyRef::borrow(value), {}};
    const Tensor t = tensor_of(value);
    const auto read =
        std::find_if(reads_.begin(), reads_.end(), [&](const TensorRead& r) { return r.tensor.get() == t.get(); });
    Form form{nullptr, {}, requires_grad(t), t.dtype(), t.device(), {t.shape().begin(), t.shape().end()}};
    if (read != reads_.end()) form.read = *read;
    if (form.read || is_used(value)) form.tensor = t.get();
    return {PyRef::borrow(key), {}, std::move(form)};
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
      forget_error();
    }
  }

  void elements(PyObject* holder, const std::string& path, PyObject* before) {
    const bool is_dict = PyDict_Check(holder), is_list = PyList_Check(holder) || PyTuple_Check(holder);
    const Py_ssize_t size = is_dict ? PyDict_GET_SIZE(holder) : is_list ? PySequence_Fast_GET_SIZE(holder) : -1;
    if (size < 0 || size > kMostElements) {
      PyRef all = listed(holder);
      if (all && (!before || hold_the_same(listed(before).get(), all.get())))
        watches_.push_back({Watch::kWhole, PyRef::borrow(holder), -1, path, {}, std::move(all)});
      return;
    }
    Watch watch{is_dict ? Watch::kDict : Watch::kList, PyRef::borrow(holder), size, path, {}, {}};
    if (is_dict) {
      if (before && PyDict_GET_SIZE(before) != size) watch.size = -1;
      PyObject *key = nullptr, *inner = nullptr;
      for (Py_ssize_t at = 0; PyDict_Next(holder, &at, &key, &inner);)
        if (!before || PyDict_GetItem(before, key) == inner) watch.items.push_back(item(key, inner));
    } else {
      // One that the trace appends to is a list of notes, not an input.
      if (before && PyList_GET_SIZE(before) != size) return;
      for (Py_ssize_t i = 0; i < size; ++i) {
        PyObject* inner = PySequence_Fast_GET_ITEM(holder, i);
        PyRef key = PyRef::steal(PyLong_FromSsize_t(i));
        if (key && (!before || PyList_GET_ITEM(before, i) == inner)) watch.items.push_back(item(key.get(), inner));
      }
    }
    keep(std::move(watch));
  }

  void object(PyObject* object, const std::string& path, PyObject* before) {
    const PyRef dict = attributes_of(object), slots = slots_of(object);
    if (slots) attributes({Watch::kSlots, PyRef::borrow(object), -1, path + ".", {}, {}}, slots.get(), before);
    if (!dict) return;
    Watch own{Watch::kDict, dict, -1, path + ".", {}, {}}, of_class{Watch::kType, {}, -1, path + ".", {}, {}};
    of_class.holder = PyRef::borrow(reinterpret_cast<PyObject*>(Py_TYPE(object)));
    class_attributes(Py_TYPE(object), dict.get(), own, of_class);
    // Where the code asks whether there is an attribute, one more is a change.
    const bool as_before = !before || PyDict_GET_SIZE(before) == PyDict_GET_SIZE(dict.get());
    if (names_.asks_for_attributes() && as_before) own.size = PyDict_GET_SIZE(dict.get());
    attributes(std::move(own), dict.get(), before);
    keep(std::move(of_class));
  }

  std::vector<Watch>& watches_;
  const NamesOfRun& names_;
  std::span<const Tensor> used_;
  std::span<const TensorRead> reads_;
  std::unordered_set<PyObject*> seen_;
  size_t next_ = 0;
};

void ObjectGuards::add(PyObject* object, std::string name) {
  if (is_value(object)) return;
  state_.note(object, name);
  std::vector<PyRef> parts = parts_of_callable(object);
  parts.push_back(PyRef::borrow(object));
  for (const PyRef& part : parts) {
    const auto is_it = [&](const Root& root) { return root.object.get() == part.get(); };
    if (std::none_of(roots_.begin(), roots_.end(), is_it)) roots_.push_back({part, snapshot_of(part.get()), name});
  }
}

bool ObjectGuards::close(const NamesOfRun& names, bool guards_variables, std::span<const Tensor> used,
                         std::span<const TensorRead> reads, const char* transform) {
  if (!check_what_is_left(state_, names, used, transform)) return false;
  state_ = {};
  Walk walk(watches_, names, used, reads);
  for (const Root& root : roots_) walk.descend(root.object.get(), root.name, root.before.get());
  if (guards_variables)
    for (const Variable* variable : names.variables_read()) walk.variable(*variable);
  walk.go_on();
  roots_.clear();
  return !PyErr_Occurred();
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
      if (!of_slot) forget_error();
      found = of_slot.get();
      break;
    case Watch::kType:
      found = _PyType_Lookup(reinterpret_cast<PyTypeObject*>(watch.holder.get()), item.key.get());
      break;
    case Watch::kWhole:
    case Watch::kBuffer:
      break;  // no items
  }
  const PyRef held = PyRef::borrow(found);  // a comparison may run code that lets go of it
  const bool is_one = found && is_tensor(found);
  int same = 0;
  if (item.tensor || is_one)
    same = item.tensor && is_one && item.tensor->is_of(BorrowedTensor(found).get());
  else if (found == item.value.get())
    same = 1;
  else if (found && item.value && is_value(found) && is_value(item.value.get()))
    same = same_static(item.value.get(), found);
  if (same != 0 || !why) return same;
  *why = Walk::place(watch, item) + ": found " +
         (is_one  ? item.tensor ? item.tensor->other(BorrowedTensor(found).get()) : "a tensor"
          : found ? spelled(found)
                  : "none") +
         ", had " +
         (item.tensor  ? "a tensor, " + item.tensor->text()
          : item.value ? spelled(item.value.get())
                       : "none");
  return 0;
}

int ObjectGuards::fit(const Watch& watch, std::string* why) const {
  PyObject* holder = watch.holder.get();
  if (watch.whole) {
    const bool same =
        watch.kind == Watch::kBuffer ? holds_bytes(watch.whole.get(), holder) : holds_listed(watch.whole.get(), holder);
    if (!same && why) *why = watch.path + ": found other elements";
    return same;
  }
  const Py_ssize_t size = watch.kind == Watch::kDict   ? PyDict_GET_SIZE(holder)
                          : watch.kind == Watch::kList ? PySequence_Fast_GET_SIZE(holder)
                                                       : -1;
  if (watch.size >= 0 && size != watch.size) {
    if (why) *why = watch.path + ": found " + std::to_string(size) + " elements, had " + std::to_string(watch.size);
    return 0;
  }
  for (const Item& item : watch.items)
    if (const int same = fit(watch, item, why); same != 1) return same;
  if (watch.kind != Watch::kDict || watch.size != static_cast<Py_ssize_t>(watch.items.size())) return 1;
  const int same = same_order(watch);
  if (same == 0 && why) *why = watch.path + ": found the entries in another order";
  return same;
}

// The function may go through a dict.
int ObjectGuards::same_order(const Watch& watch) {
  PyObject* key = nullptr;
  Py_ssize_t at = 0;
  for (const Item& item : watch.items) {
    if (!PyDict_Next(watch.holder.get(), &at, &key, nullptr)) return 0;
    const PyRef held = PyRef::borrow(key);  // a comparison may run code that lets go of it
    if (const int same = PyObject_RichCompareBool(key, item.key.get(), Py_EQ); same != 1) return same;
  }
  return 1;
}

int ObjectGuards::fit(std::string* why) const {
  for (const Watch& watch : watches_)
    if (const int same = fit(watch, why); same != 1) return same;
  return 1;
}

int ObjectGuards::traverse(visitproc visit, void* arg) const {
  for (const Watch& watch : watches_) {
    Py_VISIT(watch.holder.get());
    Py_VISIT(watch.whole.get());
    for (const Item& item : watch.items) {
      Py_VISIT(item.key.get());
      Py_VISIT(item.value.get());
    }
  }
  return 0;
}

}  // namespace backplane::python

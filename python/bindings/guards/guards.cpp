#include "bindings/guards/guards.hpp"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "bindings/guards/class_protocols.hpp"
#include "bindings/guards/object_contents.hpp"
#include "bindings/guards/static_values.hpp"
#include "bindings/interpreter/errors.hpp"
#include "bindings/interpreter/python_types.hpp"
#include "bindings/sizes/number_log.hpp"
#include "bindings/tensor/dtype_device.hpp"
#include "bindings/tensor/tensor_object.hpp"

namespace backplane::python {
namespace {

bool is_ordered(PyObject* object) noexcept { return PyODict_Check(object); }

PyRef listed_dict(PyObject* dict) {
  if (is_ordered(dict)) {  // whose order is not that of the dict below
    const PyRef keys = PyRef::steal(PySequence_List(dict));
    PyRef both = keys;
    for (Py_ssize_t i = 0, count = keys ? PyList_GET_SIZE(keys.get()) : 0; i < count; ++i)
      PyList_Append(both.get(), PyDict_GetItem(dict, PyList_GET_ITEM(keys.get(), i)));
    return both;
  }
  const PyRef keys = PyRef::steal(PyDict_Keys(dict)), values = PyRef::steal(PyDict_Values(dict));
  return PyRef::steal(keys && values ? PySequence_Concat(keys.get(), values.get()) : nullptr);
}

bool same_list(PyObject* list, PyObject* const* found, Py_ssize_t count) {
  if (PyList_GET_SIZE(list) != count) return false;
  for (Py_ssize_t i = 0; i < count; ++i)
    if (!same_value(PyList_GET_ITEM(list, i), found[i])) return false;
  return true;
}

// A dict, a list and a tuple are read in place: a copy would touch every object that they hold.
bool holds_content(PyObject* content, PyObject* holder) {
  if (PyObject* dict = PyDict_Check(holder) ? holder : viewed_dict(holder); dict && !is_ordered(dict)) {
    const Py_ssize_t count = PyDict_GET_SIZE(dict);
    PyObject *key = nullptr, *value = nullptr;
    bool same = 2 * count == PyList_GET_SIZE(content);
    for (Py_ssize_t at = 0, i = 0; same && PyDict_Next(dict, &at, &key, &value); ++i)
      same = same_value(PyList_GET_ITEM(content, i), key) && same_value(PyList_GET_ITEM(content, count + i), value);
    return same;
  }
  if (PyList_Check(holder) || PyTuple_Check(holder))
    return same_list(content, PySequence_Fast_ITEMS(holder), PySequence_Fast_GET_SIZE(holder));
  const PyRef now = copied_content(holder);
  return now && same_list(content, PySequence_Fast_ITEMS(now.get()), PyList_GET_SIZE(now.get()));
}

bool holds_bytes(PyObject* bytes, PyObject* holder) {
  Py_buffer view;
  if (PyObject_GetBuffer(holder, &view, PyBUF_SIMPLE) == 0) {
    const bool same =
        view.len == PyBytes_GET_SIZE(bytes) &&
        (view.len == 0 || std::memcmp(view.buf, PyBytes_AS_STRING(bytes), static_cast<size_t>(view.len)) == 0);
    PyBuffer_Release(&view);
    return same;
  }
  forget_error();  // it is not contiguous
  const PyRef now = copied_bytes(holder);
  return now && PyBytes_GET_SIZE(bytes) == PyBytes_GET_SIZE(now.get()) &&
         std::memcmp(PyBytes_AS_STRING(bytes), PyBytes_AS_STRING(now.get()),
                     static_cast<size_t>(PyBytes_GET_SIZE(bytes))) == 0;
}

bool holds_function(PyObject* parts, PyObject* function) {
  const auto same = [&](Py_ssize_t i, PyObject* now) { return PyTuple_GET_ITEM(parts, i) == (now ? now : Py_None); };
  return same(0, PyFunction_GetCode(function)) && same(1, PyFunction_GetDefaults(function)) &&
         same(2, PyFunction_GetKwDefaults(function));
}

// The current value at `item`. Empty if there is none, or on a Python error.
PyRef found_at(const Guard& guard, const GuardItem& item) {
  PyObject *holder = guard.holder.get(), *key = item.key.get();
  switch (guard.kind) {
    case Guard::kEntries:
    case Guard::kAttributes:
      return PyRef::borrow(PyDict_GetItemWithError(holder, key));
    case Guard::kClass:
      return PyRef::borrow(_PyType_Lookup(reinterpret_cast<PyTypeObject*>(holder), key));
    case Guard::kElements: {
      Py_ssize_t i = PyLong_AsSsize_t(key);
      const Py_ssize_t size = PySequence_Fast_GET_SIZE(holder);
      if (i < 0) i += size;
      return PyRef::borrow(i >= 0 && i < size ? PySequence_Fast_GET_ITEM(holder, i) : nullptr);
    }
    case Guard::kCell:
      return PyRef::borrow(PyCell_GET(holder));
    case Guard::kResult:
      return PyRef::steal(PyObject_CallObject(holder, key));
    case Guard::kCache:
      return cache_counts(holder);
    case Guard::kGeneric: {
      PyRef value = PyRef::steal(PyObject_GetAttr(holder, key));
      if (!value && PyErr_ExceptionMatches(item.value ? PyExc_AttributeError : PyExc_Exception)) forget_error();
      return value;
    }
    case Guard::kSubscripts: {
      PyRef value = PyRef::steal(PyObject_GetItem(holder, key));
      if (!value && PyErr_ExceptionMatches(item.value ? PyExc_LookupError : PyExc_Exception)) forget_error();
      return value;
    }
    case Guard::kContext: {
      PyObject* value = nullptr;
      if (PyContextVar_Get(holder, nullptr, &value) < 0) return {};
      return PyRef::steal(value);
    }
    case Guard::kContent:
    case Guard::kBytes:
    case Guard::kFunction:
    case Guard::kType:
      break;  // no items
  }
  return {};
}

std::string other_elements(const Guard& guard) {
  const PyRef now = guard.kind == Guard::kContent ? copied_content(guard.holder.get()) : PyRef{};
  const Py_ssize_t had = now ? PyList_GET_SIZE(guard.content.get()) : 0, found = now ? PyList_GET_SIZE(now.get()) : 0;
  if (had == found) return ": found other elements";
  const Py_ssize_t per_entry = PyDict_Check(guard.holder.get()) ? 2 : 1;
  return ": found " + std::to_string(found / per_entry) + " elements, had " + std::to_string(had / per_entry);
}

std::string difference(const GuardItem& item, PyObject* found) {
  const bool is_one = found && is_tensor(found);
  const std::string now = is_one  ? item.tensor ? item.tensor->difference(BorrowedTensor(found).get()) : "a tensor"
                          : found ? spelled(found)
                                  : "none";
  const std::string had = item.tensor  ? "a tensor, " + item.tensor->text()
                          : item.value ? spelled(item.value.get())
                                       : "none";
  return ": found " + now + ", had " + had;
}

// May each read give a new object?
bool is_new_at_each_read(Guard::Kind kind) {
  return kind == Guard::kResult || kind == Guard::kGeneric || kind == Guard::kSubscripts;
}

int fit_item(const Guard& guard, const GuardItem& item, std::string* why, std::vector<PyRef>* numbers) {
  PyRef found = found_at(guard, item);
  if (!found && PyErr_Occurred()) return -1;
  if (item.step && found && Py_TYPE(found.get()) == Py_TYPE(item.value.get())) {
    if (numbers) (*numbers)[*item.step] = std::move(found);
    return 1;
  }
  const bool is_one = found && is_tensor(found.get());
  bool same = false;
  if (item.tensor || is_one)
    same = item.tensor && is_one && item.tensor->accepts(BorrowedTensor(found.get()).get());
  else
    same = found.get() == item.value.get() ||
           (found && item.value &&
            (same_value(item.value.get(), found.get()) ||
             (is_new_at_each_read(guard.kind) && same_contents(item.value.get(), found.get()))));
  if (!same && why) *why = place_of(guard, item.key.get()) + difference(item, found.get());
  return same;
}

// Is it still the dict of the object's attributes?
bool is_of_owner(const Guard& guard) {
  if (guard.owner_type && reinterpret_cast<PyObject*>(Py_TYPE(guard.owner.get())) != guard.owner_type.get())
    return false;
  PyObject** dict = _PyObject_GetDictPtr(guard.owner.get());
  if (dict && *dict) return *dict == guard.holder.get();
  const PyRef now = PyRef::steal(PyObject_GenericGetDict(guard.owner.get(), nullptr));
  if (!now) forget_error();
  return now.get() == guard.holder.get();
}

// As long as the interpreter's number of a class's state is the same, so are all of its lookups.
int fit_class(const Guard& guard, std::string* why, std::vector<PyRef>* numbers) {
  auto* const type = reinterpret_cast<PyTypeObject*>(guard.holder.get());
  const unsigned version = class_version(type);
  const bool is_as_found = version != 0 && version == guard.version;
  if (!is_as_found && guard.content && !holds_protocol(guard.content.get(), type)) {
    if (why) *why = guard.path + ": found other bases or special methods";
    return 0;
  }
  for (const GuardItem& item : guard.items) {
    if (is_as_found && !item.step && !item.tensor) continue;
    if (const int same = fit_item(guard, item, why, numbers); same != 1) return same;
  }
  guard.version = class_version(type);
  return 1;
}

int fit_guard(const Guard& guard, std::string* why, std::vector<PyRef>* numbers = nullptr) {
  PyObject* holder = guard.holder.get();
  if (guard.kind == Guard::kClass) return fit_class(guard, why, numbers);
  if (guard.kind == Guard::kType) {
    const bool same = reinterpret_cast<PyObject*>(Py_TYPE(holder)) == guard.content.get();
    if (!same && why) *why = guard.path + ": found another class";
    return same;
  }
  if (guard.content) {
    const bool same = guard.kind == Guard::kBytes      ? holds_bytes(guard.content.get(), holder)
                      : guard.kind == Guard::kFunction ? holds_function(guard.content.get(), holder)
                                                       : holds_content(guard.content.get(), holder);
    if (!same && why)
      *why = guard.path + (guard.kind == Guard::kFunction ? ": found other defaults or code" : other_elements(guard));
    return same;
  }
  if (guard.kind == Guard::kAttributes && !is_of_owner(guard)) {
    if (why) *why = guard.path + ": found another class or __dict__";
    return 0;
  }
  for (const GuardItem& item : guard.items)
    if (const int same = fit_item(guard, item, why, numbers); same != 1) return same;
  return 1;
}

}  // namespace

// ---- content ---------------------------------------------------------------------------------------------------

bool has_content(PyObject* object) noexcept {
  return is_container(object) || viewed_dict(object) || PyObject_TypeCheck(object, &PyDictProxy_Type);
}

bool has_bytes(PyObject* object) noexcept {
  return is_buffer(object) || PyMemoryView_Check(object) || is_numpy_array(object);
}

PyRef copied_content(PyObject* container) {
  PyRef copy;
  if (PyObject* dict = PyDict_Check(container) ? container : viewed_dict(container)) {
    copy = listed_dict(dict);
  } else if (PyObject_TypeCheck(container, &PyDictProxy_Type)) {
    const PyRef dict = PyRef::steal(PyDict_New());
    if (dict && PyDict_Merge(dict.get(), container, 1) == 0) copy = listed_dict(dict.get());
  } else {
    copy = copied_elements(container);
  }
  forget_error();
  return copy;
}

PyRef copied_bytes(PyObject* buffer) {
  PyRef bytes = PyRef::steal(PyBytes_FromObject(buffer));
  if (!bytes) {  // a dtype that buffers do not have
    forget_error();
    bytes = PyRef::steal(PyObject_CallMethod(buffer, "tobytes", nullptr));
  }
  forget_error();
  return bytes && PyBytes_Check(bytes.get()) ? bytes : PyRef{};
}

PyRef copied_function(PyObject* function) {
  const auto or_none = [](PyObject* part) { return part ? part : Py_None; };
  PyRef parts = PyRef::steal(PyTuple_Pack(3, PyFunction_GetCode(function), or_none(PyFunction_GetDefaults(function)),
                                          or_none(PyFunction_GetKwDefaults(function))));
  forget_error();
  return parts;
}

PyRef cache_counts(PyObject* cached_function) {
  const PyRef info = PyRef::steal(PyObject_CallMethod(cached_function, "cache_info", nullptr));
  return info ? PyRef::steal(PyTuple_Pack(2, PyTuple_GET_ITEM(info.get(), 1), PyTuple_GET_ITEM(info.get(), 3)))
              : PyRef{};
}

bool still_holds(const Guard& guard) { return fit_guard(guard, nullptr) == 1; }

// The repr of a tensor reads its values, which the guards of the trace would then compare at each call.
std::string text_of_key(PyObject* key) { return is_tensor(key) ? "<tensor>" : spelled(key); }

std::string place_of(const Guard& guard, PyObject* key) {
  switch (guard.kind) {
    case Guard::kEntries:
      if (guard.of_variable) return guard.path + spelled(key, PyObject_Str);
      [[fallthrough]];
    case Guard::kElements:
    case Guard::kSubscripts:
      return guard.path + "[" + text_of_key(key) + "]";
    case Guard::kAttributes:
    case Guard::kClass:
    case Guard::kGeneric:
      return guard.path + "." + spelled(key, PyObject_Str);
    case Guard::kCell:
      return "variable " + spelled(key, PyObject_Str);
    default:
      return guard.path;
  }
}

bool Guards::fits_leaf(PyObject* leaf, const LeafAttribute& attribute, std::string* why) {
  const PyRef found = PyRef::steal(PyObject_GetAttr(leaf, attribute.name.get()));
  forget_error();
  if (found && same_value(attribute.value.get(), found.get())) return true;
  if (why)
    *why = "an argument's " + spelled(attribute.name.get(), PyObject_Str) + ": found " + spelled(found.get()) +
           ", had " + spelled(attribute.value.get());
  return false;
}

void Guards::merge(Guards other) {
  const auto same_place = [](const Guard& a, const Guard& b) {
    return a.kind == b.kind && a.holder.get() == b.holder.get();
  };
  for (Guard& guard : other.guards_) {
    const auto known =
        std::find_if(guards_.begin(), guards_.end(), [&](const Guard& own) { return same_place(own, guard); });
    if (known == guards_.end()) {
      guards_.push_back(std::move(guard));
      continue;
    }
    for (GuardItem& item : guard.items) {
      const auto is_it = [&](const GuardItem& own) { return same_value(own.key.get(), item.key.get()); };
      if (std::none_of(known->items.begin(), known->items.end(), is_it)) known->items.push_back(std::move(item));
    }
  }
  for (Distinct& distinct : other.distinct_) distinct_.push_back(std::move(distinct));
  for (LeafAttribute& attribute : other.leaf_attributes_) leaf_attributes_.push_back(std::move(attribute));
}

int Guards::fit(std::string* why, std::vector<PyRef>* numbers) const {
  for (const Guard& guard : guards_)
    if (const int same = fit_guard(guard, why, numbers); same != 1) return same;
  return 1;
}

void Guards::find_changed_numbers(std::set<std::string>* places) const {
  for (const Guard& guard : guards_) {
    const bool holds_attributes = guard.kind != Guard::kAttributes || is_of_owner(guard);
    if (guard.content || guard.kind == Guard::kResult || guard.kind == Guard::kCache || !holds_attributes) continue;
    for (const GuardItem& item : guard.items) {
      if (!item.value || !may_be_traced(item.value.get())) continue;
      const PyRef found = found_at(guard, item);
      forget_error();
      if (found && may_be_traced(found.get()) && !same_value(item.value.get(), found.get()))
        places->insert(place_of(guard, item.key.get()));
    }
  }
}

int Guards::traverse(visitproc visit, void* arg) const {
  for (const Guard& guard : guards_) {
    Py_VISIT(guard.holder.get());
    Py_VISIT(guard.owner.get());
    Py_VISIT(guard.content.get());
    for (const GuardItem& item : guard.items) {
      Py_VISIT(item.key.get());
      Py_VISIT(item.value.get());
    }
  }
  for (const Distinct& distinct : distinct_) Py_VISIT(distinct.other.get());
  for (const LeafAttribute& attribute : leaf_attributes_) Py_VISIT(attribute.value.get());
  return 0;
}

}  // namespace backplane::python

#include "bindings/guards/reads.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "bindings/guards/hidden_state.hpp"
#include "bindings/guards/object_contents.hpp"
#include "bindings/interpreter/errors.hpp"
#include "bindings/interpreter/python_types.hpp"
#include "bindings/tensor/tensor_object.hpp"

namespace backplane::python {
namespace {

PyRef position(Py_ssize_t i) { return PyRef::steal(PyLong_FromSsize_t(i)); }

// A list's or tuple's position, counted from the front; empty if the key is not a position.
PyRef normal_position(PyObject* sequence, PyObject* key) {
  if (!PyLong_Check(key)) return {};
  Py_ssize_t i = PyLong_AsSsize_t(key);
  if (i == -1 && PyErr_Occurred()) {
    forget_error();
    return {};
  }
  if (i < 0) i += PySequence_Fast_GET_SIZE(sequence);
  return i >= 0 ? position(i) : PyRef{};
}

// It, or a class derived from it that does not say itself what an entry that is not there is.
bool is_defaultdict(PyTypeObject* type) {
  if (has_python_method(type, "__missing__")) return false;
  while (type && std::string_view(type->tp_name) != "collections.defaultdict") type = type->tp_base;
  return type != nullptr;
}

}  // namespace

// ---- names -----------------------------------------------------------------------------------------------------

void Reads::name(PyObject* object, std::string path, bool of_argument, PyObject* parent) {
  if (is_tensor(object)) tensors_.insert(object);
  if (is_plain_value(object) || is_tensor(object)) return;
  const bool was_untracked = PyObject_IS_GC(object) && !PyObject_GC_IsTracked(object);
  names_.try_emplace(object,
                     Named{PyRef::borrow(object), std::move(path), of_argument, PyRef::borrow(parent), was_untracked});
  if (is_named(object, "decimal.Decimal") && !std::exchange(has_decimals_, true)) note_decimal_context(*this);
  if (has_bytes(object)) buffers_.emplace_back(PyRef::borrow(object), memory_of(object));
}

bool Reads::was_read(PyObject* object) const {
  if (is_tensor(object)) return tensors_.count(object) > 0 && made_tensors_.count(handle_of(object)) == 0;
  return names_.count(object) > 0;
}

bool Reads::stores(PyObject* object) const {
  const std::function<bool(PyObject*)> is_made = [&](PyObject* holder) {
    if (const auto owner = owner_of_dict_.find(holder); owner != owner_of_dict_.end())
      return is_made_now_(owner->second.get());
    const auto named = names_.find(holder);  // the collector takes a dict that was untracked for a new one
    if (named == names_.end() || !named->second.was_untracked) return is_made_now_(holder);
    return named->second.parent && is_made(named->second.parent.get());
  };
  return effects_.stores(object, is_made);
}

std::string Reads::path_of(PyObject* object) const {
  const auto named = names_.find(object);
  if (named != names_.end()) return named->second.path;
  if (PyModule_Check(object) || PyType_Check(object) || PyFunction_Check(object)) {
    const PyRef name = PyRef::steal(PyObject_GetAttrString(object, "__name__"));
    forget_error();
    if (name) return spelled(name.get(), PyObject_Str);
  }
  return std::string("a ") + Py_TYPE(object)->tp_name;
}

void Reads::reach(PyObject* value, const std::string& path, bool of_argument, PyObject* parent) {
  if (value) name(value, path, of_argument, parent);
}

// ---- places ----------------------------------------------------------------------------------------------------

Reads::Place& Reads::place(Guard::Kind kind, PyObject* holder) {
  const auto [at, is_new] = index_.try_emplace({kind, holder}, places_.size());
  if (is_new) {
    const auto named = names_.find(holder);
    Place made{{kind, PyRef::borrow(holder), {}, {}, path_of(holder), false, false, {}, {}}, {}, {}, false, false};
    made.guard.of_argument = named != names_.end() && named->second.of_argument;
    places_.push_back(std::move(made));
  }
  return places_[at->second];
}

bool Reads::is_first(Place& place, PyObject* key) {
  if (!place.known) place.known = PyRef::steal(PyDict_New());
  const int known = place.known ? PyDict_Contains(place.known.get(), key) : -1;
  if (known == 0 && PyDict_SetItem(place.known.get(), key, Py_None) == 0) return true;
  forget_error();
  return known < 0;
}

void Reads::note(Place& place, PyObject* key, PyObject* value) {
  GuardItem item{PyRef::borrow(key), PyRef::borrow(value), {}};
  if (value && is_tensor(value)) item.tensor.emplace();  // filled in when the graph is known
  const std::string path = place_of(place.guard, key);
  const bool of_argument = place.guard.of_argument;
  const PyRef parent = place.guard.owner ? place.guard.owner : place.guard.holder;
  place.guard.items.push_back(std::move(item));
  reach(value, path, of_argument, parent.get());  // `place` may move
}

bool Reads::is_changed(PyObject* container) const {
  const auto at = index_.find({Guard::kContent, container});
  return at != index_.end() && places_[at->second].is_changed;
}

PyRef Reads::dict_of(PyObject* object) {
  PyRef dict = PyRef::steal(PyObject_GenericGetDict(object, nullptr));
  forget_error();
  if (!dict || !PyDict_Check(dict.get())) return {};
  owner_of_dict_.try_emplace(dict.get(), PyRef::borrow(object));
  return dict;
}

// ---- reads -----------------------------------------------------------------------------------------------------

void Reads::variable(PyObject* globals, PyObject* builtins, PyObject* name) {
  if (!PyDict_Check(globals)) return;
  this->name(globals, "globals", false);
  PyObject* value = PyDict_GetItemWithError(globals, name);
  forget_error();
  Place& own = place(Guard::kEntries, globals);
  own.guard.of_variable = true;
  own.guard.path = "global ";
  if (is_first(own, name)) note(own, name, value);
  loads(place(Guard::kEntries, globals), name, value);
  if (value || !builtins || !PyDict_Check(builtins)) return;
  this->name(builtins, "builtins", false);
  Place& of_builtins = place(Guard::kEntries, builtins);
  of_builtins.guard.of_variable = true;
  of_builtins.guard.path = "builtin ";
  if (is_first(of_builtins, name)) note(of_builtins, name, PyDict_GetItem(builtins, name));
}

void Reads::entry(PyObject* dict, PyObject* key) {
  if (is_changed(dict)) return content(dict);
  PyObject* value = PyDict_GetItemWithError(dict, key);
  if (!value && PyErr_Occurred()) return forget_error();  // a key that has no hash
  if (Place& own = place_of_dict(dict); is_first(own, key)) note(own, key, value);
  loads(place_of_dict(dict), key, value);
}

Reads::Place& Reads::place_of_dict(PyObject* dict) {
  const auto owner = owner_of_dict_.find(dict);
  Place& own = place(owner == owner_of_dict_.end() ? Guard::kEntries : Guard::kAttributes, dict);
  if (owner != owner_of_dict_.end()) set_owner(own.guard, owner->second.get());
  return own;
}

void Reads::set_owner(Guard& guard, PyObject* owner) {
  if (guard.owner) return;
  guard.owner = PyRef::borrow(owner);
  guard.owner_type = PyRef::borrow(reinterpret_cast<PyObject*>(Py_TYPE(owner)));
}

void Reads::cell(PyObject* cell, PyObject* name) {
  Place& own = place(Guard::kCell, cell);
  if (is_first(own, name)) note(own, name, PyCell_GET(cell));
  loads(place(Guard::kCell, cell), name, PyCell_GET(cell));
}

void Reads::generic(Guard::Kind kind, PyObject* holder, PyObject* key) {
  Place& own = place(kind, holder);
  if (!is_first(own, key)) return;
  PyRef value;
  if (kind == Guard::kContext) {
    PyObject* found = nullptr;
    if (PyContextVar_Get(holder, nullptr, &found) == 0) value = PyRef::steal(found);
  } else {
    const auto get = kind == Guard::kGeneric ? PyObject_GetAttr : PyObject_GetItem;
    value = PyRef::steal(get(holder, key));
    // An object that each read creates, such as a bound method, is not state.
    const PyRef again = PyRef::steal(value && !is_plain_value(value.get()) ? get(holder, key) : nullptr);
    if (again && again.get() != value.get() && !same_contents(value.get(), again.get())) {
      if (is_of_ctypes(value.get())) keep_none("it reads memory through ctypes");
      return forget_error();
    }
  }
  forget_error();
  note(own, key, value.get());
}

// What a proxy shows was there, and what a view shows, where the view was.
PyObject* Reads::shown_by(PyObject* object) {
  PyObject* shown = behind_proxy(object);
  if (shown != object) name(shown, path_of(object), false);
  PyObject* dict = viewed_dict(shown);
  if (dict && names_.count(shown) > 0) name(dict, path_of(shown), false);
  return dict ? dict : shown;
}

void Reads::subscript(PyObject* container, PyObject* key, bool plainly) {
  container = shown_by(container);
  if (is_tensor(container) || PyType_Check(container) || is_plain_value(container) ||
      is_of_this_package(Py_TYPE(container)) || (!plainly && has_python_method(Py_TYPE(container), "__getitem__")))
    return;
  if (is_pointer_of_ctypes(container)) keep_none("it reads memory through a pointer of ctypes");
  if (PyDict_Check(container)) {
    if (is_defaultdict(Py_TYPE(container)) && PyDict_Contains(container, key) == 0) {
      const PyRef factory = PyRef::steal(PyUnicode_InternFromString("default_factory"));
      if (factory) generic(Guard::kGeneric, container, factory.get());
      // No graph makes the entry again, should somebody remove it.
      if (!is_made_now_(container)) keep_none("a defaultdict makes an entry while it runs");
    }
    forget_error();
    entry(container, key);
  } else if (PyList_Check(container) || PyTuple_Check(container)) {
    const PyRef at = normal_position(container, key);
    if (!at || is_changed(container)) return content(container);
    Place& own = place(Guard::kElements, container);
    const Py_ssize_t i = PyLong_AsSsize_t(at.get());
    const bool is_there = i < PySequence_Fast_GET_SIZE(container);
    PyObject* value = is_there ? PySequence_Fast_GET_ITEM(container, i) : nullptr;
    if (is_first(own, at.get())) note(own, at.get(), value);
    loads(place(Guard::kElements, container), at.get(), value);
    if (PyLong_AsSsize_t(key) < 0) content(container);
  } else if (has_content(container)) {
    content(container);
  } else if (has_bytes(container)) {
    element(container, key);
  } else if (Py_TYPE(container)->tp_as_mapping || Py_TYPE(container)->tp_as_sequence) {
    generic(Guard::kSubscripts, container, key);
  }
}

void Reads::content(PyObject* object) {
  if (is_plain_value(object) || is_tensor(object)) return;
  object = shown_by(object);
  if (PyTuple_Check(object)) {  // cannot change, but what it holds can
    if (!tuples_.insert(object).second) return;
    held_.push_back(PyRef::borrow(object));
    const bool was_read = names_.count(object) > 0;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(object); ++i) {
      PyObject* element = PyTuple_GET_ITEM(object, i);
      special_methods(element);
      if (was_read) reach(element, path_of(object) + "[" + std::to_string(i) + "]", false, object);
      content(element);
    }
    return;
  }
  if (has_bytes(object)) return bytes(object);
  if (is_of_ctypes(object) && !is_made_now_(object)) return keep_none("it reads memory through ctypes");
  if (!has_content(object)) return;
  Place& own = place(Guard::kContent, object);
  if (own.is_read) return;
  own.is_read = true;
  own.guard.content = own.before ? own.before : copied_content(object);
  const PyRef all = own.guard.content;
  const std::string path = own.guard.path;
  const bool of_argument = own.guard.of_argument;
  for (Py_ssize_t i = 0; all && i < PyList_GET_SIZE(all.get()); ++i) {  // `own` may move
    PyObject* element = PyList_GET_ITEM(all.get(), i);
    special_methods(element);
    if (is_plain_value(element)) continue;
    reach(element, path + "[" + std::to_string(i) + "]", of_argument, object);
    content(element);
  }
}

void Reads::function(PyObject* function) {
  Place& own = place(Guard::kFunction, function);
  if (own.is_read) return;
  own.is_read = true;
  own.guard.content = copied_function(function);
  own.guard.path = "function " + path_of(function);
  const std::string path = own.guard.path;
  PyObject *words = PyFunction_GetKwDefaults(function), *defaults = PyFunction_GetDefaults(function);
  for (Py_ssize_t i = 0; defaults && i < PyTuple_GET_SIZE(defaults); ++i)
    reach(PyTuple_GET_ITEM(defaults, i), path + ": a default", false, function);
  if (!words) return;
  reach(words, path + ": keyword defaults", false, function);
  content(words);
}

void Reads::uses_up(PyObject* object, const char* what, const Storing& at) {
  // A class of Python shows what its __next__ does; what no collector knows (iterators of ranges) is of no account.
  if (!PyObject_IS_GC(object) || has_python_method(Py_TYPE(object), "__next__")) return;
  if (!known_used_up_.insert(object).second) return;
  held_.push_back(PyRef::borrow(object));
  if (!is_made_now_(object)) refuse(std::string(what) + " (" + path_of(object) + ")", at);
}

void Reads::refuse(std::string what, const Storing& at, const char* why) {
  refuse(what + " at " + at.line() + ", and " + why);
}

void Reads::refuse(std::string what) {
  if (refusal_.empty()) refusal_ = std::move(what);
}

void Reads::result(PyObject* function, PyObject* arguments) {
  Place& own = place(Guard::kResult, function);
  if (!is_first(own, arguments)) return;
  const PyRef value = PyRef::steal(PyObject_CallObject(function, arguments));
  forget_error();
  if (value) note(own, arguments, value.get());
}

void Reads::cache(PyObject* cached_function, bool is_asked, const Storing& at) {
  const auto is_it = [&](const Cache& known) { return known.function.get() == cached_function; };
  if (std::any_of(caches_.begin(), caches_.end(), is_it)) return;
  caches_.push_back({PyRef::borrow(cached_function), is_asked ? cache_counts(cached_function) : PyRef{}, at.line()});
}

void Reads::name_copy(PyObject* container, const std::string& path) {
  if (PyDict_CheckExact(container) || PyList_CheckExact(container)) {
    copies_.insert(container);
    held_.push_back(PyRef::borrow(container));
    name(container, path, false);
  }
  const PyRef content = PyTuple_Check(container) || PyList_CheckExact(container) || PyDict_CheckExact(container)
                            ? copied_content(container)
                            : PyRef{};
  for (Py_ssize_t i = 0; content && i < PyList_GET_SIZE(content.get()); ++i)
    name_copy(PyList_GET_ITEM(content.get(), i), path);
}

}  // namespace backplane::python

#include "bindings/transforms/state_before.hpp"

#include <string_view>

#include "bindings/interpreter/errors.hpp"
#include "bindings/transforms/object_contents.hpp"

namespace backplane::python {
namespace {

constexpr size_t kMostPlaces = 4096;
constexpr int kMostSteps = 100;  // from a callable to what is behind it

bool is_partial(PyObject* object) { return std::string_view(Py_TYPE(object)->tp_name) == "functools.partial"; }

// What a transform, or an object that a decorator made, wraps. An object's own __getattr__ is not asked.
PyRef wrapped_by(PyObject* callable) {
  if (std::string_view(Py_TYPE(callable)->tp_name) == "backplane.Transformed")
    return PyRef::steal(PyObject_GetAttrString(callable, "__wrapped__"));
  const PyRef attributes = attributes_of(callable);
  return attributes ? PyRef::borrow(PyDict_GetItemString(attributes.get(), "__wrapped__")) : PyRef{};
}

// Values that arguments have where a call leaves them out.
bool has_defaults(PyObject* object) {
  return PyFunction_Check(object) && (PyFunction_GetDefaults(object) || PyFunction_GetKwDefaults(object));
}

// May it lead to state? Numbers, words and functions without defaults do not.
bool leads_on(PyObject* object) {
  return is_container(object) || PyMethod_Check(object) || is_partial(object) || is_instance(object) ||
         has_defaults(object);
}

std::string text_of_key(PyObject* key, bool is_attribute) {
  return is_attribute ? "." + spelled(key, PyObject_Str) : "[" + spelled(key, PyObject_Repr) + "]";
}

}  // namespace

std::vector<PyRef> parts_of_callable(PyObject* callable) {
  std::vector<PyRef> parts, open{PyRef::borrow(callable)};
  const auto add = [&](PyRef part) {
    if (!part || part.get() == callable) return;
    if (PyCallable_Check(part.get())) open.push_back(part);
    if (!PyFunction_Check(part.get())) parts.push_back(std::move(part));
  };
  const auto add_each = [&](PyObject* tuple) {
    for (Py_ssize_t i = 0; tuple && PyTuple_Check(tuple) && i < PyTuple_GET_SIZE(tuple); ++i)
      add(PyRef::borrow(PyTuple_GET_ITEM(tuple, i)));
  };
  for (int steps = 0; !open.empty() && steps < kMostSteps; ++steps) {
    const PyRef next = std::move(open.back());
    open.pop_back();
    if (PyMethod_Check(next.get())) {
      add(PyRef::borrow(PyMethod_GET_SELF(next.get())));
      add(PyRef::borrow(PyMethod_GET_FUNCTION(next.get())));
    } else if (is_partial(next.get())) {
      add_each(PyRef::steal(PyObject_GetAttrString(next.get(), "args")).get());
      add(PyRef::steal(PyObject_GetAttrString(next.get(), "keywords")));
      add(PyRef::steal(PyObject_GetAttrString(next.get(), "func")));
    } else if (PyFunction_Check(next.get())) {
      add_each(PyFunction_GetDefaults(next.get()));
      add(PyRef::borrow(PyFunction_GetKwDefaults(next.get())));
    } else if (!PyType_Check(next.get()) && PyCallable_Check(next.get())) {
      add(wrapped_by(next.get()));
    }
    forget_error();
  }
  return parts;
}

void StateBefore::note(PyObject* object, const std::string& path) {
  std::vector<std::pair<PyRef, std::string>> open{{PyRef::borrow(object), path}};
  const auto add = [&](PyObject* next, const auto& place) {
    if (leads_on(next) && seen_.count(next) == 0) open.emplace_back(PyRef::borrow(next), place());
  };
  while (!open.empty() && places_.size() < kMostPlaces) {
    const auto [next, at] = std::move(open.back());
    open.pop_back();
    if (!leads_on(next.get()) || !seen_.insert(next.get()).second) continue;
    for (PyRef& part : parts_of_callable(next.get())) open.emplace_back(std::move(part), at);
    const PyRef elements = copied_elements(next.get()), attributes = copied_attributes(next.get());
    for (const PyRef& copy : {elements, attributes}) {
      if (!copy) continue;
      PyObject *key = nullptr, *value = nullptr;
      for (Py_ssize_t i = 0; PyDict_Check(copy.get()) && PyDict_Next(copy.get(), &i, &key, &value);)
        add(value, [&, at = at] { return at + text_of_key(key, copy.get() == attributes.get()); });
      for (Py_ssize_t i = 0; PyList_Check(copy.get()) && i < PyList_GET_SIZE(copy.get()); ++i)
        add(PyList_GET_ITEM(copy.get(), i), [&, at = at] { return at + "[" + std::to_string(i) + "]"; });
      places_.push_back({next, copy, copy.get() == attributes.get(), at});
    }
    if (!elements && !attributes) places_.push_back({next, {}, false, at});  // kept, for `seen_`
  }
}

std::vector<StateBefore::Change> StateBefore::changes() const {
  std::vector<Change> found;
  for (const Place& place : places_) {
    PyObject *object = place.object.get(), *before = place.before.get();
    const PyRef after = place.of_attributes ? copied_attributes(object) : copied_elements(object);
    if (!before || !after) continue;
    if (PyDict_Check(before)) {
      const auto of = place.of_attributes ? Change::kAttribute : Change::kItem;
      PyObject *key = nullptr, *now = nullptr;
      for (Py_ssize_t at = 0; PyDict_Next(after.get(), &at, &key, &now);) {
        PyObject* had = PyDict_GetItem(before, key);
        if (now != had)
          found.push_back({of, place.object, PyRef::borrow(key), PyRef::borrow(had), PyRef::borrow(now),
                           place.path + text_of_key(key, place.of_attributes)});
      }
      continue;
    }
    if (PyAnySet_Check(object) || PyList_GET_SIZE(before) != PyList_GET_SIZE(after.get())) {  // no places, or others
      if (!hold_the_same(before, after.get()))
        found.push_back({Change::kElements, place.object, {}, place.before, after, place.path});
      continue;
    }
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(before); ++i) {
      PyObject *had = PyList_GET_ITEM(before, i), *now = PyList_GET_ITEM(after.get(), i);
      const PyRef key = PyRef::steal(had != now ? PyLong_FromSsize_t(i) : nullptr);
      if (key)
        found.push_back({Change::kElement, place.object, key, PyRef::borrow(had), PyRef::borrow(now),
                         place.path + "[" + std::to_string(i) + "]"});
    }
  }
  forget_error();
  return found;
}

void StateBefore::Change::put_back() const {
  PyObject* object = holder.get();
  PyRef done;
  switch (of) {
    case kAttribute:
      PyObject_GenericSetAttr(object, key.get(), had.get());
      return;
    case kItem:
      if (had)
        PyDict_SetItem(object, key.get(), had.get());
      else
        PyObject_DelItem(object, key.get());
      return;
    case kElement:
      if (PyList_Check(object))
        PyList_SetItem(object, PyLong_AsSsize_t(key.get()), Py_NewRef(had.get()));
      else
        PySequence_SetItem(object, PyLong_AsSsize_t(key.get()), had.get());
      return;
    case kElements:
      if (PyList_Check(object)) {
        PyList_SetSlice(object, 0, PyList_GET_SIZE(object), had.get());
        return;
      }
      done = PyRef::steal(PyObject_CallMethod(object, "clear", nullptr));
      if (done)
        done = PyRef::steal(PyObject_CallMethod(object, PyAnySet_Check(object) ? "update" : "extend", "O", had.get()));
  }
}

}  // namespace backplane::python

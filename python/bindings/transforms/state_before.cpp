#include "bindings/transforms/state_before.hpp"

#include <string_view>

#include "bindings/interpreter/errors.hpp"
#include "bindings/transforms/names_of_run.hpp"

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

// May it lead to state? Numbers, words and functions do not.
bool leads_on(PyObject* object) {
  return PyList_Check(object) || PyTuple_Check(object) || PyDict_Check(object) || PyMethod_Check(object) ||
         is_partial(object) || is_instance(object);
}

bool is_long(PyObject* object) {
  return (PyList_Check(object) && PyList_GET_SIZE(object) > kMostElements) ||
         (PyDict_Check(object) && PyDict_GET_SIZE(object) > kMostElements);
}

}  // namespace

std::vector<PyRef> parts_of_callable(PyObject* callable) {
  std::vector<PyRef> parts, open{PyRef::borrow(callable)};
  const auto add = [&](PyRef part) {
    if (!part || part.get() == callable) return;
    if (PyCallable_Check(part.get())) open.push_back(part);
    if (!PyFunction_Check(part.get())) parts.push_back(std::move(part));
  };
  for (int steps = 0; !open.empty() && steps < kMostSteps; ++steps) {
    const PyRef next = std::move(open.back());
    open.pop_back();
    if (PyMethod_Check(next.get())) {
      add(PyRef::borrow(PyMethod_GET_SELF(next.get())));
      add(PyRef::borrow(PyMethod_GET_FUNCTION(next.get())));
    } else if (is_partial(next.get())) {
      const PyRef args = PyRef::steal(PyObject_GetAttrString(next.get(), "args"));
      for (Py_ssize_t i = 0; args && PyTuple_Check(args.get()) && i < PyTuple_GET_SIZE(args.get()); ++i)
        add(PyRef::borrow(PyTuple_GET_ITEM(args.get(), i)));
      const PyRef keywords = PyRef::steal(PyObject_GetAttrString(next.get(), "keywords"));
      PyObject *name = nullptr, *value = nullptr;
      for (Py_ssize_t at = 0;
           keywords && PyDict_Check(keywords.get()) && PyDict_Next(keywords.get(), &at, &name, &value);)
        add(PyRef::borrow(value));
      add(PyRef::steal(PyObject_GetAttrString(next.get(), "func")));
    } else if (!PyFunction_Check(next.get()) && !PyType_Check(next.get()) && PyCallable_Check(next.get())) {
      add(wrapped_by(next.get()));
    }
    PyErr_Clear();
  }
  return parts;
}

void StateBefore::note(PyObject* object, const std::string& path) {
  std::vector<std::pair<PyRef, std::string>> open{{PyRef::borrow(object), path}};
  while (!open.empty() && places_.size() < kMostPlaces) {
    const auto [next, at] = std::move(open.back());
    open.pop_back();
    if (!leads_on(next.get()) || !seen_.insert(next.get()).second) continue;
    for (PyRef& part : parts_of_callable(next.get())) open.emplace_back(std::move(part), at);
    if (PyTuple_Check(next.get())) {
      for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(next.get()); ++i)
        open.emplace_back(PyRef::borrow(PyTuple_GET_ITEM(next.get(), i)), at + "[" + std::to_string(i) + "]");
      places_.push_back({next, {}, at});  // kept, for `seen_`
      continue;
    }
    PyRef before = is_long(next.get()) ? PyRef{} : snapshot_of(next.get());
    if (before && PyList_Check(before.get())) {
      for (Py_ssize_t i = 0; i < PyList_GET_SIZE(before.get()); ++i)
        open.emplace_back(PyRef::borrow(PyList_GET_ITEM(before.get(), i)), at + "[" + std::to_string(i) + "]");
    } else if (before) {
      PyObject *key = nullptr, *value = nullptr;
      for (Py_ssize_t i = 0; PyDict_Next(before.get(), &i, &key, &value);)
        open.emplace_back(PyRef::borrow(value), PyDict_Check(next.get()) ? at + "[" + spelled(key, PyObject_Repr) + "]"
                                                                         : at + "." + spelled(key, PyObject_Str));
    }
    places_.push_back({next, std::move(before), at});
  }
}

std::vector<StateBefore::Replaced> StateBefore::replaced() const {
  std::vector<Replaced> found;
  const auto add = [&](const Place& place, PyObject* key, const std::string& name, PyObject* had, PyObject* now) {
    found.push_back({place.object, PyRef::borrow(key), PyRef::borrow(had), PyRef::borrow(now), place.path + name});
  };
  for (const Place& place : places_) {
    PyObject *object = place.object.get(), *before = place.before.get();
    if (!before) continue;
    if (PyList_Check(before)) {
      const Py_ssize_t size = PyList_GET_SIZE(before);
      for (Py_ssize_t i = 0; i < size && PyList_GET_SIZE(object) == size; ++i) {
        PyObject *had = PyList_GET_ITEM(before, i), *now = PyList_GET_ITEM(object, i);
        const PyRef place_in = PyRef::steal(had != now ? PyLong_FromSsize_t(i) : nullptr);
        if (place_in) add(place, place_in.get(), "[" + std::to_string(i) + "]", had, now);
      }
      continue;
    }
    const bool is_dict = PyDict_Check(object);
    const PyRef holds = is_dict ? place.object : snapshot_of(object);
    PyObject *key = nullptr, *had = nullptr;
    for (Py_ssize_t at = 0; holds && PyDict_Next(before, &at, &key, &had);) {
      PyObject* now = PyDict_GetItem(holds.get(), key);
      if (now && now != had)
        add(place, key, is_dict ? "[" + spelled(key, PyObject_Repr) + "]" : "." + spelled(key, PyObject_Str), had, now);
    }
  }
  PyErr_Clear();
  return found;
}

void StateBefore::Replaced::put_back() const {
  if (PyList_Check(holder.get()))
    PyList_SetItem(holder.get(), PyLong_AsSsize_t(key.get()), Py_NewRef(had.get()));
  else if (PyDict_Check(holder.get()))
    PyDict_SetItem(holder.get(), key.get(), had.get());
  else
    PyObject_GenericSetAttr(holder.get(), key.get(), had.get());
}

}  // namespace backplane::python

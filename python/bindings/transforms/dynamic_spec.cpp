#include "bindings/transforms/dynamic_spec.hpp"

#include <algorithm>
#include <map>

#include "bindings/interpreter/errors.hpp"

namespace backplane::python {
namespace {

// By size, a name and the axes that have it. Functions behave in their own way at 0 and 1, which are broadcast or
// empty.
void find_all(const CallInputs& inputs, std::vector<DynamicSize>* sizes) {
  std::map<int64_t, size_t> place_of;
  for (size_t k = 0; k < inputs.tensors.size(); ++k) {
    const auto& shape = inputs.tensors[k].shape();
    for (size_t axis = 0; axis < shape.size(); ++axis) {
      if (shape[axis] < 2) continue;
      const auto [known, is_new] = place_of.emplace(shape[axis], sizes->size());
      if (is_new) sizes->push_back(DynamicSize{"s" + std::to_string(sizes->size()), {}});
      (*sizes)[known->second].places.emplace_back(k, static_cast<uint32_t>(axis));
    }
  }
}

// A str's text. False: a Python error.
bool read_text(PyObject* object, std::string* text) {
  const char* chars = PyUnicode_AsUTF8(object);
  if (chars) *text = chars;
  return chars != nullptr;
}

std::string tensor_names(const CallInputs& inputs) {
  std::string names;
  for (const size_t place : inputs.places) names += (names.empty() ? "" : ", ") + input_name(inputs, place);
  return names.empty() ? "none" : names;
}

}  // namespace

bool DynamicSpec::read_axes(PyObject* axes, Entry entry) {
  if (axes == Py_None) return true;
  if (!PyDict_Check(axes)) {
    raise(BP_ERROR_TYPE, "%s: argument dynamic: found %R, expected a dict from axes to names, as {0: \"batch\"}",
          transform_, axes);
    return false;
  }
  PyObject *key = nullptr, *value = nullptr;
  for (Py_ssize_t at = 0; PyDict_Next(axes, &at, &key, &value);) {
    std::string name;
    if (!PyLong_Check(key) || !PyUnicode_Check(value)) {
      raise(BP_ERROR_TYPE, "%s: argument dynamic: found %R: %R, expected an axis and the name of its size", transform_,
            key, value);
      return false;
    }
    const Py_ssize_t axis = PyLong_AsSsize_t(key);
    if ((axis == -1 && PyErr_Occurred()) || !read_text(value, &name)) return false;
    entry.axes.emplace_back(axis, std::move(name));
  }
  if (!entry.axes.empty()) entries_.push_back(std::move(entry));
  return true;
}

bool DynamicSpec::read(const char* transform, PyObject* object) {
  transform_ = transform;
  is_all_ = object == Py_True;
  if (object == Py_None || PyBool_Check(object)) return true;
  if (PyDict_Check(object)) {
    PyObject *key = nullptr, *value = nullptr;
    for (Py_ssize_t at = 0; PyDict_Next(object, &at, &key, &value);) {
      Entry entry;
      if (!PyUnicode_Check(key)) {
        raise(BP_ERROR_TYPE, "%s: argument dynamic: found the key %R, expected the name of an argument, as in %s",
              transform, key, "{\"x\": {0: \"batch\"}}");
        return false;
      }
      if (!read_text(key, &entry.path) || !read_axes(value, std::move(entry))) return false;
    }
    return true;
  }
  if (!PyList_Check(object) && !PyTuple_Check(object)) {
    raise(BP_ERROR_TYPE,
          "%s: argument dynamic: found %R, expected a dict, as {\"x\": {0: \"batch\"}}, a sequence, or True", transform,
          object);
    return false;
  }
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(object); ++i) {
    Entry entry;
    entry.position = i;
    if (!read_axes(PySequence_Fast_GET_ITEM(object, i), std::move(entry))) return false;
  }
  return true;
}

bool DynamicSpec::holds(const Entry& entry, const CallInputs& inputs, size_t leaf) const {
  if (entry.position < 0) {
    const std::string name = input_name(inputs, leaf);
    const std::string& path = entry.path;
    const bool within = name.size() > path.size() && (name[path.size()] == '[' || name[path.size()] == '.');
    return name.compare(0, path.size(), path) == 0 && (within || name.size() == path.size());
  }
  return std::any_of(inputs.trees.entries.begin(), inputs.trees.entries.end(), [&](const InputTrees::Entry& argument) {
    return !argument.keyword && argument.position == entry.position && leaf >= argument.first && leaf < argument.end();
  });
}

bool DynamicSpec::add(const Entry& entry, const CallInputs& inputs, size_t tensor,
                      std::vector<DynamicSize>* sizes) const {
  const auto n_axes = static_cast<Py_ssize_t>(inputs.tensors[tensor].ndim());
  const auto fail = [&](bp_status code, const char* format, Py_ssize_t axis, const std::string& more) {
    raise(code, format, transform_, input_name(inputs, inputs.places[tensor]).c_str(), axis, more.c_str());
    return false;
  };
  for (const auto& [given, name] : entry.axes) {
    const Py_ssize_t axis = given < 0 ? given + n_axes : given;
    if (axis < 0 || axis >= n_axes)
      return fail(BP_ERROR_INDEX, "%s: argument dynamic: %s has no axis %zd; it has %s dimensions", given,
                  std::to_string(n_axes));
    const std::pair<size_t, uint32_t> place{tensor, static_cast<uint32_t>(axis)};
    for (const DynamicSize& known : *sizes)
      if (known.name != name && std::find(known.places.begin(), known.places.end(), place) != known.places.end())
        return fail(BP_ERROR_VALUE, "%s: argument dynamic: the size of %s at axis %zd has two names, %s", given,
                    known.name + " and " + name);
    auto known = std::find_if(sizes->begin(), sizes->end(), [&](const DynamicSize& s) { return s.name == name; });
    if (known == sizes->end()) known = sizes->insert(sizes->end(), DynamicSize{name, {}});
    if (std::find(known->places.begin(), known->places.end(), place) == known->places.end())
      known->places.push_back(place);
  }
  return true;
}

bool DynamicSpec::find(const CallInputs& inputs, std::vector<DynamicSize>* sizes) const {
  if (is_all_) find_all(inputs, sizes);
  for (const Entry& entry : entries_) {
    bool found = false;
    for (size_t k = 0; k < inputs.tensors.size(); ++k) {
      if (!holds(entry, inputs, inputs.places[k])) continue;
      found = true;
      if (!add(entry, inputs, k, sizes)) return false;
    }
    if (found) continue;
    const std::string what = entry.position < 0 ? "\"" + entry.path + "\"" : std::to_string(entry.position);
    raise(BP_ERROR_VALUE, "%s: argument dynamic: found no tensor in argument %s; the call's tensors are %s", transform_,
          what.c_str(), tensor_names(inputs).c_str());
    return false;
  }
  return true;
}

}  // namespace backplane::python

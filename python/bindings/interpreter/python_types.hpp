// How a type of Python answers for attributes and elements: by code of Python, which is seen when it runs, or by C.
//
// All functions need the interpreter lock, and leave no Python error.
#pragma once

#include <functional>
#include <string_view>

#include "bindings/interpreter/py_ref.hpp"

namespace backplane::python {

inline bool is_named(PyObject* object, std::string_view type) noexcept {
  return std::string_view(Py_TYPE(object)->tp_name) == type;
}
// An array of NumPy's, of a subclass too; a number of NumPy's.
bool is_numpy_array(PyObject* object) noexcept;
bool is_numpy_scalar(PyObject* object) noexcept;
// A number of fields, which shows memory of its array.
bool is_numpy_record(PyObject* object) noexcept;
// A number, array, structure or pointer of ctypes; a pointer of ctypes, or a function that it calls.
bool is_of_ctypes(PyObject* object) noexcept;
bool is_pointer_of_ctypes(PyObject* object) noexcept;
// The dict behind a mappingproxy; other objects themselves.
PyObject* behind_proxy(PyObject* object) noexcept;
// A type of this package's extension module.
bool is_of_this_package(PyTypeObject* type) noexcept;
// Is the method one that code of Python defines?
bool has_python_method(PyTypeObject* type, const char* name) noexcept;
// A property, or a descriptor of a class that code of Python made.
bool is_python_descriptor(PyObject* descriptor) noexcept;
// The dict that dict.keys(), values() or items() show; nullptr: it is no such view.
PyObject* viewed_dict(PyObject* object) noexcept;
// super(): each class in which it looks, in order.
bool is_super(PyObject* object) noexcept;
void super_attribute(PyObject* super, const std::function<void(PyTypeObject*)>& look);

}  // namespace backplane::python

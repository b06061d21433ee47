#include "bindings/interpreter/imports.hpp"

namespace backplane::python {

PyRef imported_module(const char* name) {
  const PyRef text = PyRef::steal(PyUnicode_FromString(name));
  if (!text) return {};
  PyRef module = PyRef::steal(PyImport_GetModule(text.get()));
  if (module || PyErr_Occurred()) return module;
  const PyRef package = PyRef::steal(PyImport_ImportModuleLevelObject(text.get(), nullptr, nullptr, nullptr, 0));
  if (!package) return {};
  return PyRef::steal(PyImport_GetModule(text.get()));
}

}  // namespace backplane::python

// The type of operands with named dimensions, and the functions that answer for them.
#include "bindings/tensor/named_dims.hpp"

#include <algorithm>

namespace backplane::python {
namespace {

// Set once, and kept as long as the process lives.
struct NamedDims {
  PyTypeObject* type;
  PyObject *call, *get_item, *set_item, *asarray;
};
NamedDims* g_named_dims = nullptr;

constexpr int kDeepest = 32;  // of containers in each other, as of nested sequences

bool contains_named_dims(PyObject* object, int depth) noexcept {
  if (PyObject_TypeCheck(object, g_named_dims->type)) return true;
  if (depth == 0 || (!PyTuple_Check(object) && !PyList_Check(object))) return false;
  PyObject** items = PySequence_Fast_ITEMS(object);
  return std::any_of(items, items + PySequence_Fast_GET_SIZE(object),
                     [&](PyObject* item) { return contains_named_dims(item, depth - 1); });
}

}  // namespace

PyObject* set_named_dims(PyObject*, PyObject* args) {
  PyObject *type = nullptr, *call = nullptr, *get_item = nullptr, *set_item = nullptr, *asarray = nullptr;
  if (!PyArg_ParseTuple(args, "O!OOOO:set_named_dims", &PyType_Type, &type, &call, &get_item, &set_item, &asarray))
    return nullptr;
  if (!g_named_dims)
    g_named_dims = new NamedDims{reinterpret_cast<PyTypeObject*>(Py_NewRef(type)), Py_NewRef(call), Py_NewRef(get_item),
                                 Py_NewRef(set_item), Py_NewRef(asarray)};
  Py_RETURN_NONE;
}

bool has_named_dims(PyObject* object) noexcept { return g_named_dims && contains_named_dims(object, kDeepest); }

bool any_has_named_dims(PyObject* const* args, size_t n_positional, PyObject* keywords) noexcept {
  if (!g_named_dims) return false;
  const size_t count = n_positional + static_cast<size_t>(keywords ? PyTuple_GET_SIZE(keywords) : 0);
  return std::any_of(args, args + count, [](PyObject* x) { return has_named_dims(x); });
}

PyObject* call_with_named_dims(PyObject* function, PyObject* const* args, size_t n_positional, PyObject* keywords) {
  PyRef positional = PyRef::steal(PyTuple_New(static_cast<Py_ssize_t>(n_positional)));
  PyRef named = PyRef::steal(PyDict_New());
  if (!positional || !named) return nullptr;
  for (size_t i = 0; i < n_positional; ++i)
    PyTuple_SET_ITEM(positional.get(), static_cast<Py_ssize_t>(i), Py_NewRef(args[i]));
  for (Py_ssize_t i = 0; keywords && i < PyTuple_GET_SIZE(keywords); ++i)
    if (PyDict_SetItem(named.get(), PyTuple_GET_ITEM(keywords, i), args[n_positional + static_cast<size_t>(i)]) < 0)
      return nullptr;
  return PyObject_CallFunctionObjArgs(g_named_dims->call, function, positional.get(), named.get(), nullptr);
}

PyObject* get_item_by_named_dims(PyObject* tensor, PyObject* key) {
  return PyObject_CallFunctionObjArgs(g_named_dims->get_item, tensor, key, nullptr);
}

PyObject* asarray_of_named_dims(PyObject* object, PyObject* dtype, PyObject* device, PyObject* copy) {
  return PyObject_CallFunctionObjArgs(g_named_dims->asarray, object, dtype, device, copy, nullptr);
}

int set_item_by_named_dims(PyObject* tensor, PyObject* key, PyObject* value) {
  return PyRef::steal(PyObject_CallFunctionObjArgs(g_named_dims->set_item, tensor, key, value, nullptr)) ? 0 : -1;
}

}  // namespace backplane::python

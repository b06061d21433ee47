// The extension module: what backplane.torch calls of its native part.
#include <Python.h>

#include <torch/csrc/autograd/python_variable.h>

#include "backplane/device.hpp"
#include "call_programs.hpp"
#include "hooks.hpp"
#include "op_calls.hpp"
#include "python_values.hpp"
#include "rows.hpp"
#include "streams.hpp"

namespace backplane_torch {

namespace {

// A failure of C++ as a Python error.
template <class Function>
PyObject* called(Function function) {
  try {
    return function();
  } catch (const backplane::Error& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  } catch (const c10::Error& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what_without_backtrace());
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
  return nullptr;
}

PyObject* start(PyObject*, PyObject* tools) {
  return called([&]() -> PyObject* {
    if (!set_python_tools(tools)) return nullptr;
    register_hooks();
    register_host_fallback();
    Py_RETURN_NONE;
  });
}

PyObject* add_device_named(PyObject*, PyObject* name) {
  const char* text = PyUnicode_AsUTF8(name);
  if (!text) return nullptr;
  return called([&] { return PyLong_FromLong(add_device(backplane::parse_device(text))); });
}

PyObject* device_name_of(PyObject*, PyObject* index) {
  const long place = PyLong_AsLong(index);
  if (place == -1 && PyErr_Occurred()) return nullptr;
  return called([&] {
    return PyUnicode_FromString(backplane::device_name(device_of(static_cast<c10::DeviceIndex>(place))).c_str());
  });
}

PyObject* add_row(PyObject*, PyObject* args) {
  const char *name, *row, *kinds;
  int form, any_size;
  PyObject* rows;
  if (!PyArg_ParseTuple(args, "sssipO", &name, &row, &kinds, &form, &any_size, &rows)) return nullptr;
  return called([&]() -> PyObject* {
    register_row(name, row, kinds, static_cast<Form>(form), any_size, rows);
    Py_RETURN_NONE;
  });
}

PyObject* add_op(PyObject*, PyObject* args) {
  const char *name, *kinds;
  PyObject* raise_error;
  if (!PyArg_ParseTuple(args, "ssO", &name, &kinds, &raise_error)) return nullptr;
  return called([&] { return PyBool_FromLong(register_op(name, kinds, raise_error)); });
}

PyObject* add_transforms(PyObject*, PyObject* args) {
  const char *name, *kinds;
  PyObject *record, *describe;
  if (!PyArg_ParseTuple(args, "ssOO", &name, &kinds, &record, &describe)) return nullptr;
  return called([&]() -> PyObject* {
    register_transforms(name, kinds, record, describe);
    Py_RETURN_NONE;
  });
}

PyObject* add_run(PyObject*, PyObject* args) {
  PyObject *run, *plan;
  if (!PyArg_ParseTuple(args, "OO", &run, &plan)) return nullptr;
  return called([&]() -> PyObject* {
    register_run(run, plan);
    Py_RETURN_NONE;
  });
}

PyObject* set_policy(PyObject*, PyObject* policy) {
  const long chosen = PyLong_AsLong(policy);
  if (chosen == -1 && PyErr_Occurred()) return nullptr;
  const int before = static_cast<int>(host_policy());
  set_host_policy(static_cast<HostPolicy>(chosen));
  return PyLong_FromLong(before);
}

PyObject* count_devices(PyObject*, PyObject*) { return PyLong_FromLong(device_count()); }

PyObject* fallback_counts(PyObject*, PyObject*) { return host_calls(); }

PyObject* reset_fallback_counts(PyObject*, PyObject*) {
  reset_host_calls();
  Py_RETURN_NONE;
}

PyObject* to_backplane(PyObject*, PyObject* tensor) {
  return called([&]() -> PyObject* {
    TORCH_CHECK(THPVariable_Check(tensor), "backplane.torch: found a ", Py_TYPE(tensor)->tp_name,
                ", expected a torch.Tensor");
    return tensor_object(view_of(THPVariable_Unpack(tensor))).release();
  });
}

PyObject* from_backplane(PyObject*, PyObject* tensor) {
  return called([&] { return THPVariable_Wrap(tensor_from(result_of(tensor))); });
}

PyMethodDef functions[] = {{"start", start, METH_O, nullptr},
                           {"add_device", add_device_named, METH_O, nullptr},
                           {"device_name", device_name_of, METH_O, nullptr},
                           {"device_count", count_devices, METH_NOARGS, nullptr},
                           {"add_row", add_row, METH_VARARGS, nullptr},
                           {"add_op", add_op, METH_VARARGS, nullptr},
                           {"add_transforms", add_transforms, METH_VARARGS, nullptr},
                           {"add_run", add_run, METH_VARARGS, nullptr},
                           {"to_backplane", to_backplane, METH_O, nullptr},
                           {"from_backplane", from_backplane, METH_O, nullptr},
                           {"set_policy", set_policy, METH_O, nullptr},
                           {"fallbacks", fallback_counts, METH_NOARGS, nullptr},
                           {"reset_fallbacks", reset_fallback_counts, METH_NOARGS, nullptr},
                           {nullptr, nullptr, 0, nullptr}};

PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_native", nullptr, -1, functions, nullptr, nullptr, nullptr, nullptr};

}  // namespace

}  // namespace backplane_torch

PyMODINIT_FUNC PyInit__native() { return PyModule_Create(&backplane_torch::definition); }

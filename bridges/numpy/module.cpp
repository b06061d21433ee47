// The extension module backplane.numpy._loops: makes ufuncs of NumPy whose loops call Backplane's elementwise ops.
//
// Built against NumPy's headers, for the ABI of NumPy 2 and later. A ufunc owns its ElementwiseCall and the tables that
// NumPy reads of it. Loops run with or without the interpreter lock; a failed call sets the Python error.
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define NPY_TARGET_VERSION NPY_2_0_API_VERSION
#include <numpy/arrayobject.h>
#include <numpy/ufuncobject.h>

#include <algorithm>
#include <cfenv>
#include <memory>

#include "elementwise_call.hpp"

namespace backplane::numpy {
namespace {

struct Dtype {
  bp_dtype ours;
  char theirs;
};
// In the order in which NumPy tries loops: from the narrowest to the widest.
constexpr Dtype kDtypes[] = {{BP_BOOL, NPY_BOOL},           {BP_INT8, NPY_INT8},
                             {BP_UINT8, NPY_UINT8},         {BP_INT16, NPY_INT16},
                             {BP_UINT16, NPY_UINT16},       {BP_INT32, NPY_INT32},
                             {BP_UINT32, NPY_UINT32},       {BP_INT64, NPY_INT64},
                             {BP_UINT64, NPY_UINT64},       {BP_FLOAT16, NPY_FLOAT16},
                             {BP_FLOAT32, NPY_FLOAT32},     {BP_FLOAT64, NPY_FLOAT64},
                             {BP_COMPLEX64, NPY_COMPLEX64}, {BP_COMPLEX128, NPY_COMPLEX128}};

char type_number(bp_dtype dtype) {
  for (const Dtype& each : kDtypes)
    if (each.ours == dtype) return each.theirs;
  return NPY_VOID;
}

bool is_inexact(bp_dtype dtype) { return (BP_DTYPE_BIT(dtype) & (BP_MASK_FLOATING | BP_MASK_COMPLEX)) != 0; }

PyObject* raise_error = nullptr;  // (status, message): raises as calls of ops do

void raise(bp_status status, const char* message) {
  PyObject* raised =
      raise_error ? PyObject_CallFunction(raise_error, "is", static_cast<int>(status), message) : nullptr;
  Py_XDECREF(raised);
  if (!PyErr_Occurred()) PyErr_SetString(PyExc_RuntimeError, message);
}

// What NumPy reads of a ufunc, and what its loops call.
struct Ufunc {
  explicit Ufunc(const std::string& full_name) : call(full_name), name(full_name.substr(full_name.rfind(':') + 1)) {}

  struct Loop {
    const Ufunc* ufunc;
    LoopForm form;
  };
  ElementwiseCall call;
  std::string name, doc;
  std::vector<Loop> loops;
  std::vector<PyUFuncGenericFunction> functions;
  std::vector<void*> data;
  std::vector<char> types;
};

void set_error(bp_status status, const char* message) noexcept {
  const PyGILState_STATE state = PyGILState_Ensure();
  if (!PyErr_Occurred()) raise(status, message);
  PyGILState_Release(state);
}

void run_loop(char** args, const npy_intp* dimensions, const npy_intp* steps, void* data) {
  static_assert(sizeof(npy_intp) == sizeof(int64_t));
  const auto& loop = *static_cast<const Ufunc::Loop*>(data);
  try {
    loop.ufunc->call.run(loop.form, args, dimensions[0], reinterpret_cast<const int64_t*>(steps));
  } catch (const Error& error) {
    set_error(error.code(), error.what());
  } catch (const std::exception& error) {
    set_error(BP_ERROR_INTERNAL, error.what());
  }
  // Other threads may have done the work, and vectors compute more elements than there are: NumPy warns of nothing.
  constexpr int kLookedAt = FE_DIVBYZERO | FE_OVERFLOW | FE_UNDERFLOW | FE_INVALID;
  if (std::fetestexcept(kLookedAt)) std::feclearexcept(kLookedAt);
}

void end_ufunc(PyObject* capsule) { delete static_cast<Ufunc*>(PyCapsule_GetPointer(capsule, nullptr)); }

bool read_attribute(PyObject* object, AttributeValue& found) {
  if (object == Py_None) {
    found = std::monostate();
  } else if (PyBool_Check(object)) {
    found = object == Py_True;
  } else if (PyLong_Check(object)) {
    const long long number = PyLong_AsLongLong(object);
    if (number == -1 && PyErr_Occurred()) return false;
    found = static_cast<int64_t>(number);
  } else if (PyFloat_Check(object)) {
    found = PyFloat_AsDouble(object);
  } else if (PyComplex_Check(object)) {
    found = std::complex<double>(PyComplex_RealAsDouble(object), PyComplex_ImagAsDouble(object));
  } else if (PyUnicode_Check(object)) {
    const char* text = PyUnicode_AsUTF8(object);
    if (!text) return false;
    found = std::string(text);
  } else {
    PyErr_Format(PyExc_TypeError,
                 "numpy.ufunc: found an attribute of type %s; expected a number, a bool, a str or None",
                 Py_TYPE(object)->tp_name);
    return false;
  }
  return true;
}

bool set_attributes(ElementwiseCall& call, PyObject* attributes) {
  PyObject *key, *object;
  for (Py_ssize_t place = 0; PyDict_Next(attributes, &place, &key, &object);) {
    const char* name = PyUnicode_AsUTF8(key);
    AttributeValue found;
    if (!name || !read_attribute(object, found)) return false;
    call.set_attribute(name, found);
  }
  return true;
}

constexpr char other_type_of_64_bits(int a, int b) {
  return static_cast<char>(a == NPY_INT64 || a == NPY_UINT64 ? b : a);
}

void add_loops(Ufunc& ufunc, bool of_truths) {
  std::vector<bp_dtype> dtypes;
  for (const Dtype& each : kDtypes) dtypes.push_back(each.ours);
  std::vector<LoopForm> forms = ufunc.call.loops(dtypes);
  if (of_truths)
    for (LoopForm& found : ElementwiseCall::loops_of_truths(forms)) forms.push_back(std::move(found));
  for (LoopForm& found : forms) ufunc.loops.push_back({&ufunc, std::move(found)});
  for (Ufunc::Loop& loop : ufunc.loops) {
    ufunc.functions.push_back(run_loop);
    ufunc.data.push_back(&loop);
    for (const bp_dtype dtype : loop.form.dtypes) ufunc.types.push_back(type_number(dtype));
  }
  // C has two integer types of 64 bits, and NumPy's reductions want a loop for each.
  for (Ufunc::Loop& loop : ufunc.loops) {
    const auto is_wide = [](bp_dtype dtype) { return dtype == BP_INT64 || dtype == BP_UINT64; };
    if (std::none_of(loop.form.dtypes.begin(), loop.form.dtypes.end(), is_wide)) continue;
    ufunc.functions.push_back(run_loop);
    ufunc.data.push_back(&loop);
    for (const bp_dtype dtype : loop.form.dtypes)
      ufunc.types.push_back(dtype == BP_INT64    ? other_type_of_64_bits(NPY_LONG, NPY_LONGLONG)
                            : dtype == BP_UINT64 ? other_type_of_64_bits(NPY_ULONG, NPY_ULONGLONG)
                                                 : type_number(dtype));
  }
}

// (full_name, attributes, identity, has_identity, reorderable, reduction, scan) -> ufunc
PyObject* make(PyObject*, PyObject* args) {
  const char *full_name, *reduction, *scan;
  PyObject *attributes, *identity;
  int has_identity, reorderable;
  if (!PyArg_ParseTuple(args, "sO!Oppss:make", &full_name, &PyDict_Type, &attributes, &identity, &has_identity,
                        &reorderable, &reduction, &scan))
    return nullptr;
  try {
    auto ufunc = std::make_unique<Ufunc>(full_name);
    if (!set_attributes(ufunc->call, attributes)) return nullptr;
    ufunc->call.choose_inputs();
    ufunc->call.set_axis_calls(reduction, scan);
    add_loops(*ufunc, has_identity && PyBool_Check(identity));
    const bp_op_def& def = ufunc->call.def();
    for (const Ufunc::Loop& loop : ufunc->loops)  // NumPy crashes over an identity that it cannot convert
      BP_CHECK(!has_identity || PyLong_Check(identity) || is_inexact(loop.form.dtypes[0]), VALUE,
               "numpy.ufunc: argument identity: found a ", Py_TYPE(identity)->tp_name, ", expected an integer, since ",
               full_name, " takes integers. Fix: pass initial= to reduce");
    ufunc->doc = std::string(def.doc ? def.doc : "") + "\n\nThe op " + full_name + " of Backplane.";
    const int kind = has_identity ? PyUFunc_IdentityValue : reorderable ? PyUFunc_ReorderableNone : PyUFunc_None;
    PyObject* made = PyUFunc_FromFuncAndDataAndSignatureAndIdentity(
        ufunc->functions.data(), ufunc->data.data(), ufunc->types.data(), static_cast<int>(ufunc->functions.size()),
        ufunc->call.n_inputs(), ufunc->call.n_outputs(), kind, ufunc->name.c_str(), ufunc->doc.c_str(), 0, nullptr,
        has_identity ? identity : nullptr);
    if (!made) return nullptr;
    PyObject* owner = PyCapsule_New(ufunc.get(), nullptr, end_ufunc);
    if (!owner) {
      Py_DECREF(made);
      return nullptr;
    }
    ufunc.release();
    reinterpret_cast<PyUFuncObject*>(made)->obj = owner;
    return made;
  } catch (const Error& error) {
    raise(error.code(), error.what());
  } catch (const std::exception& error) {
    raise(BP_ERROR_INTERNAL, error.what());
  }
  return nullptr;
}

PyObject* set_raise_error(PyObject*, PyObject* function) {
  Py_XSETREF(raise_error, Py_NewRef(function));
  Py_RETURN_NONE;
}

PyMethodDef methods[] = {{"make", make, METH_VARARGS, nullptr},
                         {"set_raise_error", set_raise_error, METH_O, nullptr},
                         {nullptr, nullptr, 0, nullptr}};
PyModuleDef module_def = {PyModuleDef_HEAD_INIT, "_loops", nullptr, -1, methods, nullptr, nullptr, nullptr, nullptr};

}  // namespace
}  // namespace backplane::numpy

PyMODINIT_FUNC PyInit__loops() {
  import_array();
  import_umath();
  return PyModule_Create(&backplane::numpy::module_def);
}

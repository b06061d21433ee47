// The readers, in one table by meaning type.
#include "bindings/ops/convert.hpp"

#include <string>

#include "backplane/device.hpp"
#include "bindings/interpreter/errors.hpp"
#include "bindings/ops/generator.hpp"
#include "bindings/tensor/asarray.hpp"
#include "bindings/tensor/dtype_device.hpp"
#include "bindings/tensor/number_hook.hpp"
#include "bindings/tensor/scalars.hpp"
#include "bindings/tensor/tensor_object.hpp"

namespace backplane::python {
namespace {

using Reader = int (*)(PyObject* object, CallArguments& arguments, bp_value* value);

// 2 for lists and arrays of numbers, as asarray takes them; 0 for other objects.
[[gnu::cold]] int read_data(PyObject* object, CallArguments& arguments, bp_value* value) {
  if (!PyList_Check(object) && !PyTuple_Check(object) && !stands_for_tensor(object)) return 0;
  PyRef made = PyRef::steal(tensor_of_data(object));
  if (made)
    made = PyRef::steal(guarded([&] { return wrap_tensor(to_device(tensor_of(made.get()), default_device())); }));
  if (!made) {
    const bool worded = PyErr_ExceptionMatches(PyExc_OverflowError) || PyErr_ExceptionMatches(PyExc_MemoryError) ||
                        !PyErr_ExceptionMatches(PyExc_Exception);
    if (worded) return -1;
    forget_error();  // dates, objects, texts, ragged rows: the caller words what was expected
    return 0;
  }
  *value = tensor_value(handle_of(made.get()));
  arguments.keep_alive(std::move(made));
  return 2;
}

int read_tensor(PyObject* object, CallArguments& arguments, bp_value* value) {
  if (is_tensor(object)) [[likely]] {
    *value = tensor_value(handle_of(object));
    return 1;
  }
  if (!PyFloat_CheckExact(object) && is_traced_number(object) && read_traced_number(object, value)) {
    value->flags |= BP_VALUE_NUMBER;
    return 3;
  }
  const int read = read_number(object, value, arguments.allocate<double>(2));
  if (read == 0) [[unlikely]]
    return read_data(object, arguments, value);
  value->flags |= BP_VALUE_NUMBER;
  return read;
}

int read_scalar(PyObject* object, CallArguments& arguments, bp_value* value) {
  return read_number(object, value, arguments.allocate<double>(2));
}

int read_int_value(PyObject* object, CallArguments&, bp_value* value) {
  *value = bp_value{};
  value->tag = BP_TAG_INT;
  return read_int(object, &value->u.i);
}

// A position: one beyond 64 bits lies as far out as any. Half the range leaves room for adding sizes to it.
constexpr int64_t kFarOut = int64_t{1} << 62;
int read_index(PyObject* object, CallArguments&, bp_value* value) {
  *value = bp_value{};
  value->tag = BP_TAG_INT;
  int overflow = 0;
  if (PyLong_CheckExact(object)) value->u.i = PyLong_AsLongLongAndOverflow(object, &overflow);
  if (overflow == 0) return read_int(object, &value->u.i);
  value->u.i = overflow > 0 ? kFarOut : -kFarOut;
  return 1;
}

// A sequence as a tuple that owns its elements, so that it cannot change during a call; empty for other objects.
PyRef as_tuple(PyObject* object) {
  if (PyTuple_Check(object)) return PyRef::borrow(object);
  if (PyUnicode_Check(object) || PyBytes_Check(object) || !(PyList_Check(object) || PySequence_Check(object)))
    return {};
  PyRef tuple = PyRef::steal(PySequence_Tuple(object));
  if (!tuple) forget_error();
  return tuple;
}

// One int stands for a list of one: `axis=0`, `zeros(3)`.
int read_int_list(PyObject* object, CallArguments& arguments, bp_value* value) {
  *value = bp_value{};
  value->tag = BP_TAG_INT_LIST;
  if (PyIndex_Check(object) && (!PySequence_Check(object) || (is_tensor(object) && handle_of(object)->dl.ndim == 0))) {
    auto* single = arguments.allocate<int64_t>(1);
    value->count = 1;
    value->u.ints = single;
    return read_int(object, single);
  }
  PyRef tuple = as_tuple(object);
  if (!tuple) return 0;
  const Py_ssize_t count = PyTuple_GET_SIZE(tuple.get());
  auto* ints = arguments.allocate<int64_t>(static_cast<size_t>(count));
  for (Py_ssize_t i = 0; i < count; ++i) {
    if (const int read = read_int(PyTuple_GET_ITEM(tuple.get(), i), &ints[i]); read != 1) return read;
  }
  value->count = static_cast<uint32_t>(count);
  value->u.ints = ints;
  return 1;
}

int read_dtype_value(PyObject* object, CallArguments&, bp_value* value) {
  bp_dtype dtype = 0;
  const int read = read_dtype(object, &dtype);
  *value = dtype_value(dtype);
  return read;
}

int read_device_value(PyObject* object, CallArguments&, bp_value* value) {
  *value = bp_value{};
  value->tag = BP_TAG_DEVICE;
  return read_device(object, &value->u.d);
}

// The state is reserved when the call's size is known: OpSignature::read.
int read_generator(PyObject* object, CallArguments&, bp_value* value) {
  *value = bp_value{};
  return is_generator(object) ? 1 : 0;
}

int read_bool(PyObject* object, CallArguments&, bp_value* value) {
  if (!PyBool_Check(object)) {
    // NumPy's bool is not a bool of Python; its class carries the dtype's name.
    bp_dtype dtype;
    if (read_dtype(reinterpret_cast<PyObject*>(Py_TYPE(object)), &dtype) != 1 || dtype != BP_BOOL) return 0;
  }
  *value = backplane::value(PyObject_IsTrue(object) == 1);
  return 1;
}

int read_string(PyObject* object, CallArguments&, bp_value* value) {
  if (!PyUnicode_Check(object)) return 0;
  Py_ssize_t size = 0;
  const char* text = PyUnicode_AsUTF8AndSize(object, &size);
  if (!text) return -1;
  *value = bp_value{};
  value->tag = BP_TAG_STRING;
  value->count = static_cast<uint32_t>(size);
  value->u.s = text;
  return 1;
}

int read_graph(PyObject*, CallArguments&, bp_value*) { return 0; }

struct TypeRow {
  const char* word;
  const char* expected;
  const char* expected_list;
  Reader reader;
};

// By BP_TYPE_*.
constexpr TypeRow kTypes[] = {
    {"?", "?", "?", nullptr},
    {"Tensor", "a Tensor or a number", "a sequence of Tensors", read_tensor},
    {"Scalar", "a number", "a sequence of numbers", read_scalar},
    {"Axis", "an axis (an int)", "a sequence of axes", read_int_value},
    {"Axes", "an axis or a sequence of axes", "a sequence of axes", read_int_list},
    {"Shape", "an int or a sequence of ints", "a sequence of ints", read_int_list},
    {"Size", "an int", "an int or a sequence of ints", read_int_value},
    {"Index", "an int", "an int or a sequence of ints", read_index},
    {"DType", "a dtype", "a sequence of dtypes", read_dtype_value},
    {"Device", "a device or its name", "a sequence of devices", read_device_value},
    {"Generator", "a Generator", "a sequence of Generators", read_generator},
    {"bool", "a bool", "a sequence of bools", read_bool},
    {"str", "a str", "a sequence of strs", read_string},
    {"Graph", "a captured function", "a sequence of captured functions", read_graph},
};
static_assert(std::size(kTypes) == BP_TYPE_COUNT);

const TypeRow& row_of(uint16_t type) noexcept { return kTypes[type < BP_TYPE_COUNT ? type : 0]; }

int read_tensor_list(PyRef tuple, bool may_be_absent, CallArguments& arguments, bp_value* value) {
  const Py_ssize_t count = PyTuple_GET_SIZE(tuple.get());
  auto* tensors = arguments.allocate<bp_tensor*>(static_cast<size_t>(count));
  int read = 1;
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject* element = PyTuple_GET_ITEM(tuple.get(), i);
    if (is_tensor(element)) {
      tensors[i] = handle_of(element);
    } else if (may_be_absent && element == Py_None) {
      tensors[i] = nullptr;
    } else if (bp_value made{}; element != Py_None && read_data(element, arguments, &made) == 2) {
      tensors[i] = made.u.t;
      read = 2;
    } else {
      return PyErr_Occurred() ? -1 : 0;
    }
  }
  value->tag = BP_TAG_TENSOR_LIST;
  value->count = static_cast<uint32_t>(count);
  value->u.tensors = tensors;
  arguments.keep_alive(std::move(tuple));
  return read;
}

int read_value_list(const TypeRow& row, PyRef tuple, CallArguments& arguments, bp_value* value) {
  const Py_ssize_t count = PyTuple_GET_SIZE(tuple.get());
  auto* elements = arguments.allocate<bp_value>(static_cast<size_t>(count));
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject* element = PyTuple_GET_ITEM(tuple.get(), i);
    if (element == Py_None) {
      elements[i] = bp_value{};
    } else if (const int read = row.reader(element, arguments, &elements[i]); read != 1) {
      return read;
    }
  }
  value->tag = BP_TAG_VALUE_LIST;
  value->count = static_cast<uint32_t>(count);
  value->u.values = elements;
  arguments.keep_alive(std::move(tuple));
  return 1;
}

// Lists of the plain kinds, packed as the contract packs them.
int read_packed_list(const TypeRow& row, PyRef tuple, CallArguments& arguments, bp_value* value) {
  const Py_ssize_t count = PyTuple_GET_SIZE(tuple.get());
  auto* floats = arguments.allocate<double>(static_cast<size_t>(count));
  auto* bools = arguments.allocate<uint8_t>(static_cast<size_t>(count));
  bp_value element{};
  for (Py_ssize_t i = 0; i < count; ++i) {
    if (const int read = row.reader(PyTuple_GET_ITEM(tuple.get(), i), arguments, &element); read != 1) return read;
    if (element.tag == BP_TAG_COMPLEX)
      return raise(BP_ERROR_DTYPE, "found a complex number in a list, expected real ones. Fix: pass its real part"), -1;
    floats[i] = element.tag == BP_TAG_FLOAT       ? element.u.f
                : element.flags & BP_VALUE_UINT64 ? static_cast<double>(static_cast<uint64_t>(element.u.i))
                                                  : static_cast<double>(element.u.i);
    bools[i] = element.u.i != 0;
  }
  const bool of_bools = row.reader == read_bool;
  value->tag = of_bools ? BP_TAG_BOOL_LIST : BP_TAG_FLOAT_LIST;
  value->count = static_cast<uint32_t>(count);
  if (of_bools) {
    value->u.bools = bools;
  } else {
    value->u.floats = floats;
  }
  return 1;
}

int read_list(const bp_arg_def& spec, PyObject* object, CallArguments& arguments, bp_value* value) {
  const TypeRow& row = row_of(spec.type);
  const bool may_be_absent = (spec.flags & BP_ARG_OPTIONAL_ELEMENTS) != 0;
  if ((row.reader == read_int_value || row.reader == read_index) && !may_be_absent)
    return read_int_list(object, arguments, value);
  *value = bp_value{};
  PyRef tuple = is_tensor(object) ? PyRef{} : as_tuple(object);
  if (!tuple) return 0;
  if (row.reader == read_tensor) return read_tensor_list(std::move(tuple), may_be_absent, arguments, value);
  if (may_be_absent) return read_value_list(row, std::move(tuple), arguments, value);
  if (row.reader == read_scalar || row.reader == read_bool)
    return read_packed_list(row, std::move(tuple), arguments, value);
  return 0;
}

}  // namespace

int read_argument(const bp_arg_def& spec, PyObject* object, CallArguments& arguments, bp_value* value) {
  if (object == Py_None) {
    *value = bp_value{};
    return spec.flags & BP_ARG_OPTIONAL || spec.type == BP_TYPE_GENERATOR ? 1 : 0;
  }
  if (spec.flags & BP_ARG_LIST) return read_list(spec, object, arguments, value);
  const TypeRow& row = row_of(spec.type);
  return row.reader ? row.reader(object, arguments, value) : 0;
}

const char* expected_kind(const bp_arg_def& spec) noexcept {
  const TypeRow& row = row_of(spec.type);
  return spec.flags & BP_ARG_LIST ? row.expected_list : row.expected;
}

const char* type_word(uint16_t type) noexcept { return row_of(type).word; }

}  // namespace backplane::python

// Reads nested sequences in two steps: shape from the first elements of each level, then every number in order, where
// the plain way (plain_sequence.hpp) does not serve.
#include "bindings/tensor/sequence.hpp"

#include <algorithm>
#include <span>
#include <vector>

#include "backplane/device.hpp"
#include "backplane/op.hpp"
#include "bindings/interpreter/errors.hpp"
#include "bindings/interpreter/imports.hpp"
#include "bindings/tensor/asarray.hpp"
#include "bindings/tensor/plain_sequence.hpp"
#include "bindings/tensor/scalars.hpp"
#include "bindings/tensor/slots.hpp"
#include "bindings/tensor/tensor_object.hpp"

namespace backplane::python {
namespace {

// NumPy's own limit is 64; a list that contains itself ends here.
constexpr size_t kMaxDepth = 64;

struct Number {
  double real;
  double imaginary;
  int64_t integer;  // exact where the tag says so
};

struct Reading {
  std::vector<int64_t> shape;
  std::vector<Number> numbers;
  uint16_t tag = BP_TAG_ABSENT;  // the widest of BOOL < INT < FLOAT < COMPLEX
  bool wide = false;             // an int among them is one that only uint64 holds
  bool negative = false;
  bool tensors = false;                        // found among the numbers, which are then not complete
  bp_dtype named = BP_DTYPE_NONE;              // to which the dtypes of other libraries' arrays promote
  bp_dtype without_promotion = BP_DTYPE_NONE;  // of an array that does not promote with those
};

// For an array that is not a sequence to Python, such as PyTorch's.
bool has_axes(PyObject* object) {
  if (PyFloat_Check(object) || PyLong_Check(object) || PyComplex_Check(object)) return false;
  const PyRef ndim = PyRef::steal(PyObject_GetAttrString(object, "ndim"));
  const bool some = ndim && PyLong_Check(ndim.get()) && PyLong_AsLong(ndim.get()) > 0 && is_foreign_array(object);
  forget_error();
  return some;
}

bool is_sequence(PyObject* object) {
  if (PyList_Check(object) || PyTuple_Check(object)) return true;
  if (is_tensor(object) || PyUnicode_Check(object) || PyBytes_Check(object) || PyDict_Check(object)) return false;
  if (!PySequence_Check(object)) return has_axes(object);
  if (PySequence_Size(object) >= 0) return true;
  const bool unsized = PyErr_ExceptionMatches(PyExc_TypeError);  // as an array without dimensions is
  forget_error();
  return !unsized;
}

// One whose elements may be read at once.
bool is_array(PyObject* sequence) {
  return !PyList_Check(sequence) && !PyTuple_Check(sequence) && stands_for_tensor(sequence);
}

bool discover_shape(PyObject* object, std::vector<int64_t>& shape) {
  PyRef current = PyRef::borrow(object);
  while (is_sequence(current.get())) {
    if (shape.size() == kMaxDepth) {
      raise(BP_ERROR_SHAPE, "asarray: found more than %zu levels of sequences", kMaxDepth);
      return false;
    }
    if (is_array(current.get())) {
      PyRef array = PyRef::steal(tensor_of_data(current.get()));
      if (array) {
        const Tensor tensor = tensor_of(array.get());
        shape.insert(shape.end(), tensor.shape().begin(), tensor.shape().end());
        return true;
      }
      if (!PySequence_Check(current.get())) return false;
      forget_error();
    }
    const Py_ssize_t length = PySequence_Size(current.get());
    if (length < 0) return false;
    shape.push_back(length);
    if (length == 0) break;
    current = PyRef::steal(PySequence_GetItem(current.get(), 0));
    if (!current) return false;
  }
  if (is_tensor(current.get())) {
    const bp_tensor* tensor = handle_of(current.get());
    shape.insert(shape.end(), tensor->dl.shape, tensor->dl.shape + tensor->dl.ndim);
  }
  return true;
}

bool raise_ragged(PyObject* object, size_t depth, const std::vector<int64_t>& shape) {
  PyRef kind = found_kind(object);
  if (!kind) return false;
  if (depth == shape.size()) {
    raise(BP_ERROR_SHAPE, "asarray: found %U at depth %zu, expected a number, as in the first element", kind.get(),
          depth);
  } else {
    raise(BP_ERROR_SHAPE, "asarray: found %U at depth %zu, expected a sequence of %lld, as in the first element",
          kind.get(), depth, static_cast<long long>(shape[depth]));
  }
  return false;
}

// A tensor of the shape that the first elements have from this depth on.
bool read_tensor(PyObject* object, size_t depth, Reading& reading) {
  reading.tensors = true;
  const DLTensor& tensor = handle_of(object)->dl;
  const std::span<const int64_t> found(tensor.shape, static_cast<size_t>(tensor.ndim));
  const std::span<const int64_t> expected = std::span(reading.shape).subspan(depth);
  if (std::ranges::equal(found, expected)) return true;
  PyRef shape = PyRef::steal(shape_tuple(tensor.shape, tensor.ndim));
  PyRef wanted = PyRef::steal(shape_tuple(expected.data(), static_cast<int32_t>(expected.size())));
  if (shape && wanted)
    raise(BP_ERROR_SHAPE, "asarray: found a tensor of shape %R at depth %zu, expected %R, as in the first element",
          shape.get(), depth, wanted.get());
  return false;
}

// A row of BP_TAG_BOOL < BP_TAG_INT < BP_TAG_FLOAT < BP_TAG_COMPLEX.
uint16_t tag_of(bp_dtype dtype) {
  const bp_dtype_mask bit = BP_DTYPE_BIT(dtype);
  if (bit & BP_MASK_COMPLEX) return BP_TAG_COMPLEX;
  if (bit & BP_MASK_FLOATING) return BP_TAG_FLOAT;
  return dtype == BP_BOOL ? BP_TAG_BOOL : BP_TAG_INT;
}

template <class T, class Add>
void for_elements(const Tensor& tensor, bp_dtype dtype, size_t parts, Add add) {
  const bool same = tensor.dtype() == dtype;
  const Tensor cast = same ? tensor : call(op_of(Slot::Cast), {value(tensor), dtype_value(dtype)});
  size_t count = parts;
  for (const int64_t size : cast.shape()) count *= static_cast<size_t>(size);
  std::vector<T> elements(count);
  if (!elements.empty()) read_elements(cast, elements.data());
  for (size_t i = 0; i < elements.size(); i += parts) add(&elements[i]);
}

// An array among the sequences or the numbers: its elements, and its dtype, which the tensor keeps. False for one that
// is to be read as a sequence, or has no numbers; with an exception set if its shape differs from the others.
bool read_array(PyObject* array, size_t depth, Reading& reading) {
  PyRef made = PyRef::steal(tensor_of_data(array));
  if (!made) {
    if (!PyErr_ExceptionMatches(PyExc_MemoryError)) forget_error();  // of dates, of objects
    return false;
  }
  const Tensor tensor = tensor_of(made.get());
  if (!std::equal(tensor.shape().begin(), tensor.shape().end(), reading.shape.begin() + static_cast<ptrdiff_t>(depth),
                  reading.shape.end()))
    return raise_ragged(array, depth, reading.shape);
  std::vector<Number>& numbers = reading.numbers;
  const uint16_t tag = tag_of(tensor.dtype());
  if (tag == BP_TAG_COMPLEX) {
    for_elements<double>(tensor, BP_COMPLEX128, 2, [&](const double* e) { numbers.push_back({e[0], e[1], 0}); });
  } else if (tag == BP_TAG_FLOAT) {
    for_elements<double>(tensor, BP_FLOAT64, 1, [&](const double* e) { numbers.push_back({*e, 0, 0}); });
  } else if (tensor.dtype() == BP_UINT64) {
    for_elements<uint64_t>(tensor, BP_UINT64, 1, [&](const uint64_t* e) {
      reading.wide |= *e > static_cast<uint64_t>(INT64_MAX);
      numbers.push_back({static_cast<double>(*e), 0, static_cast<int64_t>(*e)});
    });
  } else {
    for_elements<int64_t>(tensor, BP_INT64, 1, [&](const int64_t* e) {
      reading.negative |= *e < 0;
      numbers.push_back({static_cast<double>(*e), 0, *e});
    });
  }
  if (tag > reading.tag) reading.tag = tag;
  const bp_dtype named = reading.named == BP_DTYPE_NONE ? tensor.dtype() : promote(reading.named, tensor.dtype());
  if (named == BP_DTYPE_NONE) reading.without_promotion = tensor.dtype();
  if (named != BP_DTYPE_NONE) reading.named = named;
  return true;
}

bool read_element(PyObject* object, Reading& reading) {
  bp_value value{};
  double pair[2] = {0, 0};
  const int read = read_number(object, &value, pair);
  if (read < 0) return place_error("asarray", nullptr), false;
  if (read == 0) {
    if (is_foreign_array(object) && (read_array(object, reading.shape.size(), reading) || PyErr_Occurred()))
      return !PyErr_Occurred();
    PyRef kind = found_kind(object);
    if (kind)
      raise(BP_ERROR_TYPE, "asarray: found %U, expected numbers, nested sequences of numbers, or an array", kind.get());
  }
  if (read != 1) return false;
  if (value.tag > reading.tag) reading.tag = value.tag;
  switch (value.tag) {
    case BP_TAG_FLOAT:
      reading.numbers.push_back({value.u.f, 0, 0});
      break;
    case BP_TAG_COMPLEX:
      reading.numbers.push_back({pair[0], pair[1], 0});
      break;
    default: {
      const bool wide = (value.flags & BP_VALUE_UINT64) != 0;
      reading.wide |= wide;
      reading.negative |= !wide && value.u.i < 0;
      reading.numbers.push_back(
          {wide ? static_cast<double>(static_cast<uint64_t>(value.u.i)) : static_cast<double>(value.u.i), 0,
           value.u.i});
    }
  }
  return true;
}

bool read_level(PyObject* object, size_t depth, Reading& reading) {
  if (is_tensor(object)) return read_tensor(object, depth, reading);
  const bool sequence = is_sequence(object);
  if (sequence != (depth < reading.shape.size())) return raise_ragged(object, depth, reading.shape);
  if (!sequence) return read_element(object, reading);
  if (is_array(object) && (read_array(object, depth, reading) || PyErr_Occurred())) return !PyErr_Occurred();
  PyRef elements = PyRef::steal(PySequence_Tuple(object));
  if (!elements) return false;
  const Py_ssize_t length = PyTuple_GET_SIZE(elements.get());
  if (length != reading.shape[depth]) return raise_ragged(object, depth, reading.shape);
  for (Py_ssize_t i = 0; i < length; ++i) {
    if (!read_level(PyTuple_GET_ITEM(elements.get(), i), depth + 1, reading)) return false;
  }
  return true;
}

template <class T, class Pick>
PyObject* make_tensor(const Reading& reading, bp_dtype dtype, size_t parts, Pick pick) {
  std::vector<T> elements;
  elements.reserve(reading.numbers.size() * parts);
  for (const Number& number : reading.numbers) {
    for (size_t part = 0; part < parts; ++part) elements.push_back(static_cast<T>(pick(number, part)));
  }
  return wrap_tensor(from_host(elements.data(), reading.shape, {}, dtype, parse_device("cpu")));
}

// Throws Error.
void check_numbers(const Reading& reading, bp_dtype dtype) {
  for (const Number& number : reading.numbers) {
    bp_value value{};
    const double pair[] = {number.real, number.imaginary};
    value.tag = reading.tag;
    if (reading.tag == BP_TAG_COMPLEX)
      value.u.c = pair;
    else if (reading.tag == BP_TAG_FLOAT)
      value.u.f = number.real;
    else
      value.u.i = number.integer;
    if (reading.tag == BP_TAG_INT && number.integer < 0 && number.real > 0) value.flags = BP_VALUE_UINT64;
    check_number(dtype, value, "asarray");
  }
}

PyObject* to_tensor(const Reading& reading, const Numbers& wanted) {
  // A float's digits beyond float32 matter to those dtypes that can hold them, and to the casts of integers.
  const bp_dtype dtype = wanted.dtype != BP_DTYPE_NONE ? wanted.dtype : default_float();
  const bool wide = dtype != BP_FLOAT32 && dtype != BP_COMPLEX64;
  const auto integer = [](const Number& number, size_t) { return number.integer; };
  const auto floating = [](const Number& number, size_t part) { return part ? number.imaginary : number.real; };
  switch (reading.tag) {
    case BP_TAG_BOOL:
      return make_tensor<uint8_t>(reading, BP_BOOL, 1, integer);
    case BP_TAG_INT:
      if (reading.wide && reading.negative) return make_tensor<double>(reading, BP_FLOAT64, 1, floating);
      return make_tensor<int64_t>(reading, reading.wide ? BP_UINT64 : BP_INT64, 1, integer);
    case BP_TAG_COMPLEX:
      return wide ? make_tensor<double>(reading, BP_COMPLEX128, 2, floating)
                  : make_tensor<float>(reading, BP_COMPLEX64, 2, floating);
    default:  // no numbers at all: an empty tensor of the default float
      return wide ? make_tensor<double>(reading, BP_FLOAT64, 1, floating)
                  : make_tensor<float>(reading, BP_FLOAT32, 1, floating);
  }
}

// The dtype of numbers of this tag beside arrays of `named`.
bp_dtype dtype_beside(bp_dtype named, uint16_t tag) {
  const bp_dtype_mask bit = BP_DTYPE_BIT(named);
  bp_dtype dtype = named;
  if (tag == BP_TAG_INT && named == BP_BOOL) dtype = BP_INT64;
  if (tag == BP_TAG_FLOAT && !(bit & (BP_MASK_FLOATING | BP_MASK_COMPLEX))) dtype = default_float();
  if (tag == BP_TAG_COMPLEX && !(bit & BP_MASK_COMPLEX)) dtype = default_complex();
  if (tag == BP_TAG_COMPLEX && named == BP_FLOAT64) dtype = BP_COMPLEX128;
  return dtype;
}

PyObject* in_dtype(const Reading& reading, bp_dtype dtype) {
  check_numbers(reading, dtype);
  PyRef made = PyRef::steal(to_tensor(reading, {.dtype = dtype}));
  if (!made || handle_of(made.get())->dtype == dtype) return made.release();
  return wrap_tensor(call(op_of(Slot::Cast), {value(tensor_of(made.get())), dtype_value(dtype)}));
}

// Floats that were read with all their digits.
PyObject* in_default_float(PyObject* made) {
  const Tensor tensor = tensor_of(made);
  const bp_dtype_mask bit = BP_DTYPE_BIT(tensor.dtype());
  const bp_dtype wanted = bit & BP_MASK_FLOATING  ? default_float()
                          : bit & BP_MASK_COMPLEX ? default_complex()
                                                  : tensor.dtype();
  if (wanted == tensor.dtype()) return Py_NewRef(made);
  return wrap_tensor(call(op_of(Slot::Cast), {value(tensor), dtype_value(wanted)}));
}

}  // namespace

PyObject* tensor_of_sequence(PyObject* object, Numbers& numbers) noexcept {
  return guarded([&]() -> PyObject* {
    Reading reading;
    if (!discover_shape(object, reading.shape)) return nullptr;
    if (Tensor plain = tensor_of_plain_numbers(object, reading.shape, numbers.dtype)) {
      numbers.fresh = true;
      return wrap_tensor(std::move(plain));
    }
    if (!read_level(object, 0, reading)) return nullptr;
    const bool of_integers =
        reading.tag == BP_TAG_INT &&
        (numbers.dtype == BP_DTYPE_NONE ? !numbers.assigned : (BP_DTYPE_BIT(numbers.dtype) & BP_MASK_INTEGER) != 0);
    BP_CHECK(!of_integers || !reading.wide || !reading.negative, VALUE,
             "asarray: found ints below 0 and above 2**63 - 1, which no integer dtype holds; name a floating dtype");
    if (numbers.dtype != BP_DTYPE_NONE) check_numbers(reading, numbers.dtype);
    numbers.of_tensors = reading.tensors;
    numbers.fresh = true;
    if (reading.tensors) {
      PyRef module = imported_module("backplane._tensors._nested");
      PyRef shape = PyRef::steal(shape_tuple(reading.shape.data(), static_cast<int32_t>(reading.shape.size())));
      return module && shape ? PyObject_CallMethod(module.get(), "stacked", "OO", object, shape.get()) : nullptr;
    }
    BP_CHECK(reading.without_promotion == BP_DTYPE_NONE || numbers.dtype != BP_DTYPE_NONE, DTYPE,
             "asarray: found arrays of ", dtype_name(reading.named), " and ", dtype_name(reading.without_promotion),
             ", which have no common dtype; name one with dtype=");
    if (reading.named != BP_DTYPE_NONE && numbers.dtype == BP_DTYPE_NONE)
      return in_dtype(reading, dtype_beside(reading.named, reading.tag));
    BP_CHECK(!of_integers || !reading.wide || numbers.dtype != BP_DTYPE_NONE, VALUE,
             "asarray: found an int above 2**63 - 1, which int64 does not hold; name dtype=backplane.uint64");
    PyRef made = PyRef::steal(to_tensor(reading, numbers));
    return made && numbers.dtype == BP_DTYPE_NONE && !is_core_default() ? in_default_float(made.get()) : made.release();
  });
}

}  // namespace backplane::python

// Looks at the containers first, so that no memory is asked for by a shape that only the first elements have.
#include "bindings/tensor/plain_sequence.hpp"

#include "backplane/device.hpp"
#include "bindings/tensor/default_float.hpp"

namespace backplane::python {
namespace {

// Ints up to here are the same number as a float, by whichever way they become one.
constexpr int64_t kExactInFloat = int64_t{1} << 53;

bool is_plain(PyObject* object) noexcept { return PyList_CheckExact(object) || PyTuple_CheckExact(object); }

bool fits(PyObject* object, const std::vector<int64_t>& shape, size_t depth) noexcept {
  if (!is_plain(object) || PySequence_Fast_GET_SIZE(object) != shape[depth]) return false;
  for (int64_t i = 0; depth + 1 < shape.size() && i < shape[depth]; ++i)
    if (!fits(PySequence_Fast_GET_ITEM(object, i), shape, depth + 1)) return false;
  return true;
}

bool read_int64(PyObject* object, int64_t* to) noexcept {
  if (!PyLong_CheckExact(object)) return false;
  int overflow = 0;
  *to = PyLong_AsLongLongAndOverflow(object, &overflow);
  return overflow == 0;
}

bool read(PyObject* object, int64_t* to) noexcept { return read_int64(object, to); }

template <class Floating>
bool read(PyObject* object, Floating* to) noexcept {
  if (PyFloat_CheckExact(object)) {
    *to = static_cast<Floating>(PyFloat_AS_DOUBLE(object));
    return true;
  }
  int64_t integer = 0;
  if (!read_int64(object, &integer) || integer > kExactInFloat || integer < -kExactInFloat) return false;
  *to = static_cast<Floating>(integer);
  return true;
}

// The lengths again: getting the memory may have let other threads run.
template <class T>
bool fill(PyObject* object, const std::vector<int64_t>& shape, size_t depth, T*& to) noexcept {
  if (depth == shape.size()) return read(object, to++);
  if (!is_plain(object) || PySequence_Fast_GET_SIZE(object) != shape[depth]) return false;
  PyObject** items = PySequence_Fast_ITEMS(object);
  if (depth + 1 < shape.size()) {
    for (int64_t i = 0; i < shape[depth]; ++i)
      if (!fill(items[i], shape, depth + 1, to)) return false;
    return true;
  }
  for (int64_t i = 0; i < shape[depth]; ++i)
    if (!read(items[i], to++)) return false;
  return true;
}

PyObject* first_number(PyObject* object, const std::vector<int64_t>& shape) noexcept {
  for (size_t depth = 0; depth < shape.size(); ++depth) object = PySequence_Fast_GET_ITEM(object, 0);
  return object;
}

template <class T>
Tensor filled(PyObject* object, const std::vector<int64_t>& shape, bp_dtype dtype) {
  Tensor tensor = empty(shape, dtype, parse_device("cpu"));
  T* to = reinterpret_cast<T*>(static_cast<char*>(tensor.get()->dl.data) + tensor.get()->dl.byte_offset);
  return fill(object, shape, 0, to) ? tensor : Tensor();
}

}  // namespace

Tensor tensor_of_plain_numbers(PyObject* object, const std::vector<int64_t>& shape, bp_dtype dtype) {
  for (const int64_t size : shape)
    if (size == 0) return {};
  if (!shape.empty() && !fits(object, shape, 0)) return {};
  PyObject* first = first_number(object, shape);
  if (dtype == BP_DTYPE_NONE && PyFloat_CheckExact(first)) dtype = default_float();
  if (dtype == BP_DTYPE_NONE && PyLong_CheckExact(first)) dtype = BP_INT64;
  if (dtype == BP_FLOAT32) return filled<float>(object, shape, dtype);
  if (dtype == BP_FLOAT64) return filled<double>(object, shape, dtype);
  if (dtype == BP_INT64) return filled<int64_t>(object, shape, dtype);
  return {};
}

}  // namespace backplane::python

#include "bindings/guards/static_values.hpp"

#include <cmath>

#include "bindings/guards/object_contents.hpp"
#include "bindings/interpreter/errors.hpp"
#include "bindings/sizes/size_log.hpp"
#include "bindings/tensor/asarray.hpp"
#include "bindings/tensor/scalars.hpp"
#include "bindings/tensor/tensor_object.hpp"

namespace backplane::python {
namespace {

struct Number {
  explicit Number(PyObject* object) noexcept : known(read_number(object, &value, pair) > 0) { forget_error(); }
  bp_value value{};
  double pair[2] = {};
  bool known;  // false: no number, or an int that 64 bits do not hold
};

bool same_float(double a, double b) noexcept {
  return std::isnan(a) ? std::isnan(b) : a == b && std::signbit(a) == std::signbit(b);
}

bool is_inexact_number(const Number& number) noexcept {
  return number.known && (number.value.tag == BP_TAG_FLOAT || number.value.tag == BP_TAG_COMPLEX);
}

bool same_number(const Number& a, const Number& b) noexcept {
  if (a.value.tag != b.value.tag) return false;
  if (a.value.tag == BP_TAG_FLOAT) return same_float(a.value.u.f, b.value.u.f);
  return same_float(a.pair[0], b.pair[0]) && same_float(a.pair[1], b.pair[1]);
}

// Of a class whose __eq__ is code of Python: it may leave out what the function reads, or give no bool at all.
bool has_own_equality(PyTypeObject* type) noexcept {
  static PyObject* name = PyUnicode_InternFromString("__eq__");
  PyObject* found = _PyType_Lookup(type, name);
  return found && PyFunction_Check(found);
}

// Its contents are guarded at each call, so it is compared by identity. (For a tuple or a set, equality is enough.)
bool is_held_for_its_contents(PyObject* object) noexcept {
  return is_buffer(object) || (is_container(object) && !PyTuple_Check(object) && !PyAnySet_Check(object));
}

}  // namespace

bool carries_attributes(PyObject* object) noexcept {
  PyTypeObject* type = Py_TYPE(object);
  if (!PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE) || is_followed(object)) return false;
  for (const PyTypeObject* base = type; base && PyType_HasFeature(const_cast<PyTypeObject*>(base), Py_TPFLAGS_HEAPTYPE);
       base = base->tp_base) {
    PyObject* slots = reinterpret_cast<const PyHeapTypeObject*>(base)->ht_slots;
    if (slots && PyTuple_Check(slots) && PyTuple_GET_SIZE(slots) > 0) return true;
  }
  const PyRef dict = PyRef::steal(type->tp_dictoffset != 0 ? PyObject_GenericGetDict(object, nullptr) : nullptr);
  if (!dict) PyErr_Clear();
  return dict && PyDict_Check(dict.get()) && PyDict_GET_SIZE(dict.get()) > 0;
}

bool is_input(PyObject* leaf) noexcept {
  // A buffer that is not an array counts as a Python sequence of numbers.
  const bool is_plain_buffer = is_buffer(leaf) || PyMemoryView_Check(leaf);
  return is_tensor(leaf) || (is_foreign_array(leaf) && !is_plain_buffer && !Number(leaf).known);
}

int same_static(PyObject* own, PyObject* found) noexcept {
  if (own == found) return 1;
  if (Py_TYPE(own) != Py_TYPE(found)) return 0;
  if (carries_attributes(own) || carries_attributes(found)) return 0;
  const Number number(own);
  if (is_inexact_number(number)) return same_number(number, Number(found));
  if (has_own_equality(Py_TYPE(own)) || is_held_for_its_contents(own)) return 0;
  return PyObject_RichCompareBool(own, found, Py_EQ);
}

}  // namespace backplane::python

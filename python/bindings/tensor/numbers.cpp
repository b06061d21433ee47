// The number protocol and comparisons of Tensor: the shortest way from `a + b` to a packed call.
//
// One template per arity; which op serves which operator is read from the slot array, so no op is named here.
#include "backplane/device.hpp"
#include "bindings/interpreter/errors.hpp"
#include "bindings/tensor/asarray.hpp"
#include "bindings/tensor/number_hook.hpp"
#include "bindings/tensor/scalars.hpp"
#include "bindings/tensor/slots.hpp"
#include "bindings/tensor/tensor_object.hpp"
#include "bindings/tensor/tensor_slots.hpp"

namespace backplane::python {
namespace {

bp_device device_of_tensor(PyObject* tensor) noexcept {
  return {handle_of(tensor)->backend, handle_of(tensor)->ordinal};
}

// Does the op compare, and the operand is an int of more than 64 bits, which is then read?
[[gnu::cold]] bool compares_with(OpHandle op, PyObject* operand, bp_value* value) noexcept {
  return op != BP_NO_OP && (op_def(op).dtype_flags & BP_DTYPE_COMPARES) && read_compared(operand, value);
}

// A traced number beside a tensor: the graph's input for it, or its value. 0: an int beyond 64 bits.
[[gnu::cold]] int read_traced_operand(OpHandle op, PyObject* number, PyObject* other, bp_value* value) noexcept {
  if (!is_tensor(other) || !read_traced_number(number, value)) return 0;
  value->flags |= BP_VALUE_NUMBER;
  PyObject* const given[] = {number, other};
  bp_value values[] = {*value, tensor_value(handle_of(other))};
  g_number_hook.follow(op, given, values, 2);
  *value = values[0];
  return 1;
}

// An operand as a value, beside another one. 1: read; 0: not ours, so that Python asks the other operand; -1: Python
// error.
inline int read_operand(OpHandle op, PyObject* object, PyObject* other, bp_value* value, double* pair) noexcept {
  if (is_tensor(object)) [[likely]] {
    *value = tensor_value(handle_of(object));
    return 1;
  }
  if (!PyFloat_CheckExact(object) && is_traced_number(object) && read_traced_operand(op, object, other, value))
    return 1;
  int read = read_number(object, value, pair);
  if (read < 0 && compares_with(op, object, value)) [[unlikely]]
    read = 1;
  value->flags |= BP_VALUE_NUMBER;
  return read;
}

// The error of an operand, under the op's name.
[[gnu::cold]] PyObject* unreadable(OpHandle op) noexcept {
  if (op != BP_NO_OP) place_error(op_def(op).name, nullptr);
  return nullptr;
}

// Is it a list or tuple that starts with a number or an array, at any depth?
bool is_list_of_numbers(PyObject* object) noexcept {
  if (!PyList_Check(object) && !PyTuple_Check(object)) return false;
  constexpr int kDeepest = 64;  // a list may hold itself
  for (int depth = 0; depth < kDeepest && (PyList_Check(object) || PyTuple_Check(object)); ++depth) {
    if (PySequence_Fast_GET_SIZE(object) == 0) return true;
    object = PySequence_Fast_GET_ITEM(object, 0);
  }
  return PyNumber_Check(object) || is_foreign_array(object);
}

bool compares(Slot slot) { return slot >= Slot::Less && slot <= Slot::GreaterEqual; }

// An array that the op takes as a tensor. Those that share no memory have operators of their own, which are asked, but
// for == answer with False.
bool is_operand_array(Slot slot, PyObject* operand) noexcept {
  return stands_for_tensor(operand) &&
         (compares(slot) || PyObject_CheckBuffer(operand) || has_attribute(operand, "__dlpack__"));
}

// Dates, objects, texts.
[[gnu::cold]] PyObject* raise_beside(OpHandle op, PyObject* operand) noexcept {
  return raise(BP_ERROR_TYPE,
               "%s: found a value of type %s beside a Tensor, expected a Tensor or a number; make one with "
               "backplane.asarray(value)",
               op_def(op).name, Py_TYPE(operand)->tp_name);
}

// An array of another library as a tensor on `device`; empty with a Python error that names the op.
PyRef array_operand(OpHandle op, PyObject* array, bp_device device) noexcept {
  PyRef made = PyRef::steal(tensor_of_data(array));
  if (made)
    made = PyRef::steal(guarded([&] { return wrap_tensor(to_device(tensor_of(made.get()), device)); }));
  else if (is_pending(BP_ERROR_DTYPE) || is_pending(BP_ERROR_TYPE))
    place_error(op_def(op).name, nullptr);
  else if (PyErr_ExceptionMatches(PyExc_Exception) && !PyErr_ExceptionMatches(PyExc_MemoryError))
    raise_beside(op, array);
  return made;
}

// NotImplemented, so that the other operand is asked; but lists are refused to ==, to which they would answer with
// False, and behind a tensor, where they would answer to `*` by repeating themselves, or with no advice. In front of
// one their `+=` and `*` have meanings of their own.
[[gnu::cold]] PyObject* not_ours(Slot slot, OpHandle op, PyObject* operand, bool behind) noexcept {
  const bool plain = PyList_CheckExact(operand) || PyTuple_CheckExact(operand);
  if (op == BP_NO_OP || !is_list_of_numbers(operand) || !(compares(slot) || (behind && plain)))
    Py_RETURN_NOTIMPLEMENTED;
  return raise_beside(op, operand);
}

PyObject* binary(Slot slot, PyObject* left, PyObject* right) noexcept;

// The op if `other` is not a number: an array, or an object of another library.
[[gnu::cold]] PyObject* binary_with(Slot slot, OpHandle op, PyObject* left, PyObject* right, PyObject* other) noexcept {
  PyObject* tensor = other == left ? right : left;
  if (op == BP_NO_OP || !is_tensor(tensor) || !is_operand_array(slot, other))
    return not_ours(slot, op, other, is_tensor(tensor) && other == right);
  const PyRef made = array_operand(op, other, device_of_tensor(tensor));
  if (!made) return nullptr;
  return other == left ? binary(slot, made.get(), right) : binary(slot, left, made.get());
}

PyObject* binary(Slot slot, PyObject* left, PyObject* right) noexcept {
  bp_value args[2];
  double pair[2];
  const OpHandle op = op_of(slot);
  if (const int read = read_operand(op, left, right, &args[0], pair); read != 1) [[unlikely]]
    return read == 0 ? binary_with(slot, op, left, right, left) : unreadable(op);
  if (const int read = read_operand(op, right, left, &args[1], pair); read != 1) [[unlikely]]
    return read == 0 ? binary_with(slot, op, left, right, right) : unreadable(op);
  if (op == BP_NO_OP) [[unlikely]]
    Py_RETURN_NOTIMPLEMENTED;
  return call_to_tensor(op, args, 2);
}

template <Slot slot>
PyObject* binary_slot(PyObject* left, PyObject* right) {
  return binary(slot, left, right);
}

PyObject* power_slot(PyObject* left, PyObject* right, PyObject* modulus) {
  if (modulus != Py_None) Py_RETURN_NOTIMPLEMENTED;
  return binary(Slot::Power, left, right);
}

template <Slot slot>
PyObject* unary_slot(PyObject* self) {
  const OpHandle op = op_of(slot);
  if (op == BP_NO_OP) [[unlikely]]
    return require_op(slot), nullptr;
  const bp_value arg = tensor_value(handle_of(self));
  return call_to_tensor(op, &arg, 1);
}

// Of bools, which the op refuses, the method of that name answers.
PyObject* absolute_slot(PyObject* self) {
  PyObject* result = unary_slot<Slot::Absolute>(self);
  if (result || !is_pending(BP_ERROR_DTYPE)) [[likely]]
    return result;
  forget_error();
  return PyObject_CallMethod(self, "abs", nullptr);
}

PyObject* matmul_slot(PyObject* left, PyObject* right) {
  PyObject* result = binary(Slot::Matmul, left, right);
  if (result || !is_pending(BP_ERROR_DTYPE) || !is_tensor(left) || !is_tensor(right)) [[likely]]
    return result;
  forget_error();
  return PyObject_CallMethod(left, "matmul", "O", right);
}

// Without an in-place variant Python falls back to the functional operator and rebinding.
PyObject* inplace(Slot slot, PyObject* self, PyObject* other) noexcept {
  const OpHandle op = op_of(slot);
  if (op == BP_NO_OP || !(op_def(op).flags & BP_OP_INPLACE)) Py_RETURN_NOTIMPLEMENTED;
  bp_value args[2] = {tensor_value(handle_of(self)), {}};
  double pair[2];
  if (const int read = read_operand(op, other, self, &args[1], pair); read != 1) [[unlikely]] {
    if (read < 0) return unreadable(op);
    if (!is_operand_array(slot, other)) return not_ours(slot, op, other, true);
    const PyRef made = array_operand(op, other, device_of_tensor(self));
    return made ? inplace(slot, self, made.get()) : nullptr;
  }
  use_context_settings();
  if (bp_status status = call_op_inplace(op, args, 2, bytes_of(args, 2))) return raise_status(status);
  return Py_NewRef(self);
}

template <Slot slot>
PyObject* inplace_slot(PyObject* self, PyObject* other) {
  return inplace(slot, self, other);
}

PyObject* inplace_power_slot(PyObject* self, PyObject* other, PyObject* modulus) {
  if (modulus != Py_None) Py_RETURN_NOTIMPLEMENTED;
  return inplace(Slot::Power, self, other);
}

PyObject* compare_slot(PyObject* self, PyObject* other, int operation) {
  // In the order of CPython's Py_LT .. Py_GE.
  static constexpr Slot kSlots[] = {Slot::Less,     Slot::LessEqual, Slot::Equal,
                                    Slot::NotEqual, Slot::Greater,   Slot::GreaterEqual};
  return binary(kSlots[operation], self, other);
}

// Python: Tensor.__bool__(self) -> bool
int bool_slot(PyObject* self) {
  PyRef element = PyRef::steal(single_element(handle_of(self), "bool"));
  return element ? PyObject_IsTrue(element.get()) : -1;
}

// Python: Tensor.__float__(self) -> float
PyObject* float_slot(PyObject* self) {
  PyRef element = PyRef::steal(single_element(handle_of(self), "float"));
  return element ? PyNumber_Float(element.get()) : nullptr;
}

// Python: Tensor.__int__(self) -> int
PyObject* int_slot(PyObject* self) {
  PyRef element = PyRef::steal(single_element(handle_of(self), "int"));
  return element ? PyNumber_Long(element.get()) : nullptr;
}

// Python: Tensor.__index__(self) -> int
PyObject* index_slot(PyObject* self) {
  const bp_tensor* tensor = handle_of(self);
  if (!(BP_DTYPE_BIT(tensor->dtype) & BP_MASK_INTEGER) || tensor->dl.ndim != 0) {
    return PyErr_Format(
        PyExc_TypeError,
        "index: found a tensor of dtype %s and %d dimensions, expected an integer tensor of no dimensions",
        dtype_name(tensor->dtype), int{tensor->dl.ndim});
  }
  return single_element(handle_of(self), "index");
}

template <class Function>
PyType_Slot slot_entry(int id, Function* function) {
  return {id, reinterpret_cast<void*>(function)};
}

}  // namespace

void append_number_slots(std::vector<PyType_Slot>& slots) {
  slots.insert(slots.end(), {
                                slot_entry(Py_nb_add, binary_slot<Slot::Add>),
                                slot_entry(Py_nb_subtract, binary_slot<Slot::Subtract>),
                                slot_entry(Py_nb_multiply, binary_slot<Slot::Multiply>),
                                slot_entry(Py_nb_true_divide, binary_slot<Slot::TrueDivide>),
                                slot_entry(Py_nb_floor_divide, binary_slot<Slot::FloorDivide>),
                                slot_entry(Py_nb_remainder, binary_slot<Slot::Remainder>),
                                slot_entry(Py_nb_matrix_multiply, matmul_slot),
                                slot_entry(Py_nb_and, binary_slot<Slot::And>),
                                slot_entry(Py_nb_or, binary_slot<Slot::Or>),
                                slot_entry(Py_nb_xor, binary_slot<Slot::Xor>),
                                slot_entry(Py_nb_lshift, binary_slot<Slot::LeftShift>),
                                slot_entry(Py_nb_rshift, binary_slot<Slot::RightShift>),
                                slot_entry(Py_nb_power, power_slot),
                                slot_entry(Py_nb_inplace_add, inplace_slot<Slot::Add>),
                                slot_entry(Py_nb_inplace_subtract, inplace_slot<Slot::Subtract>),
                                slot_entry(Py_nb_inplace_multiply, inplace_slot<Slot::Multiply>),
                                slot_entry(Py_nb_inplace_true_divide, inplace_slot<Slot::TrueDivide>),
                                slot_entry(Py_nb_inplace_floor_divide, inplace_slot<Slot::FloorDivide>),
                                slot_entry(Py_nb_inplace_remainder, inplace_slot<Slot::Remainder>),
                                slot_entry(Py_nb_inplace_matrix_multiply, inplace_slot<Slot::Matmul>),
                                slot_entry(Py_nb_inplace_and, inplace_slot<Slot::And>),
                                slot_entry(Py_nb_inplace_or, inplace_slot<Slot::Or>),
                                slot_entry(Py_nb_inplace_xor, inplace_slot<Slot::Xor>),
                                slot_entry(Py_nb_inplace_lshift, inplace_slot<Slot::LeftShift>),
                                slot_entry(Py_nb_inplace_rshift, inplace_slot<Slot::RightShift>),
                                slot_entry(Py_nb_inplace_power, inplace_power_slot),
                                slot_entry(Py_nb_negative, unary_slot<Slot::Negative>),
                                slot_entry(Py_nb_positive, unary_slot<Slot::Positive>),
                                slot_entry(Py_nb_absolute, absolute_slot),
                                slot_entry(Py_nb_invert, unary_slot<Slot::Invert>),
                                slot_entry(Py_nb_bool, bool_slot),
                                slot_entry(Py_nb_float, float_slot),
                                slot_entry(Py_nb_int, int_slot),
                                slot_entry(Py_nb_index, index_slot),
                                slot_entry(Py_tp_richcompare, compare_slot),
                            });
}

}  // namespace backplane::python

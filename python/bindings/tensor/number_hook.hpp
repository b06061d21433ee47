// Numbers of Python that a trace follows (traced numbers), as readers of arguments meet them.
//
// A traced number is an instance of a subclass of float or int. The folder `sizes` makes the types and sets the hook.
// Reading its value makes it a constant of the trace; as an operand of an op it may become an input of the graph.
// All functions need the interpreter lock.
#pragma once

#include "backplane/op.hpp"
#include "bindings/interpreter/py_ref.hpp"

namespace backplane::python {

struct NumberHook {
  PyTypeObject *float_type = nullptr, *int_type = nullptr;
  // The value is looked at.
  void (*look_at)(PyObject* number) noexcept = nullptr;
  // Gives each traced number among the operands of an op a tensor in its place, where the op computes with it as with
  // a tensor; the others are looked at. `given`: the arguments, NULL for one that is absent.
  void (*follow)(OpHandle op, PyObject* const* given, bp_value* values, int32_t count) noexcept = nullptr;
};
inline NumberHook g_number_hook;

inline bool is_traced_number(PyObject* object) noexcept {
  return Py_TYPE(object) == g_number_hook.float_type || Py_TYPE(object) == g_number_hook.int_type;
}
// Before the value of any number is read.
inline void note_value_read(PyObject* object) noexcept {
  if (is_traced_number(object)) [[unlikely]]
    g_number_hook.look_at(object);
}

}  // namespace backplane::python

// The ops that Python's syntax needs: which op serves `+`, `@`, `x[i]`, `x[i] = v`. The binding of a slot to an op is
// data in the package (backplane/_syntax.py), handed over once at import; handles are then read from a plain array.
//
// Written under the interpreter lock at import and only read afterwards.
#pragma once

#include "backplane/abi/host.h"
#include "backplane/op.hpp"
#include "py_ref.hpp"

namespace backplane::python {

// X(enumerator, the slot's name in the package's table)
#define BP_PYTHON_SLOTS(X)                                                                                        \
  X(Add, "__add__")                                                                                               \
  X(Subtract, "__sub__")                                                                                          \
  X(Multiply, "__mul__")                                                                                          \
  X(TrueDivide, "__truediv__") X(FloorDivide, "__floordiv__") X(Remainder, "__mod__") X(Power, "__pow__")         \
      X(Matmul, "__matmul__") X(And, "__and__") X(Or, "__or__") X(Xor, "__xor__") X(LeftShift, "__lshift__")      \
          X(RightShift, "__rshift__") X(Negative, "__neg__") X(Positive, "__pos__") X(Absolute, "__abs__")        \
              X(Invert, "__invert__") X(Less, "__lt__") X(LessEqual, "__le__") X(Equal, "__eq__")                 \
                  X(NotEqual, "__ne__") X(Greater, "__gt__") X(GreaterEqual, "__ge__") X(Select, "select")        \
                      X(Slice, "slice") X(Squeeze, "squeeze") X(Unsqueeze, "unsqueeze") X(Permute, "permute")     \
                          X(Gather, "gather") X(Scatter, "scatter") X(Positions, "positions") X(Assign, "assign") \
                              X(Cast, "cast") X(Copy, "copy")

enum class Slot : unsigned {
#define BP_SLOT(name, text) name,
  BP_PYTHON_SLOTS(BP_SLOT)
#undef BP_SLOT
      Count
};

extern OpHandle g_slot_ops[static_cast<unsigned>(Slot::Count)];

inline OpHandle op_of(Slot slot) noexcept { return g_slot_ops[static_cast<unsigned>(slot)]; }
const char* slot_name(Slot slot) noexcept;

// bind_slot(slot name, full op name): unknown slots are a ValueError; an op that does not exist leaves the slot empty.
PyObject* bind_slot(PyObject* module, PyObject* args);

// The op of a slot, or BP_NO_OP with a Python error that names both.
OpHandle require_op(Slot slot) noexcept;

}  // namespace backplane::python

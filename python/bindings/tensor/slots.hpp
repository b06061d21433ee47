// The ops that Python's syntax needs: which op serves `+`, `@`, `x[i]`, `x[i] = v`. The binding of a slot to an op is
// data in the package (backplane/_calls/_syntax.py), handed over once at import; handles are then read from a plain
// array.
//
// Written under the interpreter lock at import and only read afterwards.
#pragma once

#include <array>

#include "backplane/abi/host.h"
#include "backplane/op.hpp"
#include "bindings/interpreter/py_ref.hpp"

namespace backplane::python {

enum class Slot : unsigned {
  Add,
  Subtract,
  Multiply,
  TrueDivide,
  FloorDivide,
  Remainder,
  Power,
  Matmul,
  And,
  Or,
  Xor,
  LeftShift,
  RightShift,
  Negative,
  Positive,
  Absolute,
  Invert,
  Less,
  LessEqual,
  Equal,
  NotEqual,
  Greater,
  GreaterEqual,
  Select,
  Slice,
  Squeeze,
  Unsqueeze,
  Permute,
  Gather,
  Scatter,
  Positions,
  Fill,
  Assign,
  Cast,
  Copy,
  Conj,
  StopGradient,
  Count
};

extern std::array<OpHandle, static_cast<unsigned>(Slot::Count)> g_slot_ops;

inline OpHandle op_of(Slot slot) noexcept { return g_slot_ops[static_cast<unsigned>(slot)]; }
const char* slot_name(Slot slot) noexcept;

// bind_slot(slot name, full op name): unknown slots are a ValueError; an op that does not exist leaves the slot empty.
PyObject* bind_slot(PyObject* module, PyObject* args);

// The op of a slot, or BP_NO_OP with a Python error that names both.
OpHandle require_op(Slot slot) noexcept;

}  // namespace backplane::python

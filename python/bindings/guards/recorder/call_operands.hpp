// Where the parts of a call lie on a frame's value stack. Their order depends on the interpreter's version.
#pragma once

#include <span>

#include "bindings/guards/frame_stack.h"
#include "bindings/guards/recorder/instructions.hpp"

namespace backplane::python {

struct CallOperands {
  PyObject** callable = nullptr;     // nullptr: the stack is too short for the call
  std::span<PyObject*> arguments{};  // with the self of a method, without the names; or a tuple and a dict or NULL
  bool has_self = false;
  PyObject* names = nullptr;  // a tuple: those of the last arguments, where they lie on the stack
};

// Of an instruction that calls. Everything is borrowed, as the stack is.
CallOperands call_operands(const Instruction& instruction, const FrameStack& stack);

}  // namespace backplane::python

// What a call of a function of C reads and changes, told from its name and its arguments: the interpreter shows no
// instructions of it.
//
// Calls of Python functions show themselves when they run. All functions need the interpreter lock.
#pragma once

#include <span>
#include <string>

#include "bindings/guards/reads.hpp"

namespace backplane::python {

// A call that is about to happen: the callable and its positional arguments, then those by keyword.
struct SeenCall {
  PyObject* callable;
  std::span<PyObject* const> arguments;
  bool by_package;  // an argument goes to a function of this package, whose instructions are not looked at
};

// Notes what the call reads and stores. What it does that no graph can repeat, as reading a clock; empty: nothing.
std::string note_call(const SeenCall& call, Reads& reads, const Reads::Storing& at);

}  // namespace backplane::python

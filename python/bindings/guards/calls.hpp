// What a call of a function of C reads and changes, as its name and its arguments say: the interpreter shows no
// instructions of it.
//
// Calls of Python functions show themselves when they run. All functions need the interpreter lock.
#pragma once

#include <vector>

#include "bindings/guards/reads.hpp"

namespace backplane::python {

// A call that is about to happen: the callable and its positional arguments, then those by keyword.
struct SeenCall {
  PyObject* callable;
  std::vector<PyObject*> arguments;
  PyObject* keywords;  // a tuple of the last arguments' names, or nullptr
  bool by_package;     // of a function of this package, whose instructions are not looked at
};

// Notes what the call reads and stores, or that no graph can repeat it.
void note_call(SeenCall call, Reads& reads, const Reads::Storing& at);

}  // namespace backplane::python

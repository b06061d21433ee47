// Functions of C whose results no graph can keep: clocks, random numbers, files, the operating system.
//
// All functions need the interpreter lock, and leave no Python error.
#pragma once

#include <string>

#include "bindings/guards/reads.hpp"

namespace backplane::python {

// The function's own text under this name, as its __module__; empty: it has none.
std::string text_of_attribute(PyObject* object, const char* name);

// What the call does, as "reads a clock"; empty: nothing of the kind. `self`: the object whose method it is, or
// nullptr. A random generator or an iterator that the run made itself may be used.
std::string changing_call(PyObject* function, PyObject* self, const std::string& name, Reads& reads,
                          const Reads::Storing& at);

// Text that goes to standard output is a message of the trace.
bool is_for_messages(PyObject* file);

}  // namespace backplane::python

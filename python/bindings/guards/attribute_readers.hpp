// Calls of C functions that read attributes of objects by names that stand elsewhere: attrgetter, str.format,
// map(getattr, …), pickle.
//
// Needs the interpreter lock, and leaves no Python error.
#pragma once

#include <span>
#include <string>

#include "bindings/guards/reads.hpp"

namespace backplane::python {

void note_attribute_readers(PyObject* function, const std::string& name, const std::string& module,
                            std::span<PyObject* const> arguments, Reads& reads);

}  // namespace backplane::python

// What an op's record declares, as plain Python objects: for tools (opcheck) and for people.
#pragma once

#include <pybind11/pybind11.h>

namespace backplane::python {

// op_facts(op): see the function's documentation.
void bind_op_facts(pybind11::module_& module);

}  // namespace backplane::python

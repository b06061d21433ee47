// Binds ops that take a function: checkpoint and custom_function, over flat lists of tensors
// (backplane/_transforms/_custom.py).
#pragma once

#include <pybind11/pybind11.h>

namespace backplane::python {

void bind_graph_function(pybind11::module_& module);

}  // namespace backplane::python

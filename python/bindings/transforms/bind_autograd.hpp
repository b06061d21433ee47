// The autograd functions of backplane._core that are called once per step or less: grad mode, gradients, hooks.
#pragma once

#include <pybind11/pybind11.h>

namespace backplane::python {

void bind_autograd(pybind11::module_& module);

}  // namespace backplane::python

// Devices, plugins, ops and counters: what backplane._core says of the process that it runs in.
#pragma once

#include <pybind11/pybind11.h>

namespace backplane::python {

void bind_system(pybind11::module_& module);

}  // namespace backplane::python

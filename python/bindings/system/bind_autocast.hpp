// Functions under the package's autocast (_autocast.py).
#pragma once

#include <pybind11/pybind11.h>

namespace backplane::python {

void bind_autocast(pybind11::module_& module);

}  // namespace backplane::python

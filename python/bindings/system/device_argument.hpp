// A device or a dtype among a function's arguments.
#pragma once

#include <pybind11/pybind11.h>

#include "backplane/device.hpp"

namespace backplane::python {

// From a Device or its name. Throws Error with the function's name.
bp_device device_argument(const pybind11::object& object, const char* function);

// From any object that read_dtype takes. Throws Error with the function's name, or the Python error of the conversion.
bp_dtype dtype_argument(const pybind11::handle& object, const char* function);

}  // namespace backplane::python

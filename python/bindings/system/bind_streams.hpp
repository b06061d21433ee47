// Streams, events, recordings, profiles, pinned memory and features of devices, as backplane/_runtime/_streams.py,
// _profile.py and _system.py wrap them.
#pragma once

#include <pybind11/pybind11.h>

namespace backplane::python {

void bind_streams(pybind11::module_& module);

}  // namespace backplane::python

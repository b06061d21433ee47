// The reader under bp.load: a safetensors file whose tensors are read one by one (_files/_safetensors.py).
#pragma once

#include <pybind11/pybind11.h>

namespace backplane::python {

void bind_tensor_file(pybind11::module_& module);

}  // namespace backplane::python

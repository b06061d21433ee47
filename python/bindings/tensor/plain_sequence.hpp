// Nested lists and tuples of Python's own floats and ints, the commonest data, straight into a tensor's memory.
#pragma once

#include <vector>

#include "backplane/tensor.hpp"
#include "bindings/interpreter/py_ref.hpp"

namespace backplane::python {

// A new host tensor of `shape`, which was found along the first elements: of `dtype` or, where that is BP_DTYPE_NONE,
// of the dtype that such numbers have. An empty tensor where the whole is to be read with more care: other containers
// or numbers, levels of several lengths, other dtypes, ints that a dtype may not hold. Runs no Python code; needs the
// interpreter lock. Throws Error.
Tensor tensor_of_plain_numbers(PyObject* object, const std::vector<int64_t>& shape, bp_dtype dtype);

}  // namespace backplane::python

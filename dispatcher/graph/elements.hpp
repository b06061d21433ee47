// Elements of small tensors as numbers, and back, to the bit.
#pragma once

#include <string>
#include <vector>

#include "backplane/tensor.hpp"

namespace backplane::core::graph {

// "1.5, -inf, 2.0"; two numbers per complex element. Empty where a number would not read back to the bit: a NaN that is
// not the usual one. Of a tensor without elements too.
std::string elements_text(const Tensor& tensor);
// Whether `text` is an element of the dtype (of a complex one: half of it), which is appended to `bytes`.
bool append_element(std::vector<char>& bytes, bp_dtype dtype, const std::string& text);

}  // namespace backplane::core::graph

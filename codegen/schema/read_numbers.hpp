// Tensors that a sample states by their elements: `[[1, 2], [3, 4]]`.
#pragma once

#include "schema/reader.hpp"

namespace backplane::codegen {

// Nested lists of numbers and bools as a shape and a generator `values([...])`; a single one has no dims.
void read_numbers(ValueReader& reader, const YamlNode& node, TensorSample& tensor);

}  // namespace backplane::codegen

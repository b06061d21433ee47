// Is a result the reference's, in the terms of the registry: within tolerance * eps(dtype) * growth(n)?
#pragma once

#include <string>
#include <vector>

#include "array.hpp"
#include "registry.hpp"

namespace backplane::conformance {

// "" where all results agree; else the first difference, with its index and values. `slack` multiplies the bound.
std::string difference(const Entry& entry, std::vector<Array> found, std::vector<Array> expected, double slack = 1);

}  // namespace backplane::conformance

// Samples at other sizes, of ops whose shape is stated by a formula: where an elementwise op has `long` and `empty`.
#pragma once

#include <string>
#include <vector>

#include "call.hpp"
#include "subject.hpp"

namespace backplane::conformance {

struct Resized {
  std::string check;  // "long", "empty"
  Inputs inputs;
};

// For each size that an axis of the sample has: all axes of that size much longer, and without elements. None where
// nothing but the kernel states the result. The op may refuse them, as where an attribute states the size as well.
std::vector<Resized> resized(const Subject& subject, const Entry& entry, size_t sample, bp_dtype dtype);

}  // namespace backplane::conformance

// The ways in which a sample is called: as it is written, in other layouts, with given outputs, and what an elementwise
// op allows besides: broadcast, longer, without elements, of special values, of mixed dtypes.
#pragma once

#include <string>
#include <vector>

#include "call.hpp"

namespace backplane::conformance {

struct Variant {
  std::string check;  // its name in reports
  Inputs inputs;
  CallOptions options;
  bool same_inputs = false;  // those of the first variant, so that its reference serves
};

// Can results be written into given tensors?
bool takes_outs(const Entry& entry);

// The first is the sample as it is written.
std::vector<Variant> variants_of(const Entry& entry, const Inputs& inputs, bp_dtype dtype);

}  // namespace backplane::conformance

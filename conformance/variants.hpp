// The ways in which a sample is called: as it is written, in other layouts, with given outputs, and what an elementwise
// op allows besides: broadcast, longer, without elements, of special values, of mixed dtypes.
#pragma once

#include <optional>
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

// An elementwise sample with more than 2^17 elements. Nothing where the op is another one, or has no axes.
std::optional<Inputs> many_elements(const Entry& entry, const Inputs& inputs);

// With integers that neither int32 nor float64 holds in the arguments that promote. Nothing where none is of 64 bits.
std::optional<Inputs> with_large_integers(const Inputs& inputs);

// The element at a place of the results alone, of inputs that broadcast to their shape.
Inputs element_of(const Inputs& inputs, const std::vector<int64_t>& shape, size_t at);

// The first is the sample as it is written.
std::vector<Variant> variants_of(const Entry& entry, const Inputs& inputs, bp_dtype dtype);

}  // namespace backplane::conformance

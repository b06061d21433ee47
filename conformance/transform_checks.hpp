// Forward mode and batching of a sample, for mode grad.
#pragma once

#include <string>
#include <vector>

#include "trial.hpp"

namespace backplane::conformance {

// The outcome, or the reason why there is none: NOT_IMPLEMENTED for an op without such a rule.
struct Transformed {
  bp_status status = BP_OK;
  std::string message;
  std::vector<Array> results;
};

// The tangents of the differentiable results, where the tensors at the positions `of` move along `directions`.
Transformed tangents(const Entry& entry, const Inputs& inputs, bp_device device, const std::vector<size_t>& of,
                     const std::vector<Array>& directions);

// Can the sample be batched, and does it then give the same numbers twice?
bool batches(const Entry& entry, const Inputs& inputs);
// The results of all rows, one after another: by vmap over stacked inputs, and row by row.
Transformed batched(const Entry& entry, const std::vector<Inputs>& rows, bp_device device);
Transformed one_by_one(const Entry& entry, const std::vector<Inputs>& rows, bp_device device);

}  // namespace backplane::conformance

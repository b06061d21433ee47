// Convolutions that run with the ops behind them: additions, products and bounds of one number per channel or in all,
// and normalisation by given moments. Each result but the last is read by the next node alone.
#pragma once

#include <vector>

#include "fuse/space.hpp"

namespace backplane::cpu::fuse {

struct ConvStep {
  enum class Kind { kAdd, kSubtract, kSubtractFrom, kMultiply, kNormalize, kLow, kHigh };
  Kind kind;
  // Numbers, values (REF) or absent: one, or of kNormalize the mean, the variance, the weight and the bias.
  bp_value operands[4] = {};
  double eps = 0;           // of kNormalize
  bool keeps_ties = false;  // of a bound: a zero beside a zero of another sign
};

struct ConvChain {
  std::vector<uint32_t> nodes;  // the convolution first
  std::vector<ConvStep> steps;
};

// The chains of a graph, in float32 and of known sizes. `device`: only its values are taken.
std::vector<ConvChain> conv_chains(const GraphView& graph, bp_device device);

}  // namespace backplane::cpu::fuse

// Which ops run with a convolution in one region (fuse/conv_chains.hpp): the convolution, and what may stand behind it
// beside the links of chains (chain_link.hpp).
//
// The file of an op's row makes it known through a ConvStepOp at namespace scope.
#pragma once

#include <cstdint>
#include <string_view>

namespace backplane::cpu {

// kNormalize: (x, mean, variance, weight, bias, eps). Bounds have a second operand, or are two Scalars, or 0 below. At
// a tie with an operand the operand is the result, with a Scalar or 0 the first one: their zeros may have other signs.
enum class ConvRole : uint8_t { kConvolution, kNormalize, kLow, kHigh, kScalarBounds, kZeroBelow };

// Lives as long as the process.
class ConvStepOp {
 public:
  ConvStepOp(const char* op, ConvRole role_of_op) : role(role_of_op), op_(op), next_(first_) { first_ = this; }
  ConvStepOp(const ConvStepOp&) = delete;
  ConvStepOp& operator=(const ConvStepOp&) = delete;

  static const ConvStepOp* find(std::string_view op) {
    const ConvStepOp* each = first_;
    while (each != nullptr && each->op_ != op) each = each->next_;
    return each;
  }
  const ConvRole role;

 private:
  static inline constinit const ConvStepOp* first_ = nullptr;
  std::string_view op_;
  const ConvStepOp* next_;
};

}  // namespace backplane::cpu

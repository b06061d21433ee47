// The shapes of a call's results, each inferred where it is first asked for.
#pragma once

#include <memory>

#include "call/dispatch.hpp"
#include "record/shape_rules.hpp"

namespace backplane::core {

// Lives as long as the call.
class ResultShapes {
 public:
  explicit ResultShapes(const Call& call) : call_(call) {}
  ResultShapes(const ResultShapes&) = delete;
  const ShapeResult& of(int32_t result) {
    if (result > 0 && shares_first_shape(*call_.op.record, result)) return of(0);
    if (result > 0 && !others_) others_.reset(new ShapeResult[static_cast<size_t>(call_.n_outs - 1)]);
    ShapeResult& shape = result == 0 ? first_ : others_[static_cast<size_t>(result - 1)];
    if (!(known_ >> result & 1)) {
      infer_shape(*call_.op.record, call_.args, call_.n_args, result, shape);
      known_ |= 1u << result;
    }
    return shape;
  }
  // Throws where the op's shape rule refuses the arguments; of a rule that depends on values, nothing is asked.
  void check() {
    if (call_.op.flags & BP_OP_DYNAMIC) return;
    for (int32_t i = 0; i < call_.n_outs; ++i) of(i);
  }

 private:
  const Call& call_;
  uint32_t known_ = 0;
  ShapeResult first_;  // a kilobyte: the others are not on the stack
  std::unique_ptr<ShapeResult[]> others_;
};

}  // namespace backplane::core

// Results that a kernel or a decomposition made, against what the op's rules say of them.
#pragma once

#include <vector>

#include "call/result_shapes.hpp"

namespace backplane::core {

// The results of a row with BP_KERNEL_OWN_RESULTS: compares the rules' dtypes and shapes with the tensors that the
// kernel stores.
class OwnResults {
 public:
  // Throws for an unfit output of the caller's.
  OwnResults(const Call& call, Device& device, bp_dtype compute, ResultShapes& shapes);
  void check(const bp_value* outs) const;

 private:
  struct Expected {
    const ShapeResult* shape = nullptr;
    bp_dtype dtype = BP_DTYPE_NONE;  // NONE: the kernel decides
  };
  void check_tensor(int32_t i, const bp_value& found) const;
  const Call& call_;
  Device& device_;
  std::vector<Expected> expected_;
};

// What a decomposition gave against the op's rules.
void check_decomposed(const Call& call, const bp_value* results);

}  // namespace backplane::core

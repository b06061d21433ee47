// An op of a whole axis, such as a sum or a running sum, with the values of its other arguments.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backplane/op.hpp"

namespace backplane::numpy {

class AxisCall {
 public:
  AxisCall() = default;
  // Throws if there is no such op, or if an argument after the first has no default and is not an axis.
  explicit AxisCall(const std::string& full_name);

  explicit operator bool() const { return op_ != BP_NO_OP; }
  // Of a tensor of one axis, in its dtype where the op has an argument for that. Throws unless the first result has
  // `ndim` axes and the dtype `expected`.
  Tensor operator()(const Tensor& x, int32_t ndim, bp_dtype expected) const;

 private:
  std::string name_;
  OpHandle op_ = BP_NO_OP;
  std::shared_ptr<const bp_op_def> def_;  // owns the defaults
  std::vector<bp_value> args_;
  int dtype_ = -1;  // which argument is the dtype
};

}  // namespace backplane::numpy

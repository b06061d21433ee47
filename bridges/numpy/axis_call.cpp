#include "axis_call.hpp"

#include <cstring>

namespace backplane::numpy {

AxisCall::AxisCall(const std::string& full_name) : name_(full_name), op_(find_op(full_name)) {
  BP_CHECK(op_ != BP_NO_OP, VALUE, "numpy.ufunc: found ", full_name, ", which is not an op; load its plugin first");
  def_ = hold_op_def(op_);
  for (uint32_t i = 0; i < def_->results.count; ++i) {
    const auto& result = *reinterpret_cast<const bp_result_def*>(static_cast<const char*>(def_->results.data) +
                                                                 size_t{i} * def_->results.stride);
    BP_CHECK(!(result.flags & BP_ARG_LIST), VALUE, "numpy.ufunc: ", full_name, " gives a list of tensors");
  }
  for (uint32_t i = 0; i < def_->args.count; ++i) {
    const auto& arg =
        *reinterpret_cast<const bp_arg_def*>(static_cast<const char*>(def_->args.data) + size_t{i} * def_->args.stride);
    args_.push_back(arg.default_value);
    if (i == 0) {
      BP_CHECK(arg.type == BP_TYPE_TENSOR && !(arg.flags & BP_ARG_LIST), VALUE, "numpy.ufunc: the first argument of ",
               full_name, " is not a tensor; expected an op of one axis");
      continue;
    }
    if (arg.type == BP_TYPE_AXIS) args_.back() = value(int64_t{0});
    if (arg.type == BP_TYPE_DTYPE && std::strcmp(arg.name, "dtype") == 0) dtype_ = static_cast<int>(i);
    BP_CHECK(arg.type == BP_TYPE_AXIS || arg.flags & (BP_ARG_HAS_DEFAULT | BP_ARG_OPTIONAL), VALUE,
             "numpy.ufunc: argument \"", arg.name, "\" of ", full_name,
             " has no default; expected an op that takes a tensor and an axis");
  }
}

Tensor AxisCall::operator()(const Tensor& x, int32_t ndim, bp_dtype expected) const {
  std::vector<bp_value> args = args_;
  args[0] = value(x);
  if (dtype_ >= 0) args[static_cast<size_t>(dtype_)] = dtype_value(x.dtype());
  std::vector<bp_value> outs(def_->results.count);
  if (const bp_status status = call_packed(op_, args.data(), static_cast<int32_t>(args.size()), outs.data(),
                                           static_cast<int32_t>(outs.size())))
    throw_last_error(status);
  std::vector<Tensor> results;
  for (bp_value& out : outs) results.push_back(Tensor::adopt(out.u.t));
  const Tensor& result = results[0];
  BP_CHECK(result.ndim() == ndim && result.dtype() == expected, VALUE, "numpy.ufunc: ", name_, " gave a result with ",
           result.ndim(), " axes in another form than the ufunc's loop; expected ", ndim, " axes and the loop's dtype");
  return result;
}

}  // namespace backplane::numpy

#include "record/rule_functions.hpp"

#include <memory>
#include <string>
#include <vector>

#include "record/host_table.hpp"
#include "record/mapped_value.hpp"

namespace backplane::core {

namespace {

// What a function of a plugin sees of a call: handles without data, on memory of this frame.
class DatalessArgs {
 public:
  DatalessArgs(const bp_value* args, int32_t n_args) : values_(args, args + n_args) {
    for (bp_value& value : values_) value = mapped(value, lists_, [this](const bp_tensor* t) { return hide(t); });
  }
  const bp_value* data() const { return values_.data(); }

 private:
  bp_tensor* hide(const bp_tensor* tensor) {
    auto& copy = tensors_.emplace_back(std::make_unique<bp_tensor>(*tensor));
    copy->dl.data = nullptr;
    copy->storage = nullptr;
    copy->struct_size = sizeof(bp_tensor);
    return copy.get();
  }
  std::vector<bp_value> values_;
  std::vector<std::unique_ptr<bp_tensor>> tensors_;
  TensorLists lists_;
};

[[noreturn]] void fail_function(const OpRecord& op, bp_status status) {
  throw Error(status, std::string(op.name) + ": " + host_table.get_error());
}

}  // namespace

void shape_by_function(const OpRecord& op, const bp_shape_rule& rule, const bp_value* args, int32_t n_args,
                       int32_t index, ShapeResult& out) {
  const DatalessArgs shapes(args, n_args);
  const bp_frame frame = frame_of(op);
  const bp_status status = rule.fn(&frame, shapes.data(), n_args, index, out.sizes, &out.ndim);
  if (status != BP_OK) fail_function(op, status);
}

bp_dtype dtype_by_function(const OpRecord& op, const bp_value* args, int32_t n_args, int32_t index) {
  const DatalessArgs shapes(args, n_args);
  const bp_frame frame = frame_of(op);
  bp_dtype dtype = BP_DTYPE_NONE;
  const bp_status status = op.def.dtype_fn(&frame, shapes.data(), n_args, index, &dtype);
  if (status != BP_OK) fail_function(op, status);
  BP_CHECK(dtype < BP_DTYPE_COUNT, DTYPE, op.name, ": its dtype rule gave the unknown dtype ", dtype);
  return dtype;
}

}  // namespace backplane::core

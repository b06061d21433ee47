#include "call/operand_checks.hpp"

#include <algorithm>
#include <string>

#include "call/formulas/run_formula.hpp"
#include "memory/devices/device.hpp"
#include "memory/tensors/expand.hpp"
#include "memory/tensors/overlap.hpp"
#include "record/dtype_rules.hpp"

namespace backplane::core {

void check_given(const OpEntry& op, const TensorImpl& target, const ShapeResult& shape, bp_dtype dtype,
                 Device& device) {
  BP_CHECK(&device_of(target) == &device, VALUE, op.record->name, ": out is on device ", name_of(device_of(target)),
           "; the arguments are on ", name_of(device));
  bool same = target.dl.ndim == shape.ndim && std::equal(shape.sizes, shape.sizes + shape.ndim, target.dl.shape);
  if (!same) {
    auto text = [](int32_t n, const int64_t* sizes) {
      std::string s = "(";
      for (int32_t i = 0; i < n; ++i) s += (i ? ", " : "") + std::to_string(sizes[i]);
      return s + (n == 1 ? ",)" : ")");
    };
    detail::fail(BP_ERROR_SHAPE, op.record->name, ": the output has shape ", text(target.dl.ndim, target.dl.shape),
                 "; the result has shape ", text(shape.ndim, shape.sizes));
  }
  BP_CHECK(dtype_kind(dtype) <= dtype_kind(target.dtype), DTYPE, op.record->name, ": a result of dtype ",
           kDtypeNames[dtype], " cannot be written into an output of dtype ", kDtypeNames[target.dtype],
           "; cast it first");
  check_writable(op, target);
}

void check_writable(const OpEntry& op, const TensorImpl& target) {
  BP_CHECK(target.storage, VALUE, op.record->name, ": the output has no data");
  BP_CHECK(!target.storage->read_only, VALUE, op.record->name,
           ": the output is read-only memory of another library; copy it");
  BP_CHECK(!(target.flags & kRepeats) && (is_contiguous(target) || !self_overlaps(target)), VALUE, op.record->name,
           ": several elements share the output's place in memory (of a broadcast view, as a gradient may be); copy it "
           "first");
}

Device& device_of_call(const Call& call) {
  each_tensor(call.args, call.n_args, [&](TensorImpl* t) {
    if (t->flags & BP_TENSOR_WRAPPER)
      detail::fail(BP_ERROR_VALUE, call.op.record->name,
                   ": a tensor of a transform that has ended reached a device; return it from the transformed function "
                   "instead of keeping it");
  });
  return device_of_operands(call);
}

Device& device_of_operands(const Call& call) {
  TensorImpl* first = nullptr;
  each_tensor(call.args, call.n_args, [&](TensorImpl* t) {
    if (!first) {
      first = t;
      return;
    }
    if (!same_device(*first, *t))
      detail::fail(BP_ERROR_VALUE, call.op.record->name, ": tensors on different devices: ", name_of(device_of(*first)),
                   " and ", name_of(device_of(*t)), "; move one with to(device)");
  });
  if (first) return device_of(*first);
  for (int32_t i = 0; i < call.n_args; ++i)
    if (call.args[i].tag == BP_TAG_DEVICE) return device_at(call.args[i].u.d);
  for (int32_t i = 0; i < call.n_outs; ++i)
    if (call.outs[i].flags & BP_VALUE_GIVEN) return device_of(*impl(call.outs[i].u.t));
  return device_at(device_of_numbers());
}

}  // namespace backplane::core

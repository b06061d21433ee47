// What the short way does beside the walk and the kernel's call, and how registration prepares it. See fast_call.hpp.
#include "core/fast_call.hpp"

#include "core/dtype_rules.hpp"
#include "core/owned_value.hpp"
#include "core/shape_rules.hpp"

namespace backplane::core {

bp_value make_output(const OpEntry& op, const bp_value* args, int32_t n_args, Device& device, const TensorImpl& first) {
  const OpRecord& record = *op.record;
  const bp_dtype dtype = result_dtype(record, args, n_args, 0, first.dtype);
  bp_value slot;
  if (op.short_way == ShortWay::kLikeOperands) {
    slot = tensor_value(new_tensor(device, dtype, first.dl.ndim, first.dl.shape));
  } else {
    ShapeResult shape;
    infer_shape(record, args, n_args, 0, shape);
    slot = tensor_value(new_tensor(device, dtype, shape.ndim, shape.sizes));
  }
  slot.flags = BP_VALUE_GIVEN;
  return slot;
}

// Numbers take the tensors' dtype; in a floating one, to which such calls are bound, an int is a float.
bp_status run_with_numbers(const OpEntry& op, const ShortRow& row, const bp_frame& frame, const bp_value* args,
                           int32_t n_args, bp_value* out) {
  bp_value copies[kMaxShortNumbers];
  for (int32_t i = 0; i < n_args; ++i) {
    copies[i] = args[i];
    if (args[i].tag == BP_TAG_TENSOR || !(op.record->tensor_args >> i & 1)) continue;
    copies[i].flags |= BP_VALUE_NUMBER;
    if (args[i].tag == BP_TAG_INT) copies[i].u.f = static_cast<double>(args[i].u.i);
    copies[i].tag = BP_TAG_FLOAT;
  }
  return row.fn(&frame, copies, n_args, out, 1);
}

[[gnu::cold]] void fail_short_call(const OpEntry& op, const ShortRow& row, Device& device, bp_status status,
                                   bp_value* out) {
  if (status == BP_ERROR_DEVICE_LOST) mark_lost(device, cold().error);
  release_owned(*out, [](bp_tensor* t) { release(impl(t)); });
  throw_status(status, op, row.row->owner->name.c_str());
}

ShortWay short_way(const OpRecord& record) {
  if (record.n_alike == 0 || (record.def.flags & BP_OP_COMPOSITE) || !record.simple_tensors) return ShortWay::kNone;
  if (record.results.size() != 1 || (record.results[0].flags & BP_ARG_LIST)) return ShortWay::kNone;
  if (record.def.flags & (BP_OP_VIEW | BP_OP_MAYBE_VIEW))
    return record.tensor_args == 1 && record.def.alias == 0 && record.shape_words[0] ? ShortWay::kView
                                                                                     : ShortWay::kNone;
  for (size_t i = 0; i < record.n_alike; ++i)
    if (record.args[i].type != BP_TYPE_TENSOR) return ShortWay::kNone;
  if (record.def.flags & BP_OP_ELEMENTWISE) {
    const bool all_alike = record.tensor_args == (uint64_t{1} << record.n_alike) - 1;
    return all_alike && !record.shape_formula ? ShortWay::kLikeOperands : ShortWay::kNone;
  }
  return record.def.flags & BP_OP_DYNAMIC ? ShortWay::kFromKernel : ShortWay::kInferred;
}

ShortRow short_row(const OpEntry& op, const KernelRow& row, uint32_t backend) {
  constexpr uint32_t kSlow = BP_KERNEL_MAY_DECLINE | BP_KERNEL_CASTS | BP_KERNEL_CALLS_OPS | BP_KERNEL_OWN_RESULTS;
  const uint32_t flags = row.def.flags;
  const bool elementwise = op.short_way == ShortWay::kLikeOperands;
  const bool plain = op.short_way > ShortWay::kView && !(flags & kSlow) && row.def.max_elements == 0 &&
                     row.def.revision >= op.record->def.revision && row.def.offset_alignment <= 1 &&
                     (elementwise || !(op.flags & BP_OP_REDUCTION) || !(flags & BP_KERNEL_LOOP));
  ShortRow result{.fn = row.def.fn, .row = &row};
  if (plain) result.dtypes = row.def.dtypes & op.record->alike_dtypes;
  // A loop descriptor says more than strides, and is the general way's to build; flat elementwise calls have none.
  if (!elementwise && (flags & (BP_KERNEL_STRIDED | BP_KERNEL_LOOP))) result.granted_flags = BP_TENSOR_CONTIGUOUS;
  result.immediates = (flags & BP_KERNEL_IMMEDIATES) != 0;
  result.inplace = elementwise && (flags & BP_KERNEL_INPLACE);
  result.frame.header = BP_HEADER(bp_frame);
  result.frame.host = &host_table;
  result.frame.op = &op.record->info;
  result.frame.context = row.def.context;
  result.frame.backend = backend;
  return result;
}

}  // namespace backplane::core

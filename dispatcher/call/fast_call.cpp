// What the fast path does beside the scan and the kernel's call. See fast_call.hpp.
#include "call/fast_call.hpp"

#include "record/dtype_rules.hpp"
#include "record/owned_value.hpp"
#include "record/resolved_args.hpp"
#include "record/shape_rules.hpp"

namespace backplane::core {

bp_value make_output(const OpEntry& op, FastPath path, const bp_value* args, int32_t n_args, Device& device,
                     const TensorImpl& first) {
  const OpRecord& record = *op.record;
  const bp_dtype dtype = result_dtype(record, args, n_args, 0, first.dtype);
  bp_value slot;
  if (path == FastPath::kLikeOperands) {
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
bp_status run_with_numbers(const OpEntry& op, const FastRow& row, const bp_frame& frame, const bp_value* args,
                           int32_t n_args, bp_value* out) {
  bp_value copies[kMaxFastNumbers];
  for (int32_t i = 0; i < n_args; ++i) {
    copies[i] = args[i];
    if (args[i].tag == BP_TAG_TENSOR || !(op.record->tensor_args >> i & 1)) continue;
    copies[i].flags |= BP_VALUE_NUMBER;
    if (args[i].tag == BP_TAG_INT) copies[i].u.f = static_cast<double>(args[i].u.i);
    copies[i].tag = BP_TAG_FLOAT;
  }
  return row.fn(&frame, copies, n_args, out, 1);
}

[[gnu::noinline]] bp_status run_resolved(const OpEntry& op, const FastRow& row, const bp_frame& frame,
                                         const bp_value* args, bp_value* out) {
  bp_value copies[kMaxFastArgs];
  std::copy(args, args + op.n_args, copies);
  ResolvedLists lists;
  resolve_args(*op.record, copies, lists);
  return row.fn(&frame, copies, op.n_args, out, 1);
}

[[gnu::cold]] void fail_fast_call(const OpEntry& op, const FastRow& row, Device& device, bp_status status,
                                  bp_value* out) {
  if (status == BP_ERROR_DEVICE_LOST) mark_lost(device, cold().error);
  release_owned(*out, [](bp_tensor* t) { release(impl(t)); });
  throw_status(status, op, row.row->owner->name.c_str());
}

}  // namespace backplane::core

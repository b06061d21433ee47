// What the fast path does beside the scan and the kernel's call. See fast_call.hpp.
#include "call/fast_call.hpp"

#include "record/dtype_rules.hpp"
#include "record/owned_value.hpp"
#include "record/resolved_args.hpp"
#include "record/shape_rules.hpp"

namespace backplane::core {

namespace {

// Of an argument that is no tensor. Numbers are taken where all operands have one shape and dtype, and an absent tensor
// where the op does not compute with it.
uint32_t traits_of_other(const OpEntry& op, const bp_value& v, int32_t i) {
  uint32_t traits = ~0u;
  if (is_special_number(v) || v.tag == BP_TAG_TENSOR_LIST) traits &= ~Operands::kPlain;
  if (v.tag == BP_TAG_TENSOR_LIST || i >= 64 || !(op.record->tensor_args >> i & 1)) return traits;
  const bool number = op.fast_path == FastPath::kLikeOperands && (v.tag == BP_TAG_FLOAT || v.tag == BP_TAG_INT);
  const bool left_out = v.tag == BP_TAG_ABSENT && !(op.record->needed_tensors >> i & 1) && i >= op.record->n_alike;
  if (v.tag != BP_TAG_ABSENT) traits &= ~Operands::kNoNumbers;
  if (!number && !left_out) traits &= ~Operands::kPlain;
  return traits;
}

}  // namespace

Operands read_any_operands(const OpEntry& op, const bp_value* args, uint64_t& keys) {
  Operands sum;
  keys = 0;
  each_tensor(args, op.n_args, [&](TensorImpl* t) { keys |= t->keys; });
  for (int32_t i = 0; i < op.n_args; ++i) {
    if (args[i].tag != BP_TAG_TENSOR) {
      sum.traits &= traits_of_other(op, args[i], i);
      continue;
    }
    const TensorImpl& t = *impl(args[i].u.t);
    sum.traits &= t.flags | Operands::kPlain | Operands::kNoNumbers;
    if (!sum.first) sum.first = &t;
    const TensorImpl& x = *sum.first;
    if (!t.storage || !same_device(t, x) || (t.dtype != x.dtype && i < op.record->n_alike) ||
        (op.fast_path == FastPath::kLikeOperands && !same_shape(t, x)))
      sum.traits &= ~Operands::kPlain;
  }
  return sum;
}

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

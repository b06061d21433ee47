// What the fast path does beside the scan and the kernel's call. See fast_call.hpp.
#include "call/fast_call.hpp"

#include <algorithm>

#include "call/result_shapes.hpp"
#include "memory/tensors/overlap.hpp"
#include "record/dtype_rules.hpp"
#include "record/owned_value.hpp"
#include "record/resolved_args.hpp"
#include "record/shape_rules.hpp"

namespace backplane::core {
namespace {

// Stands in a fast row for a kernel that receives resolved arguments, so that other calls ask nothing; the row is the
// frame's context.
bp_status run_resolved(const bp_frame* given, const bp_value* args, int32_t n_args, bp_value* outs, int32_t n_outs) {
  const KernelRow& row = *static_cast<const KernelRow*>(given->context);
  bp_frame frame = *given;
  frame.context = row.def.context;
  bp_value copies[kMaxFastArgs];
  std::copy(args, args + n_args, copies);
  ResolvedLists lists;
  try {
    resolve_args(*op_entry(frame.op->op)->record, copies, lists);
  } catch (...) {
    return status_of_exception();
  }
  return row.def.fn(&frame, copies, n_args, outs, n_outs);
}

// May the row write straight into it?
bool takes_result(const TensorImpl& target, const OpEntry& op, const FastRow& row, const bp_value* args,
                  const TensorImpl& first) {
  constexpr uint32_t kForm = BP_TENSOR_CONTIGUOUS | BP_TENSOR_NUMBER | kRepeats;
  if (!target.storage || target.storage->read_only || (target.flags & kForm) != BP_TENSOR_CONTIGUOUS) return false;
  if (!same_device(target, first) || !same_shape(target, first)) return false;
  if (result_dtype(*op.record, args, op.n_args, 0, first.dtype) != target.dtype) return false;
  for (int32_t i = 0; i < op.n_args; ++i)
    if (args[i].tag == BP_TAG_TENSOR && clashes(target, *impl(args[i].u.t), row.inplace)) return false;
  return true;
}

// The outputs of one call, until the caller has them.
struct FreshResults {
  FreshResults() = default;
  FreshResults(const FreshResults&) = delete;
  ~FreshResults() {
    for (int32_t i = 0; i < count; ++i) release(impl(values[i].u.t));
  }
  void add(TensorImpl* tensor) {
    values[count] = tensor_value(tensor);
    values[count++].flags = BP_VALUE_GIVEN;
  }
  void hand_to(bp_value* outs) {
    for (int32_t i = 0; i < count; ++i) {
      outs[i] = values[i];
      outs[i].flags = 0;
    }
    count = 0;
  }

  bp_value values[kMaxFastResults];
  int32_t count = 0;
};

[[gnu::constructor]] void register_resolved() { handlers.resolved = run_resolved; }

}  // namespace

bp_value make_output(const OpEntry& op, FastPath path, const bp_value* args, int32_t n_args, Device& device,
                     const TensorImpl& first) {
  const OpRecord& record = *op.record;
  if (record.adds_in_stated && stated_compute_dtype(record, args, first.dtype) != first.dtype) return {};
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

bool call_fast_into(const OpEntry& op, const Plan& plan, const bp_value* args, const bp_value& out, uint64_t mask,
                    const Operands& operands) {
  if (out.flags != BP_VALUE_GIVEN || out.tag != BP_TAG_TENSOR || must_decompose(op)) return false;
  const TensorImpl& target = *impl(out.u.t);
  if (intercepting(plan, target.keys_seen(), mask)) return false;
  if (target.keys_seen() & kViewKey) [[unlikely]]
    if (is_stale(target) || (is_unrecorded_view(target) && !thread_state.grad_disabled)) return false;
  const FastRow* row = fast_row_for(plan, op.n_args, operands);
  if (!row || !takes_result(target, op, *row, args, *operands.first)) return false;
  bp_value result = out, none{};
  if (const bp_status status = try_fast_row(op, *row, args, op.n_args, &result, mask, operands)) [[unlikely]]
    fail_fast_call(op, *row, *target.storage->device, status, &none);  // the output stays the caller's
  target.storage->version.fetch_add(1, std::memory_order_relaxed);
  return true;
}

template <>
bool call_fast<FastPath::kSeveral>(const OpEntry& op, const Plan& plan, const bp_value* args, bp_value* outs,
                                   uint64_t mask, Operands operands) {
  for (int32_t i = 0; i < op.n_results; ++i)
    if (outs[i].flags != 0) return false;
  if (operands.numbers() || must_decompose(op)) return false;
  const FastRow* row = fast_row_for(plan, op.n_args, operands);
  if (!row) return false;
  Device& device = *operands.first->storage->device;
  const Call call{op, args, op.n_args, outs, op.n_results, mask};
  ResultShapes shapes(call);
  FreshResults made;
  for (int32_t i = 0; i < op.n_results; ++i) {
    const ShapeResult& shape = shapes.of(i);
    const bp_dtype dtype = result_dtype(*op.record, args, op.n_args, i, operands.first->dtype);
    made.add(new_tensor(device, dtype, shape.ndim, shape.sizes));
  }
  bp_frame frame = row->frame;
  frame.ordinal = operands.first->ordinal;
  frame.keys = mask;
  frame.compute = operands.first->dtype;
  bp_value none{};
  if (const bp_status status = row->fn(&frame, args, op.n_args, made.values, op.n_results)) [[unlikely]]
    fail_fast_call(op, *row, device, status, &none);
  made.hand_to(outs);
  counters.kernels.store(counters.kernels.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  return true;
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

[[gnu::cold]] void fail_fast_call(const OpEntry& op, const FastRow& row, Device& device, bp_status status,
                                  bp_value* out) {
  status = status_of_kernel(device, row.row->owner, status);
  release_owned(*out, [](bp_tensor* t) { release(impl(t)); });
  throw_status(status, op, row.row->owner->name.c_str());
}

}  // namespace backplane::core

#include "call/kernel_form.hpp"

#include <algorithm>

#include "call/formulas/role_calls.hpp"
#include "memory/devices/device.hpp"
#include "memory/tensors/realign.hpp"
#include "record/number_range.hpp"
#include "record/shape_rules.hpp"

namespace backplane::core {
namespace {

// Are all operands row-major over one shape and dtype, so that the kernel may run flat?
bool flat(const bp_value* args, int32_t n_args, const bp_value* outs, int32_t n_outs) {
  const bp_tensor& out = *outs[0].u.t;
  if (!is_contiguous(out) || n_outs != 1) return false;
  bool all = true;
  each_tensor(args, n_args, [&](TensorImpl* t) { all = all && is_contiguous(*t) && same_shape(*t, out); });
  return all;
}

void build_index_loop(const OpRecord& record, const bp_value* args, const bp_value* outs, LoopStorage& loop) {
  const bp_shape_rule& rule = record.shapes[0];
  const auto tensor = [&](uint32_t i) { return args[i].tag == BP_TAG_TENSOR ? args[i].u.t : nullptr; };
  const bp_value& list = args[rule.args[1]];
  const bool writes = rule.n_args > 2;
  core::build_index_loop(*outs[0].u.t, tensor(rule.args[0]), {list.u.tensors, list.count}, writes,
                         writes ? tensor(rule.args[2]) : nullptr, loop);
}

}  // namespace

bool fits_layout(const TensorImpl& t, const KernelRow& row) {
  return (row.def.flags & (BP_KERNEL_STRIDED | BP_KERNEL_LOOP)) || is_contiguous(t);
}

bool is_aligned(const TensorImpl& t, uint64_t alignment) { return alignment <= 1 || t.dl.byte_offset % alignment == 0; }

uint64_t alignment_of(const KernelRow& row, const Device& device) {
  return std::max<uint64_t>(row.def.offset_alignment, device.properties.alignment);
}

TensorImpl* prepare_tensor(TensorImpl* t, const KernelRow& row, Device& device, bool in_compute, bp_dtype compute,
                           Temporaries& temporaries) {
  if (in_compute && t->dtype != compute) t = temporaries.keep(roles::cast(t, compute, 0));
  if (!fits_layout(*t, row)) t = temporaries.keep(roles::copy(t, 0));
  if (!is_aligned(*t, alignment_of(row, device)))
    t = temporaries.keep(realigned(*t, device, alignment_of(row, device)));
  return t;
}

// One that only uint64 holds reaches other dtypes as a float.
bp_value prepare_scalar(const OpRecord& record, int32_t arg, const bp_value& number, bp_dtype compute) {
  if (compute != BP_DTYPE_NONE && !(record.def.dtype_flags & BP_DTYPE_WRAPS))
    check_number(compute, number, record, arg);
  const bool exact = compute != BP_DTYPE_NONE && (BP_DTYPE_BIT(compute) & BP_MASK_INTEGER);
  return exact || !(number.flags & BP_VALUE_UINT64) ? number : value(real_of_number(number));
}

bool needs_loop(const Call& call, const KernelRow& row, const bp_value* args, const bp_value* outs) {
  if (!(row.def.flags & BP_KERNEL_LOOP)) return false;
  if (call.op.record->indexes) return true;
  if (!(call.op.flags & (BP_OP_ELEMENTWISE | BP_OP_REDUCTION))) return false;
  return !(call.op.flags & BP_OP_ELEMENTWISE) || !flat(args, call.n_args, outs, call.n_outs);
}

void build_loop(const Call& call, const bp_value* args, const bp_value* outs, LoopStorage& loop) {
  if (call.op.record->indexes) return build_index_loop(*call.op.record, args, outs, loop);
  const bp_tensor* operands[kMaxLoopOperands];
  int32_t n = 0;
  auto add = [&](const bp_tensor* t) {
    BP_CHECK(n < kMaxLoopOperands, VALUE, call.op.record->name, ": more than ", kMaxLoopOperands, " operands");
    operands[n++] = t;
  };
  for (int32_t i = 0; i < call.n_outs; ++i) add(outs[i].tag == BP_TAG_TENSOR ? outs[i].u.t : nullptr);
  for (int32_t i = 0; i < call.n_args; ++i) {
    if (call.op.record->args[static_cast<size_t>(i)].type != BP_TYPE_TENSOR) continue;
    if (args[i].tag == BP_TAG_TENSOR_LIST)
      for (uint32_t k = 0; k < args[i].count; ++k) add(args[i].u.tensors[k]);
    else
      add(args[i].tag == BP_TAG_TENSOR ? args[i].u.t : nullptr);
  }
  if (call.op.flags & BP_OP_ELEMENTWISE) {
    build_elementwise_loop(operands, n, loop);
    return;
  }
  // A reduction: which axes go is the shape rule's second parameter.
  const bp_shape_rule& rule = call.op.record->shapes[0];
  const bp_value& input = args[rule.args[0]];
  const int32_t ndim = input.tag == BP_TAG_TENSOR ? input.u.t->dl.ndim : 0;  // a number has no axes
  int32_t axes[kMaxRank];
  int32_t n_axes = 0;
  const bp_value* axis = rule.n_args > 1 && rule.args[1] != BP_NO_ARG ? &call.args[rule.args[1]] : nullptr;
  if (!axis || axis->tag == BP_TAG_ABSENT)
    for (; n_axes < ndim; ++n_axes) axes[n_axes] = n_axes;
  else if (axis->tag == BP_TAG_INT)
    axes[n_axes++] = normalize_axis(*call.op.record, axis->u.i, ndim);
  else
    for (uint32_t k = 0; k < axis->count; ++k) axes[n_axes++] = normalize_axis(*call.op.record, axis->u.ints[k], ndim);
  build_reduction_loop(operands, call.n_outs, operands + call.n_outs, n - call.n_outs, axes, n_axes, loop);
}

}  // namespace backplane::core

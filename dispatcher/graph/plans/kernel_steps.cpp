#include "graph/plans/kernel_steps.hpp"

#include <algorithm>
#include <cstring>

#include "call/formulas/run_formula.hpp"
#include "call/kernel_form.hpp"
#include "call/operand_checks.hpp"
#include "call/row.hpp"
#include "memory/tensors/expand.hpp"
#include "memory/tensors/new_tensor.hpp"
#include "record/dtype_rules.hpp"
#include "record/host_table.hpp"
#include "record/number_range.hpp"

namespace backplane::core::graph {

// The row that runs a call, and its request.
struct KernelSteps::Row {
  const KernelRow* row = nullptr;
  Device* device = nullptr;
  bp_dtype compute = BP_DTYPE_NONE;
  std::vector<ShapeResult> shapes;  // of the results
  bool expands = false;             // operands come in the first result's shape
};

namespace {

constexpr uint64_t kDispatchersOwn = BP_OP_COMPOSITE | BP_OP_HIGHER_ORDER | BP_OP_DYNAMIC;

Call plain_call(const SlotCall& call, bp_value* outs) {
  return {*call.op, call.args.data(), static_cast<int32_t>(call.args.size()), outs, call.op->n_results, ~kCreationKey};
}

bool has_lists(const OpRecord& record) {
  return std::any_of(record.results.begin(), record.results.end(),
                     [](const bp_result_def& r) { return (r.flags & BP_ARG_LIST) != 0; });
}

}  // namespace

SlotId KernelSteps::add_root(TensorImpl* handle, ValueId value) {
  const auto id = static_cast<SlotId>(plan_.slots.size());
  Slot slot;
  slot.handle = Tensor::adopt(handle);
  slot.root = id;
  slot.value = value;
  plan_.slots.push_back(std::move(slot));
  return id;
}

SlotId KernelSteps::add_alias(TensorImpl* handle, SlotId base, int64_t offset) {
  Slot slot;
  slot.handle = Tensor::adopt(handle);
  slot.root = plan_.slots[base].root;
  slot.offset = plan_.slots[base].offset + offset;
  handle->dl.byte_offset = static_cast<uint64_t>(slot.offset);
  plan_.slots.push_back(std::move(slot));
  return static_cast<SlotId>(plan_.slots.size() - 1);
}

bool KernelSteps::choose(const Call& call, Row& chosen) {
  const OpRecord& record = *call.op.record;
  if ((call.op.flags & kDispatchersOwn) || has_lists(record) || call.op.withdrawn) return false;
  chosen.device = &device_of_call(call);
  chosen.compute = compute_dtype(record, call.args, call.n_args);
  if (record.def.dtype_flags & BP_DTYPE_COMPARES) {
    bp_value replaced[kMaxArgs];
    if (with_infinities(record, call.args, call.n_args, chosen.compute, replaced)) return false;
  }
  if (lacked_dtype(call, *chosen.device, chosen.compute) != BP_DTYPE_NONE) return false;
  ResultShapes shapes(call);
  chosen.row = pick_row(call, *chosen.device, chosen.compute, shapes, nullptr);
  // In an arena many values lie in one block.
  constexpr uint32_t kDispatcherPrepares = BP_KERNEL_CALLS_OPS | BP_KERNEL_OWN_RESULTS | BP_KERNEL_SEPARATE_BLOCKS;
  if (!chosen.row || (chosen.row->def.flags & kDispatcherPrepares)) return false;
  if (chosen.row->owner == core_plugin()) return false;  // a program's own, which it may replace
  for (int32_t i = 0; i < call.n_outs; ++i) chosen.shapes.push_back(shapes.of(i));
  chosen.expands = expands_operands(call.op.flags, chosen.row->def.flags);
  return true;
}

// Through a kernel of an op that the core knows by its role.
bool KernelSteps::convert(SlotId& slot, Role role, bp_dtype dtype, NodeId node) {
  const bool is_copy = role == Role::kCopy;
  if (is_copy && copies_) return false;
  SlotCall call;
  call.op = &role_op(role);
  call.node = node;
  bp_value args[kMaxArgs];
  const bp_value given[] = {tensor_value(handle(slot)), dtype_value(dtype)};
  const int32_t n = fill_defaults(*call.op->record, given, role == Role::kCast ? 2 : 1, args);
  call.args.assign(args, args + n);
  call.slots.assign(static_cast<size_t>(n), kNone);
  call.lists.resize(static_cast<size_t>(n));
  call.slots[0] = slot;
  const ValueId none = kNone;
  std::vector<SlotId> results;
  const struct Restore {
    ~Restore() { at = before; }
    bool &at, before;
  } restore{copies_, copies_};
  copies_ = copies_ || is_copy;
  if (!kernel(call, {&none, 1}, results)) return false;
  slot = results[0];
  return true;
}

// The operand in the dtype, shape, layout and alignment that the row takes.
bool KernelSteps::fit(SlotId& slot, const Row& row, bool in_compute, NodeId node) {
  if (row.expands) {
    const ShapeResult& full = row.shapes[0];
    const TensorImpl& t = *handle(slot);
    if (t.dl.ndim != full.ndim || !std::equal(full.sizes, full.sizes + full.ndim, t.dl.shape)) {
      ShapeResult shape = full;
      const int32_t missing = full.ndim - t.dl.ndim;
      if (missing < 0) return false;
      for (int32_t i = 0; i < full.ndim; ++i) {
        const bool has = i >= missing && t.dl.shape[i - missing] == full.sizes[i];
        shape.strides[i] = has ? t.dl.strides[i - missing] : 0;
      }
      shape.byte_offset = 0;
      shape.view_dtype = BP_DTYPE_NONE;
      slot = add_alias(new_view(t, shape), slot, 0);
    }
  }
  if (in_compute && handle(slot)->dtype != row.compute && !convert(slot, Role::kCast, row.compute, node)) return false;
  if (!fits_layout(*handle(slot), *row.row) && !convert(slot, Role::kCopy, BP_DTYPE_NONE, node)) return false;
  const uint64_t alignment = std::max<uint64_t>(alignment_of(*row.row, *row.device), 1);
  const bool aligned = static_cast<uint64_t>(plan_.slots[slot].offset) % alignment == 0;
  return aligned || convert(slot, Role::kCopy, BP_DTYPE_NONE, node);
}

void KernelSteps::place_number(SlotCall& call, size_t i, const Row& row, bp_dtype kind) {
  const OpRecord& record = *call.op->record;
  if (kind != BP_DTYPE_NONE) check_number(kind, call.args[i], record, static_cast<int32_t>(i));
  Temporaries temporaries;
  PlanData::Complex& parts = plan_.complex_numbers.emplace_back();
  bp_value& to = call.args[i];
  to = prepare_number(to, *row.row, *row.device, kind, parts.parts, temporaries);
  if (to.tag != BP_TAG_TENSOR) return;
  TensorImpl* t = impl(to.u.t);
  if (row.expands) t = temporaries.keep(expanded(record, *t, row.shapes[0]));
  t = prepare_tensor(t, *row.row, *row.device, false, row.compute, temporaries);
  plan_.kept.push_back(Tensor::share(t));
  to.u.t = t;
}

bool KernelSteps::prepare(SlotCall& call, const Row& row) {
  const OpRecord& record = *call.op->record;
  for (size_t i = 0; i < call.args.size(); ++i) {
    bp_value& v = call.args[i];
    const bool promotes = i < 64 && (record.def.promote >> i & 1);
    const bool in_compute = promotes && !(row.row->def.flags & BP_KERNEL_CASTS);
    if (call.slots[i] != kNone) {
      if (!fit(call.slots[i], row, in_compute, call.node)) return false;
      v = tensor_value(handle(call.slots[i]));
    } else if (v.tag == BP_TAG_TENSOR_LIST) {
      auto& list = plan_.lists.emplace_back(v.count, nullptr);
      for (uint32_t k = 0; k < v.count; ++k) {
        SlotId& slot = call.lists[i][k];
        if (slot == kNone) continue;
        if (!fit(slot, row, in_compute, call.node)) return false;
        list[k] = handle(slot);
      }
      v.u.tensors = list.data();
    } else if (record.args[i].type == BP_TYPE_TENSOR && v.tag != BP_TAG_ABSENT) {
      place_number(call, i, row, promotes ? row.compute : number_dtype(v.tag));
    } else if (record.args[i].type == BP_TYPE_SCALAR && v.tag != BP_TAG_ABSENT) {
      v = prepare_scalar(record, static_cast<int32_t>(i), v, promotes ? row.compute : bp_dtype{BP_DTYPE_NONE});
    }
  }
  if (row.row->resolves) resolve_args(record, call.args.data(), plan_.resolved.emplace_back());
  return true;
}

void KernelSteps::append(SlotCall& call, const Row& row, const std::vector<SlotId>& results) {
  std::vector<bp_value> outs;
  for (const SlotId slot : results) {
    outs.push_back(tensor_value(handle(slot)));
    outs.back().flags = BP_VALUE_GIVEN;
  }
  Step step;
  step.fn = row.row->def.fn;
  step.frame = frame_of(*call.op->record);
  step.frame.context = row.row->def.context;
  step.frame.backend = row.device->backend->index;
  step.frame.ordinal = row.device->ordinal;
  step.frame.keys = ~kCreationKey;
  step.frame.compute = row.compute;
  step.args = static_cast<uint32_t>(plan_.arguments.size());
  step.outs = step.args + static_cast<uint32_t>(call.args.size());
  step.n_args = row.row->n_args;
  step.n_outs = call.op->n_results;
  step.device = row.device;
  step.row = row.row;
  step.node = call.node;
  const Call plain = plain_call(call, outs.data());
  if (needs_loop(plain, *row.row, call.args.data(), outs.data())) {
    LoopStorage& loop = plan_.loops.emplace_back();
    build_loop(plain, call.args.data(), outs.data(), loop);
    step.frame.loop = &loop.loop;
  }
  for (size_t i = 0; i < call.args.size(); ++i) {
    const auto at = step.args + static_cast<uint32_t>(i);
    if (call.slots[i] != kNone) plan_.patches.push_back({at, call.slots[i]});
    if (call.args[i].tag == BP_TAG_TENSOR_LIST) plan_.list_patches.push_back({at, call.lists[i]});
    plan_.arguments.push_back(call.args[i]);
  }
  for (size_t i = 0; i < results.size(); ++i) {
    plan_.patches.push_back({step.outs + static_cast<uint32_t>(i), results[i]});
    plan_.arguments.push_back(outs[i]);
  }
  plan_.operand_alignment = std::max(plan_.operand_alignment, alignment_of(*row.row, *row.device));
  plan_.alignment = std::max(plan_.alignment, plan_.operand_alignment);
  plan_.plugins.push_back(row.row->owner);
  plan_.steps.push_back(step);
}

bool KernelSteps::kernel(const SlotCall& given, std::span<const ValueId> values, std::vector<SlotId>& results) {
  bp_value empty[kMaxResults] = {};
  Row row;
  const NumbersOn device(plan_.graph->device_of(plan_.graph->node(given.node)));
  if (!choose(plain_call(given, empty), row)) return false;
  // The steps for operands are removed again if an operand cannot be prepared.
  const size_t steps = plan_.steps.size(), arguments = plan_.arguments.size(), patches = plan_.patches.size();
  SlotCall call = given;
  std::vector<bp_dtype> dtypes;
  for (int32_t i = 0; i < call.op->n_results; ++i)
    dtypes.push_back(
        result_dtype(*call.op->record, given.args.data(), static_cast<int32_t>(given.args.size()), i, row.compute));
  if (!prepare(call, row)) {
    plan_.steps.resize(steps);
    plan_.arguments.resize(arguments);
    plan_.patches.resize(patches);
    std::erase_if(plan_.list_patches, [&](const auto& patch) { return patch.argument >= arguments; });
    return false;
  }
  results.clear();
  for (size_t i = 0; i < dtypes.size(); ++i)
    results.push_back(add_root(new_handle(*row.device, dtypes[i], row.shapes[i].ndim, row.shapes[i].sizes), values[i]));
  append(call, row, results);
  return true;
}

bool KernelSteps::view(const SlotCall& call, SlotId& result) {
  const OpRecord& record = *call.op->record;
  if (!(call.op->flags & (BP_OP_VIEW | BP_OP_MAYBE_VIEW)) || (call.op->flags & kDispatchersOwn)) return false;
  SlotId base = call.slots[record.def.alias];
  if (base == kNone || call.op->withdrawn) return false;
  compute_dtype(record, call.args.data(), static_cast<int32_t>(call.args.size()));
  ShapeResult shape;
  infer_shape(record, call.args.data(), static_cast<int32_t>(call.args.size()), 0, shape);
  if (shape.is_view) {
    TensorImpl* view = new_view(*handle(base), shape);
    result = add_alias(view, base, shape.byte_offset);
    return true;
  }
  if (!(call.op->flags & BP_OP_MAYBE_VIEW) || !convert(base, Role::kCopy, BP_DTYPE_NONE, call.node)) return false;
  const TensorImpl& copy = *handle(base);
  result = add_alias(new_handle(device_of(copy), copy.dtype, shape.ndim, shape.sizes), base, 0);
  return true;
}

}  // namespace backplane::core::graph

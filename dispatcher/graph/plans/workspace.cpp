#include "graph/plans/workspace.hpp"

#include <algorithm>

#include "call/formulas/role_calls.hpp"
#include "graph/plans/made_for.hpp"
#include "memory/devices/capture.hpp"
#include "memory/devices/device.hpp"

namespace backplane::core::graph {

namespace {

TensorImpl* copy_handle(Device& device, const bp_tensor& t, bp_storage* storage) {
  TensorImpl* copy = new_handle(device, t.dtype, t.dl.ndim, t.dl.shape);
  std::copy(t.dl.strides, t.dl.strides + t.dl.ndim, copy->dl.strides);
  copy->flags = t.flags;
  copy->storage = storage;
  copy->dl.data = storage ? storage->data : nullptr;
  return copy;
}

TensorImpl* row_major_copy(TensorImpl* t) { return impl(roles::copy(t, 0).detach_handle()); }

}  // namespace

void Workspace::make_handles(const PlanData& plan) {
  for (const Arena& arena : plan.arenas) arenas.push_back(new_storage(*arena.device, arena.size));
  handles.assign(plan.slots.size(), nullptr);
  for (size_t i = 0; i < plan.slots.size(); ++i) {
    const Slot& slot = plan.slots[i];
    if (!slot.used) continue;
    const bp_tensor& t = *slot.handle.get();
    const uint32_t block = plan.slots[slot.root].block;
    handles[i] =
        copy_handle(device_at({t.backend, t.ordinal}), t, block == kNone ? nullptr : arenas[plan.blocks[block].arena]);
    if (block != kNone) handles[i]->dl.byte_offset = plan.blocks[block].offset + static_cast<uint64_t>(slot.offset);
  }
}

void Workspace::patch(const PlanData& plan) {
  arguments = plan.arguments;
  for (const PlanData::Patch& p : plan.patches) arguments[p.argument].u.t = handles[p.slot];
  for (const PlanData::ListPatch& p : plan.list_patches) {
    bp_value& v = arguments[p.argument];
    auto& list = lists.emplace_back(v.u.tensors, v.u.tensors + v.count);
    for (size_t i = 0; i < p.slots.size(); ++i)
      if (p.slots[i] != kNone) list[i] = handles[p.slots[i]];
    v.u.tensors = list.data();
  }
  draws.resize(plan.draw_patches.size());
  for (size_t i = 0; i < draws.size(); ++i) arguments[plan.draw_patches[i].argument].u.g = &draws[i];
}

Workspace::Workspace(const PlanData& plan) : values(plan.graph->values().size()) {
  const CapturePause pause;  // its constants serve other runs too
  try {
    make_handles(plan);
    patch(plan);
    for (const Constant& c : plan.graph->constants()) {
      values[c.value] = c.tensor;
      if (!c.live) bind_any(plan, c.value, impl(c.tensor));
    }
    constants = std::move(copies);
    copies.clear();
    for (const bp_storage* arena : arenas) note_made_for(made_for, *arena);
    for (const Tensor& constant : constants) note_made_for(made_for, *constant.get()->storage);
  } catch (...) {
    give_back();  // no destructor will run; the members end by themselves
    throw;
  }
}

Workspace::~Workspace() { give_back(); }

void Workspace::give_back() noexcept {
  for (TensorImpl* handle : handles) {
    if (!handle) continue;
    handle->storage = nullptr;
    release(handle);
  }
  handles.clear();
  for (bp_storage* arena : arenas) release(arena);
  arenas.clear();
}

void Workspace::bind(const PlanData& plan, ValueId value, TensorImpl* tensor) {
  for (const SlotId slot : plan.bound[value]) {
    TensorImpl* handle = handles[slot];
    handle->storage = tensor->storage;
    handle->dl.data = tensor->dl.data;
    handle->dl.byte_offset = tensor->dl.byte_offset + static_cast<uint64_t>(plan.slots[slot].offset);
  }
}

void Workspace::bind_any(const PlanData& plan, ValueId value, TensorImpl* tensor) {
  if (plan.bound[value].empty()) return;
  if (!is_contiguous(*tensor) || (tensor->dl.byte_offset & (plan.operand_alignment - 1)) != 0) [[unlikely]] {
    copies.push_back(Tensor::adopt(row_major_copy(tensor)));
    tensor = impl(copies.back().get());
  }
  bind(plan, value, tensor);
}

void Workspace::forget(const PlanData& plan) noexcept {
  for (const ValueId v : plan.held) values[v] = Tensor();
  copies.clear();
  arenas_written.clear();
}

}  // namespace backplane::core::graph

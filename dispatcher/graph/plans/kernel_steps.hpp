// From a call whose operands are slots to the steps that run it: casts and copies that its kernel asks for, and the
// kernel itself.
#pragma once

#include "call/dispatch.hpp"
#include "graph/plans/plan.hpp"

namespace backplane::core::graph {

// A call's arguments, of full length, with handles in place of tensors, and the slots that those are.
struct SlotCall {
  const OpEntry* op = nullptr;
  NodeId node = kNone;
  std::vector<bp_value> args;
  std::vector<SlotId> slots;               // per argument; kNone: it is no tensor, or no slot
  std::vector<std::vector<SlotId>> lists;  // per argument that is a list; kNone: absent
};

class KernelSteps {
 public:
  explicit KernelSteps(PlanData& plan) : plan_(plan) {}

  // Appends the steps and gives the slots of the results; false, with no step appended, where the call is the
  // dispatcher's. `values`: what the results' slots are tensors of. Throws what the op's rules do.
  bool kernel(const SlotCall& call, std::span<const ValueId> values, std::vector<SlotId>& results);
  // A view's result, over the operand's bytes. False as above.
  bool view(const SlotCall& call, SlotId& result);

  SlotId add_root(TensorImpl* handle, ValueId value);
  TensorImpl* handle(SlotId slot) const { return impl(plan_.slots[slot].handle.get()); }

 private:
  struct Row;
  SlotId add_alias(TensorImpl* handle, SlotId base, int64_t offset);
  bool choose(const Call& call, Row& row);
  bool prepare(SlotCall& call, const Row& row);
  bool fit(SlotId& slot, const Row& row, bool in_compute, NodeId node);
  bool convert(SlotId& slot, Role role, bp_dtype dtype, NodeId node);
  void place_number(SlotCall& call, size_t i, const Row& row, bp_dtype kind);
  void append(SlotCall& call, const Row& row, const std::vector<SlotId>& results);

  PlanData& plan_;
  bool copies_ = false;  // while it prepares a copy, which no other copy can prepare
};

}  // namespace backplane::core::graph

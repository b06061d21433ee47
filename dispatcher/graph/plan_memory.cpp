#include "graph/plan_memory.hpp"

#include <algorithm>

#include "graph/placement.hpp"
#include "memory/device.hpp"

namespace backplane::core::graph {
namespace {

class Layout {
 public:
  Layout(PlanData& plan, const std::vector<bool>& visible, const std::vector<bool>& donated)
      : plan_(plan), visible_(visible), donated_(donated) {}
  void run();

 private:
  // The slots that a step's arguments or results are, from the patches of both kinds.
  template <class Visit>
  void each_slot(const Step& step, Visit visit);
  void find_uses();
  void choose_memory();
  void results_of(uint32_t index);
  struct Operand {
    SlotId slot;
    uint32_t index;  // among the step's arguments
  };
  bool may_take(const Step& step, int32_t out, SlotId result, const Operand& operand) const;
  SlotId donor_of(uint32_t index, int32_t out, SlotId result, const std::vector<SlotId>& taken) const;
  void place();
  void find_drops();

  PlanData& plan_;
  const std::vector<bool>& visible_;
  const std::vector<bool>& donated_;
  std::vector<uint32_t> last_;                  // step, by root; kNone: never used
  std::vector<std::vector<Operand>> operands_;  // by step
  std::vector<Lifetime> lifetimes_;             // by block
  std::vector<Device*> devices_;                // by block
  size_t patch_ = 0, list_ = 0;
};

// Steps are visited in order, as their patches stand.
template <class Visit>
void Layout::each_slot(const Step& step, Visit visit) {
  if (step.kind == Step::Kind::kCall) return;
  const uint32_t end = step.outs + static_cast<uint32_t>(step.n_outs);
  for (; patch_ < plan_.patches.size() && plan_.patches[patch_].argument < end; ++patch_)
    visit(plan_.patches[patch_].slot, plan_.patches[patch_].argument);
  for (; list_ < plan_.list_patches.size() && plan_.list_patches[list_].argument < end; ++list_)
    for (const SlotId slot : plan_.list_patches[list_].slots)
      if (slot != kNone) visit(slot, plan_.list_patches[list_].argument);
}

void Layout::find_uses() {
  const Graph& graph = *plan_.graph;
  last_.assign(plan_.slots.size(), kNone);
  operands_.resize(plan_.steps.size());
  std::vector<SlotId> root_of(graph.values().size(), kNone);
  for (const Slot& slot : plan_.slots)
    if (slot.value != kNone) root_of[slot.value] = slot.root;
  for (uint32_t s = 0; s < plan_.steps.size(); ++s) {
    const Step& step = plan_.steps[s];
    each_slot(step, [&](SlotId slot, uint32_t argument) {
      plan_.slots[slot].used = true;
      last_[plan_.slots[slot].root] = s;
      if (argument < step.outs) operands_[s].push_back({slot, argument - step.args});
    });
    if (step.kind == Step::Kind::kCall)
      Graph::each_value(graph.arguments(graph.node(step.node)), [&](ValueId v) {
        if (root_of[v] != kNone) last_[root_of[v]] = s;
      });
  }
}

// May the result take the operand's bytes, which nothing reads after this step?
bool Layout::may_take(const Step& step, int32_t out, SlotId result, const Operand& operand) const {
  const bool allowed = step.region ? step.region->may_share(static_cast<size_t>(out), operand.index)
                                   : step.n_outs == 1 && (step.row->def.flags & BP_KERNEL_INPLACE);
  if (!allowed) return false;
  const Slot& slot = plan_.slots[operand.slot];
  const bp_tensor &to = *plan_.slots[result].handle.get(), &from = *slot.handle.get();
  return slot.offset == 0 && to.dtype == from.dtype && same_device(to, from) && same_shape(to, from) &&
         is_contiguous(from) && from.nbytes == plan_.slots[slot.root].handle.get()->nbytes;
}

// The root whose bytes the result takes, or kNone. Every other operand over those bytes must show them alike.
SlotId Layout::donor_of(uint32_t index, int32_t out, SlotId result, const std::vector<SlotId>& taken) const {
  const Step& step = plan_.steps[index];
  for (const Operand& operand : operands_[index]) {
    const SlotId root = plan_.slots[operand.slot].root;
    const bool ends = last_[root] == index && std::find(taken.begin(), taken.end(), root) == taken.end();
    if (!ends || !may_take(step, out, result, operand)) continue;
    const bool alike = std::all_of(operands_[index].begin(), operands_[index].end(), [&](const Operand& other) {
      return plan_.slots[other.slot].root != root || may_take(step, out, result, other);
    });
    if (alike) return root;
  }
  return kNone;
}

void Layout::results_of(uint32_t index) {
  Step& step = plan_.steps[index];
  step.first_made = static_cast<uint32_t>(plan_.made.size());
  std::vector<SlotId> taken;  // one donor serves one result
  for (int32_t i = 0; i < step.n_outs; ++i) {
    const SlotId result = plan_.patches[patch_ - static_cast<size_t>(step.n_outs) + static_cast<size_t>(i)].slot;
    Slot& slot = plan_.slots[result];
    const SlotId donor = donor_of(index, i, result, taken);
    if (slot.value != kNone && visible_[slot.value]) {
      slot.bound = true;
      Made made{result};
      const Slot* from = donor == kNone ? nullptr : &plan_.slots[donor];
      if (from && from->value != kNone && plan_.graph->value(from->value).kind == Value::Kind::kInput &&
          !visible_[from->value]) {
        const uint32_t input = plan_.graph->value(from->value).index;
        if (input < donated_.size() && donated_[input]) made.donor = from->value;
        if (made.donor != kNone) taken.push_back(donor);
      }
      plan_.made.push_back(made);
    } else if (donor != kNone && plan_.slots[donor].block != kNone) {
      slot.block = plan_.slots[donor].block;
      lifetimes_[slot.block].last = last_[result];
      taken.push_back(donor);
    } else {
      slot.block = static_cast<uint32_t>(lifetimes_.size());
      lifetimes_.push_back({slot.handle.get()->nbytes, index, last_[result]});
      devices_.push_back(step.device);
    }
  }
  step.n_made = static_cast<uint32_t>(plan_.made.size()) - step.first_made;
}

void Layout::choose_memory() {
  patch_ = list_ = 0;
  for (uint32_t s = 0; s < plan_.steps.size(); ++s) {
    each_slot(plan_.steps[s], [](SlotId, uint32_t) {});
    if (plan_.steps[s].kind != Step::Kind::kCall) results_of(s);
  }
}

void Layout::place() {
  std::vector<Device*> devices = devices_;
  std::sort(devices.begin(), devices.end());
  devices.erase(std::unique(devices.begin(), devices.end()), devices.end());
  plan_.blocks.resize(lifetimes_.size());
  for (Device* device : devices) {
    std::vector<uint32_t> blocks;
    std::vector<Lifetime> lifetimes;
    for (uint32_t b = 0; b < lifetimes_.size(); ++b) {
      if (devices_[b] != device) continue;
      blocks.push_back(b);
      lifetimes.push_back(lifetimes_[b]);
    }
    const Placement placed = place_blocks(lifetimes, plan_.alignment);
    const auto arena = static_cast<uint32_t>(plan_.arenas.size());
    plan_.arenas.push_back({device, placed.size});
    for (size_t i = 0; i < blocks.size(); ++i) plan_.blocks[blocks[i]] = {arena, placed.offsets[i]};
    plan_.summary.arena += placed.size;
    plan_.summary.separate += placed.separate;
  }
}

// Tensors of their own go at their last use; inputs and constants are others', outputs stay.
void Layout::find_drops() {
  const Graph& graph = *plan_.graph;
  std::vector<uint32_t> last(graph.values().size(), kNone);
  for (uint32_t s = 0; s < plan_.steps.size(); ++s) {
    const Node& node = graph.node(plan_.steps[s].node);
    if (plan_.steps[s].kind == Step::Kind::kCall) {
      for (uint32_t i = 0; i < node.n_results; ++i) last[node.first_result + i] = s;
      Graph::each_value(graph.arguments(node), [&](ValueId v) { last[v] = s; });
    }
  }
  for (const Slot& slot : plan_.slots)
    if (slot.value != kNone && slot.bound && last_[slot.root] != kNone)
      last[slot.value] = last[slot.value] == kNone ? last_[slot.root] : std::max(last[slot.value], last_[slot.root]);
  for (const ValueId v : graph.outputs) last[v] = kNone;
  std::vector<std::pair<uint32_t, ValueId>> ends;
  for (ValueId v = 0; v < last.size(); ++v)
    if (last[v] != kNone && graph.value(v).kind == Value::Kind::kResult) ends.emplace_back(last[v], v);
  std::sort(ends.begin(), ends.end());
  for (const auto& [s, v] : ends) {
    Step& step = plan_.steps[s];
    if (step.n_dropped++ == 0) step.first_dropped = static_cast<uint32_t>(plan_.dropped.size());
    plan_.dropped.push_back(v);
  }
}

void Layout::run() {
  find_uses();
  choose_memory();
  place();
  find_drops();
  plan_.bound.resize(plan_.graph->values().size());
  for (SlotId id = 0; id < plan_.slots.size(); ++id) {
    const Slot& slot = plan_.slots[id];
    const Slot& root = plan_.slots[slot.root];
    if (slot.used && root.bound) plan_.bound[root.value].push_back(id);
  }
}

}  // namespace

void lay_out_memory(PlanData& plan, const std::vector<bool>& visible, const std::vector<bool>& donated) {
  Layout(plan, visible, donated).run();
}

}  // namespace backplane::core::graph

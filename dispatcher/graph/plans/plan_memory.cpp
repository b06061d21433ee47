#include "graph/plans/plan_memory.hpp"

#include <algorithm>
#include <span>

#include "graph/plans/placement.hpp"
#include "memory/devices/device.hpp"

namespace backplane::core::graph {
namespace {

// From which size on blocks may be tensors of their own: a kernel over fewer bytes takes not much longer than an
// allocation.
constexpr uint64_t kLargeBlocks[] = {uint64_t{64} << 10, uint64_t{16} << 10, uint64_t{4} << 10};

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
  void find_updates();
  bool may_fail(const Step& step) const;
  bool node_may_fail(NodeId node) const;
  void choose_memory();
  void results_of(uint32_t index);
  struct Operand {
    SlotId slot;
    uint32_t index;  // among the step's arguments
  };
  bool may_take(const Step& step, int32_t out, SlotId result, const Operand& operand) const;
  bool may_end_in(uint32_t index, int32_t out, SlotId result, const Operand& operand) const;
  SlotId donor_of(uint32_t index, int32_t out, SlotId result, const std::vector<SlotId>& taken) const;
  ValueId updated_by(uint32_t index, int32_t out, SlotId result) const;
  ValueId donated_value(SlotId donor) const;
  void bind_to(uint32_t block, SlotId shown);
  uint64_t peak_with(uint64_t large) const;
  bool may_be_made(uint32_t block, uint64_t large) const;
  SlotId shown_slot(uint32_t block) const;
  void make_large_blocks(uint64_t large);
  void list_made();
  void place();
  void place_on(Device& device, std::span<const uint32_t> blocks, std::span<const Lifetime> lifetimes);
  void find_drops();

  PlanData& plan_;
  const std::vector<bool>& visible_;
  const std::vector<bool>& donated_;
  std::vector<uint32_t> last_;                  // step, by root; kNone: never used
  std::vector<ValueId> target_of_;              // by value: what it is the next value of; kNone: nothing
  std::vector<std::vector<Operand>> operands_;  // by step
  std::vector<Lifetime> lifetimes_;             // by block
  std::vector<Device*> devices_;                // by block
  std::vector<std::vector<SlotId>> roots_;      // by block
  std::vector<std::vector<Made>> made_;         // by step
  std::vector<ValueId> bound_to_;               // by root that is bound: whose tensor it shows
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

// May the result take the bytes of the operand's root, which no later step reads? Every other operand over those bytes
// must show them alike.
bool Layout::may_end_in(uint32_t index, int32_t out, SlotId result, const Operand& operand) const {
  const Step& step = plan_.steps[index];
  const SlotId root = plan_.slots[operand.slot].root;
  return last_[root] == index && may_take(step, out, result, operand) &&
         std::all_of(operands_[index].begin(), operands_[index].end(), [&](const Operand& other) {
           return plan_.slots[other.slot].root != root || may_take(step, out, result, other);
         });
}

// The root whose bytes the result takes, or kNone.
SlotId Layout::donor_of(uint32_t index, int32_t out, SlotId result, const std::vector<SlotId>& taken) const {
  for (const Operand& operand : operands_[index]) {
    const SlotId root = plan_.slots[operand.slot].root;
    const bool is_taken = std::find(taken.begin(), taken.end(), root) != taken.end();
    if (!is_taken && may_end_in(index, out, result, operand)) return root;
  }
  return kNone;
}

// What the result may be written over, being its next value; kNone: nothing.
ValueId Layout::updated_by(uint32_t index, int32_t out, SlotId result) const {
  const ValueId target = target_of_[plan_.slots[result].value];
  if (index < plan_.first_update || target == kNone || visible_[target]) return kNone;
  for (const Operand& operand : operands_[index])
    if (plan_.slots[plan_.slots[operand.slot].root].value == target && may_end_in(index, out, result, operand))
      return target;
  return kNone;
}

// The input that the root is, if the caller donated it; else kNone.
ValueId Layout::donated_value(SlotId donor) const {
  const ValueId value = donor == kNone ? kNone : plan_.slots[donor].value;
  if (value == kNone || plan_.graph->value(value).kind != Value::Kind::kInput || visible_[value]) return kNone;
  const uint32_t input = plan_.graph->value(value).index;
  return input < donated_.size() && donated_[input] ? value : kNone;
}

// An op that states its faults finds them in integers where it is elementwise: indices, divisors, exponents.
bool Layout::node_may_fail(NodeId id) const {
  const Graph& graph = *plan_.graph;
  const Node& node = graph.node(id);
  if (node.op->record->def.faults == BP_FAULT_NONE) return false;
  if (node.op->record->def.faults == BP_FAULTS_UNSTATED) return true;
  bool floats = true;
  const auto check = [&](ValueId v) {
    floats = floats && (BP_DTYPE_BIT(graph.value(v).dtype) & (BP_MASK_FLOATING | BP_MASK_COMPLEX | BP_MASK_BOOL));
  };
  Graph::each_value(graph.arguments(node), check);
  for (uint32_t i = 0; i < node.n_results; ++i) check(node.first_result + i);
  return !floats;
}

bool Layout::may_fail(const Step& step) const {
  if (step.kind == Step::Kind::kRegion)
    return std::any_of(step.region->nodes().begin(), step.region->nodes().end(),
                       [&](NodeId node) { return node_may_fail(node); });
  const Node& node = plan_.graph->node(step.node);
  return step.kind == Step::Kind::kCall || node.op->fast_path != FastPath::kLikeOperands || node_may_fail(step.node);
}

// A run that fails must leave the tensors that it would update as they are. So only the last steps write them, after
// every step that can fail.
void Layout::find_updates() {
  const Graph& graph = *plan_.graph;
  target_of_.assign(graph.values().size(), kNone);
  if (graph.updates.empty()) return;
  for (size_t i = 0; i < graph.updates.size(); ++i) {
    const Value& target = graph.value(graph.updates[i].target);
    const bool is_read_now = target.kind == Value::Kind::kInput || graph.constants()[target.index].live;
    if (is_read_now) target_of_[graph.outputs[graph.n_results() + i]] = graph.updates[i].target;
  }
  plan_.first_update = static_cast<uint32_t>(plan_.steps.size());
  while (plan_.first_update > 0 && !may_fail(plan_.steps[plan_.first_update - 1])) --plan_.first_update;
}

void Layout::results_of(uint32_t index) {
  const Step& step = plan_.steps[index];
  std::vector<SlotId> taken;  // one donor serves one result
  for (int32_t i = 0; i < step.n_outs; ++i) {
    const SlotId result = plan_.patches[patch_ - static_cast<size_t>(step.n_outs) + static_cast<size_t>(i)].slot;
    Slot& slot = plan_.slots[result];
    const bool is_visible = slot.value != kNone && visible_[slot.value];
    const ValueId target = is_visible ? updated_by(index, i, result) : kNone;
    const SlotId donor = target != kNone ? kNone : donor_of(index, i, result, taken);
    if (is_visible) {
      slot.bound = true;
      bound_to_[result] = slot.value;
      if (donor != kNone && plan_.slots[donor].block != kNone) {
        bind_to(plan_.slots[donor].block, result);
        taken.push_back(donor);
        continue;
      }
      const ValueId donated = donated_value(donor);
      const Made made{result, target != kNone ? target : donated, target != kNone};
      if (donated != kNone) taken.push_back(donor);
      made_[index].push_back(made);
    } else if (donor != kNone && plan_.slots[donor].block != kNone) {
      slot.block = plan_.slots[donor].block;
      roots_[slot.block].push_back(result);
      lifetimes_[slot.block].last = last_[result];
      taken.push_back(donor);
    } else {
      slot.block = static_cast<uint32_t>(lifetimes_.size());
      lifetimes_.push_back({slot.handle.get()->nbytes, index, last_[result]});
      roots_.push_back({result});
      devices_.push_back(step.device);
    }
  }
}

// The block is not in the arena: it is the tensor of the slot's value, made before the step that writes it first.
void Layout::bind_to(uint32_t block, SlotId shown) {
  for (const SlotId id : roots_[block]) {
    plan_.slots[id].block = kNone;
    plan_.slots[id].bound = true;
    bound_to_[id] = plan_.slots[shown].value;
  }
  made_[lifetimes_[block].first].push_back({shown});
  lifetimes_[block].size = 0;
}

// A slot of the block whose value names its tensor; kNone: it is made between nodes.
SlotId Layout::shown_slot(uint32_t block) const {
  const auto found = std::find_if(roots_[block].begin(), roots_[block].end(),
                                  [&](SlotId id) { return plan_.slots[id].value != kNone; });
  return found == roots_[block].end() ? kNone : *found;
}

bool Layout::may_be_made(uint32_t block, uint64_t large) const {
  return lifetimes_[block].size >= large && shown_slot(block) != kNone;
}

// The most bytes at any step, results with them, if blocks from `large` bytes on are tensors of their own: those go
// after their last use, where the arena lives as long as the run.
uint64_t Layout::peak_with(uint64_t large) const {
  std::vector<int64_t> change(plan_.steps.size() + 1, 0);
  for (uint32_t s = 0; s < made_.size(); ++s)
    for (const Made& each : made_[s])
      if (each.donor == kNone) change[s] += static_cast<int64_t>(plan_.slots[each.slot].handle.get()->nbytes);
  std::vector<Lifetime> in_arena;
  for (uint32_t block = 0; block < lifetimes_.size(); ++block) {
    if (!may_be_made(block, large)) {
      in_arena.push_back(lifetimes_[block]);
      continue;
    }
    change[lifetimes_[block].first] += static_cast<int64_t>(lifetimes_[block].size);
    change[lifetimes_[block].last + 1] -= static_cast<int64_t>(lifetimes_[block].size);
  }
  int64_t live = 0, most = 0;
  for (const int64_t step : change) most = std::max(most, live += step);
  return place_blocks(in_arena, plan_.alignment).size + static_cast<uint64_t>(most);
}

void Layout::make_large_blocks(uint64_t large) {
  for (uint32_t block = 0; block < lifetimes_.size(); ++block) {
    if (!may_be_made(block, large)) continue;
    const SlotId shown = shown_slot(block);
    plan_.held.push_back(plan_.slots[shown].value);
    bind_to(block, shown);
  }
}

void Layout::list_made() {
  for (uint32_t s = 0; s < plan_.steps.size(); ++s) {
    plan_.steps[s].first_made = static_cast<uint32_t>(plan_.made.size());
    plan_.steps[s].n_made = static_cast<uint32_t>(made_[s].size());
    plan_.made.insert(plan_.made.end(), made_[s].begin(), made_[s].end());
  }
}

void Layout::choose_memory() {
  patch_ = list_ = 0;
  made_.resize(plan_.steps.size());
  bound_to_.resize(plan_.slots.size(), kNone);
  for (SlotId id = 0; id < plan_.slots.size(); ++id)
    if (plan_.slots[id].bound) bound_to_[id] = plan_.slots[id].value;
  for (uint32_t s = 0; s < plan_.steps.size(); ++s) {
    each_slot(plan_.steps[s], [](SlotId, uint32_t) {});
    if (plan_.steps[s].kind != Step::Kind::kCall) results_of(s);
  }
}

void Layout::place() {
  plan_.arenas.clear();
  plan_.summary.arena = plan_.summary.separate = 0;
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
    place_on(*device, blocks, lifetimes);
  }
}

// In as many arenas as it takes for none to exceed the device's largest block. A block that does so itself is refused
// when its arena is allocated.
void Layout::place_on(Device& device, std::span<const uint32_t> blocks, std::span<const Lifetime> lifetimes) {
  const uint64_t largest = device.properties.largest_block;
  const Placement placed = place_blocks(lifetimes, plan_.alignment);
  if (largest != 0 && placed.size > largest && blocks.size() > 1) {
    const size_t half = blocks.size() / 2;  // those that are used first: most of them live together
    place_on(device, blocks.first(half), lifetimes.first(half));
    return place_on(device, blocks.subspan(half), lifetimes.subspan(half));
  }
  const auto arena = static_cast<uint32_t>(plan_.arenas.size());
  plan_.arenas.push_back({&device, placed.size});
  for (size_t i = 0; i < blocks.size(); ++i) plan_.blocks[blocks[i]] = {arena, placed.offsets[i]};
  plan_.summary.arena += placed.size;
  plan_.summary.separate += placed.separate;
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
  for (SlotId id = 0; id < plan_.slots.size(); ++id) {
    const ValueId v = bound_to_[id];
    if (v != kNone && last_[id] != kNone) last[v] = last[v] == kNone ? last_[id] : std::max(last[v], last_[id]);
  }
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
  find_updates();
  choose_memory();
  place();
  uint64_t chosen = UINT64_MAX, least = peak_with(chosen);
  for (const uint64_t large : kLargeBlocks) {
    const uint64_t peak = peak_with(large);
    if (peak + peak / 32 > least) continue;
    chosen = large;
    least = peak;
  }
  if (chosen != UINT64_MAX) {
    const PlanSummary whole = plan_.summary;  // also of what is not in the arena then
    make_large_blocks(chosen);
    place();
    plan_.summary = whole;
  }
  list_made();
  find_drops();
  plan_.bound.resize(plan_.graph->values().size());
  for (SlotId id = 0; id < plan_.slots.size(); ++id) {
    const Slot& slot = plan_.slots[id];
    if (slot.used && plan_.slots[slot.root].bound) plan_.bound[bound_to_[slot.root]].push_back(id);
  }
}

}  // namespace

void lay_out_memory(PlanData& plan, const std::vector<bool>& visible, const std::vector<bool>& donated) {
  Layout(plan, visible, donated).run();
}

}  // namespace backplane::core::graph

// See program.hpp.
#include "check/program.hpp"

#include <algorithm>
#include <cstring>

namespace backplane::codegen {

uint32_t Program::add(uint16_t kind, int64_t imm, std::vector<uint32_t> inputs) {
  const auto [known, inserted] = known_.emplace(Key{kind, imm, inputs}, static_cast<uint32_t>(nodes_.size()));
  if (inserted) nodes_.push_back({kind, imm, std::move(inputs)});
  return known->second;
}

uint32_t Program::constant(const Const& value) {
  // Bits, not values: 0.0 and -0.0 differ, and a NaN equals itself.
  const auto same = [&](const Const& other) {
    return other.tag == value.tag && other.integer == value.integer && other.text == value.text &&
           other.large == value.large && std::memcmp(&other.number, &value.number, sizeof(double)) == 0;
  };
  const auto found = std::find_if(consts_.begin(), consts_.end(), same);
  const auto index = found - consts_.begin();
  if (found == consts_.end()) consts_.push_back(value);
  return add(BP_NODE_CONST, index);
}

uint32_t Program::name(const std::string& name) {
  const auto found = std::find(names_.begin(), names_.end(), name);
  if (found != names_.end()) return static_cast<uint32_t>(found - names_.begin());
  names_.push_back(name);
  return static_cast<uint32_t>(names_.size() - 1);
}

uint32_t Program::call(const std::string& full_name, std::vector<uint32_t> inputs) {
  return add(BP_NODE_CALL, name(full_name), std::move(inputs));
}

uint32_t Program::builtin(const std::string& builtin_name, std::vector<uint32_t> inputs) {
  return add(BP_NODE_BUILTIN, name(builtin_name), std::move(inputs));
}

int64_t Program::slots(int64_t count) {
  const int64_t first = next_slot_;
  next_slot_ += count;
  return first;
}

std::vector<bool> Program::reachable(std::span<const uint32_t> roots) const {
  std::vector<bool> marked(nodes_.size(), false);
  for (const uint32_t root : roots) marked[root] = true;
  for (size_t i = nodes_.size(); i-- > 0;) {
    if (!marked[i]) continue;
    for (const uint32_t input : nodes_[i].inputs) marked[input] = true;
  }
  return marked;
}

std::vector<uint32_t> Program::nesting() const {
  std::vector<uint32_t> depth(nodes_.size(), 0);
  for (size_t i = 0; i < nodes_.size(); ++i) {
    for (const uint32_t input : nodes_[i].inputs) depth[i] = std::max(depth[i], depth[input]);
    if (nodes_[i].kind == BP_NODE_MAP || nodes_[i].kind == BP_NODE_FOLD) ++depth[i];
  }
  return depth;
}

std::vector<uint32_t> Program::prune(std::span<const uint32_t> roots) {
  const std::vector<bool> used = reachable(roots);
  std::vector<uint32_t> renumbered(nodes_.size(), 0);
  Program kept;
  for (size_t i = 0; i < nodes_.size(); ++i) {
    if (!used[i]) continue;
    Node node = std::move(nodes_[i]);
    for (uint32_t& input : node.inputs) input = renumbered[input];
    if (node.kind == BP_NODE_CONST) {
      renumbered[i] = kept.constant(consts_[static_cast<size_t>(node.imm)]);
      continue;
    }
    if (node.kind == BP_NODE_CALL || node.kind == BP_NODE_BUILTIN)
      node.imm = kept.name(names_[static_cast<size_t>(node.imm)]);
    renumbered[i] = kept.add(node.kind, node.imm, std::move(node.inputs));
  }
  kept.next_slot_ = next_slot_;
  *this = std::move(kept);
  return renumbered;
}

}  // namespace backplane::codegen

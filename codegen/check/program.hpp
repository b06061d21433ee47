// The flat nodes of one op's formulas, as they go into its record.
//
// A node that computes what an earlier one does is that earlier one, so shared values are computed once and node
// numbers are in topological order by construction. Nodes that read a variable are never shared between bodies,
// because each map and fold has slots of its own.
#pragma once

#include <map>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "backplane/abi/op.h"

namespace backplane::codegen {

struct Const {
  uint16_t tag = BP_TAG_ABSENT;
  int64_t integer = 0;
  double number = 0;
  std::string text;
  bool large = false;  // of an int: `integer` holds the bits of one from 2^63 on
};

struct Node {
  uint16_t kind = 0;
  int64_t imm = 0;
  std::vector<uint32_t> inputs;
};

class Program {
 public:
  uint32_t add(uint16_t kind, int64_t imm, std::vector<uint32_t> inputs = {});
  uint32_t constant(const Const& value);
  uint32_t absent() { return constant({}); }
  uint32_t integer(int64_t value) { return constant({BP_TAG_INT, value, 0, {}}); }
  uint32_t call(const std::string& full_name, std::vector<uint32_t> inputs);
  uint32_t builtin(const std::string& name, std::vector<uint32_t> inputs);
  uint32_t name(const std::string& name);                                // its index
  void append_name(const std::string& name) { names_.push_back(name); }  // even if it is there
  // A fresh variable slot, `count` of them in a row.
  int64_t slots(int64_t count);
  int64_t slot_count() const { return next_slot_; }

  std::span<const Node> nodes() const { return nodes_; }
  std::span<const Const> consts() const { return consts_; }
  std::span<const std::string> names() const { return names_; }
  // The nodes that `roots` need, marked.
  std::vector<bool> reachable(std::span<const uint32_t> roots) const;
  // How deep map and fold lie within each other on the way to each node.
  std::vector<uint32_t> nesting() const;
  // Drops what no root needs. Returns the new number of each node; nothing may be added afterwards.
  std::vector<uint32_t> prune(std::span<const uint32_t> roots);

 private:
  using Key = std::tuple<uint16_t, int64_t, std::vector<uint32_t>>;
  std::vector<Node> nodes_;
  std::vector<Const> consts_;
  std::vector<std::string> names_;
  std::map<Key, uint32_t> known_;
  int64_t next_slot_ = 0;
};

}  // namespace backplane::codegen

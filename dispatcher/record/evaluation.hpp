// One run of a formula's plan: its values, who owns them, and how each kind of node is computed. For evaluator.cpp and
// evaluation.cpp alone.
//
// Lives on the stack of one call. A plan of up to 64 nodes takes no heap. All that it still owns when it ends, by
// return or by exception, is released.
#pragma once

#include <memory>
#include <utility>

#include "record/builtins.hpp"
#include "record/caller.hpp"
#include "record/evaluator.hpp"
#include "record/owned_value.hpp"

namespace backplane::core {

// Within an evaluation: the results of a call that has several, in the arena. Only SELECT reads one.
inline constexpr uint16_t kTagTuple = 0x4000;

// Owns a value on the way between slots.
class OwnedValue {
 public:
  explicit OwnedValue(bp_value value = {}) : value_(value) {}
  OwnedValue(OwnedValue&& other) noexcept : value_(other.take()) {}
  OwnedValue& operator=(OwnedValue&& other) noexcept {
    std::swap(value_, other.value_);
    return *this;
  }
  ~OwnedValue() {
    if (value_.tag != BP_TAG_ABSENT) release_owned(value_, caller.release);
  }
  const bp_value& get() const { return value_; }
  bp_value take() { return std::exchange(value_, bp_value{}); }

 private:
  bp_value value_;
};

class Evaluation {
 public:
  Evaluation(const OpRecord& op, const FormulaPlan& plan, const FormulaInputs& inputs);
  ~Evaluation();
  Evaluation(const Evaluation&) = delete;
  Evaluation& operator=(const Evaluation&) = delete;

  // The call `node` writes into the inputs' `into`.
  void write_into(uint32_t node);
  // Computes what all roots need, or what those need whose bit is set. `tuple`: the results wanted of the one root.
  void run();
  // Of a shape rule: what the root of result `index` needs.
  void run_root(uint32_t index);
  void run_some(uint64_t roots, uint64_t tuple = ~uint64_t{0});
  const bp_value& value(uint32_t node) const { return values_[node]; }
  // The value of a root with a reference of its own; the slot's where it has one to give.
  OwnedValue take(uint32_t node, bool may_move = true);

 private:
  enum State : uint8_t { kEmpty, kBorrowed, kOwned };
  static constexpr size_t kInlineNodes = 64;
  static constexpr uint32_t kNone = 0xffffffffu;

  bool needed(uint32_t node) const { return !wanted_ || wanted_[node] != 0; }
  uint64_t wanted(uint32_t node) const { return wanted_ ? wanted_[node] : nodes_[node].wanted; }
  uint32_t input(const PlanNode& node, uint32_t k) const { return edges_[node.first_input + k] & ~kLastUse; }
  const bp_value& in(const PlanNode& node, uint32_t k) const {
    const bp_value& value = values_[input(node, k)];
    check_single(value);
    return value;
  }
  void check_single(const bp_value& value) const {
    BP_CHECK(value.tag != kTagTuple, VALUE, op_.name,
             ": its formula uses all results of a call as one value; select one of them");
  }
  void demand(uint32_t root);
  void run_steps(const std::vector<PlanStep>& steps);
  uint32_t missing_input(const PlanNode& node) const;
  void compute(uint32_t i);
  void put(uint32_t i, const bp_value& value, State state = kBorrowed) {
    values_[i] = value;
    states_[i] = state;
  }
  void release(uint32_t i) noexcept;  // of a node that owns its value
  void release_last_uses(const PlanNode& node) noexcept {
    for (uint32_t k = 0; k < node.n_inputs; ++k) {
      const uint32_t edge = edges_[node.first_input + k];
      if ((edge & kLastUse) && states_[edge & ~kLastUse] == kOwned) release(edge & ~kLastUse);
    }
  }
  // Bit per input: a tensor that release_last_uses drops after the call.
  uint64_t donations(const PlanNode& node) const {
    uint64_t bits = 0;
    for (uint32_t k = 0; k < node.n_inputs && k < 64; ++k) {
      const uint32_t edge = edges_[node.first_input + k];
      if ((edge & kLastUse) && states_[edge & ~kLastUse] == kOwned) bits |= uint64_t{1} << k;
    }
    return bits;
  }
  void forget(uint64_t slots) noexcept;

  void call(uint32_t i, const PlanNode& node);
  void call_into(uint32_t i, uint32_t op, const bp_value* args, int32_t n_args);
  void pass_numbers(const OpRecord& callee, bp_value* args, uint32_t n_args);
  bp_value call_one(uint32_t op, const bp_value* args, int32_t n_args);
  void fit(uint32_t i, const PlanNode& node);
  static bool fits(const bp_tensor& tensor, const bp_value& like);
  OwnedValue fit_tensor(bp_tensor* tensor, const bp_value& like);
  bp_value attribute(const PlanNode& node);
  bp_value select(const PlanNode& node);
  bp_value builtin(const PlanNode& node);
  bp_value list(const PlanNode& node);
  bp_value decide(const PlanNode& node);
  void map(uint32_t i, const PlanNode& node);
  void fold(uint32_t i, const PlanNode& node);

  const OpRecord& op_;
  const FormulaPlan& plan_;
  const PlanNode* nodes_;  // the plan's
  const uint32_t* edges_;  // its inputs, with kLastUse
  const FormulaInputs& inputs_;
  bp_value* values_;
  uint8_t* states_;
  uint32_t* stack_;
  uint32_t stack_size_ = 0;
  uint64_t* wanted_ = nullptr;  // with run_some
  uint32_t writer_ = kNone;     // the node that writes into a given tensor
  bp_value variables_[64];
  bp_value inline_values_[kInlineNodes];
  uint8_t inline_states_[kInlineNodes];
  uint32_t inline_stack_[kInlineNodes];
  std::unique_ptr<std::byte[]> heap_;
  ValueArena arena_;
};

}  // namespace backplane::core

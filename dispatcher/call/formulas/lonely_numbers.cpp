#include "call/formulas/lonely_numbers.hpp"

#include <algorithm>

#include "call/formulas/role_calls.hpp"
#include "call/formulas/run_formula.hpp"
#include "record/dtype_rules.hpp"
#include "registry/registry.hpp"

namespace backplane::core {
namespace {

constexpr bp_dtype_mask kWide = BP_DTYPE_BIT(BP_FLOAT64) | BP_DTYPE_BIT(BP_COMPLEX128);

// What a node of a formula hands on, as far as promotion goes.
struct Origin {
  bool may_be_number = false;
  uint64_t numbers = 0;  // bit per argument that is a number
};

class Search {
 public:
  Search(const OpRecord& op, const FormulaPlan& plan, const bp_value* args)
      : op_(op), plan_(plan), args_(args), origins_(plan.nodes.size()) {
    for (size_t i = 0; i < plan.nodes.size(); ++i) origins_[i] = origin(plan.nodes[i]);
  }
  uint64_t lonely() const { return lonely_; }

 private:
  Origin origin(const PlanNode& node) {
    switch (node.kind) {
      case BP_NODE_CONST:
        return {true, 0};
      case BP_NODE_ARG: {
        const bool number = is_number(args_[node.imm]);
        return {number, number && node.imm < 64 ? LonelyNumbers::promoting_tensors(op_) & uint64_t{1} << node.imm : 0};
      }
      case BP_NODE_CALL:
        add_call(node);
        return {};
      case BP_NODE_IF:
        return join(node, 1);
      case BP_NODE_BUILTIN:
      case BP_NODE_LIST:
        return join(node, 0);
      default:
        return {};
    }
  }

  const Origin& of(const PlanNode& node, uint32_t k) const {
    return origins_[plan_.inputs[node.first_input + k] & ~kLastUse];
  }
  Origin join(const PlanNode& node, uint32_t first) const {
    Origin all;
    for (uint32_t k = first; k < node.n_inputs; ++k) {
      all.may_be_number |= of(node, k).may_be_number;
      all.numbers |= of(node, k).numbers;
    }
    return all;
  }

  void add_call(const PlanNode& node) {
    const uint64_t promote =
        LonelyNumbers::promoting_tensors(*op_entry(op_.calls[static_cast<size_t>(node.imm)])->record);
    uint64_t numbers = 0;
    for (uint32_t k = 0; k < node.n_inputs && k < 64; ++k) {
      if (!(promote >> k & 1)) continue;
      if (!of(node, k).may_be_number) return;
      numbers |= of(node, k).numbers;
    }
    lonely_ |= numbers;
  }

  const OpRecord& op_;
  const FormulaPlan& plan_;
  const bp_value* args_;
  std::vector<Origin> origins_;
  uint64_t lonely_ = 0;
};

}  // namespace

LonelyNumbers::LonelyNumbers(const OpEntry& op, const bp_formula& formula, const FormulaInputs& inputs, uint64_t keys)
    : inputs_(inputs) {
  const auto n_args = static_cast<int32_t>(op.record->args.size());
  const bp_dtype compute = compute_dtype(*op.record, inputs.args, n_args);
  if (compute == BP_DTYPE_NONE || !is_in(compute, kWide)) return;
  const uint64_t lonely = Search(*op.record, op.record->plan(formula), inputs.args).lonely();
  if (lonely == 0) return;
  std::copy_n(inputs.args, n_args, args_);
  for (uint64_t bits = lonely; bits != 0; bits &= bits - 1) {
    bp_value& arg = args_[__builtin_ctzll(bits)];
    arg.flags &= BP_VALUE_UINT64;
    const Tensor& made = held_.emplace_back(roles::full({}, arg, compute, device_of_numbers(), keys));
    arg = bp_value{};
    arg.tag = BP_TAG_TENSOR;
    arg.u.t = made.get();
  }
  inputs_.args = args_;
}

}  // namespace backplane::core

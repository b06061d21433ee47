// The walk over a formula's plan, and the entry points. A straight plan runs front to back; one with branches or loops
// runs by demand, on a stack of node numbers that the plan's length bounds.
#include "record/evaluator.hpp"

#include <algorithm>
#include <cstring>

#include "record/builtin_numbers.hpp"
#include "record/evaluation.hpp"
#include "record/host_table.hpp"

namespace backplane::core {

Evaluation::Evaluation(const OpRecord& op, const FormulaPlan& plan, const FormulaInputs& inputs)
    : op_(op),
      plan_(plan),
      nodes_(plan.nodes.data()),
      edges_(plan.inputs.data()),
      inputs_(inputs),
      values_(inline_values_),
      states_(inline_states_),
      stack_(inline_stack_) {
  const size_t n = plan.nodes.size();
  if (n > kInlineNodes) [[unlikely]] {
    heap_ = std::make_unique_for_overwrite<std::byte[]>(n * (sizeof(bp_value) + sizeof(uint32_t) + 1));
    values_ = reinterpret_cast<bp_value*>(heap_.get());
    stack_ = reinterpret_cast<uint32_t*>(values_ + n);
    states_ = reinterpret_cast<uint8_t*>(stack_ + n);
  }
  std::memset(states_, kEmpty, n);
}

Evaluation::~Evaluation() {
  const uint32_t n = static_cast<uint32_t>(plan_.nodes.size());
  for (uint32_t i = 0; i < n; ++i)
    if (states_[i] == kOwned) release(i);
}

void Evaluation::release(uint32_t i) noexcept {
  bp_value& value = values_[i];
  states_[i] = kEmpty;
  if (value.tag == BP_TAG_TENSOR) return caller.release(value.u.t);
  if (value.tag != kTagTuple) return release_owned(value, caller.release);
  for (uint32_t r = 0; r < value.count; ++r) release_owned(const_cast<bp_value&>(value.u.values[r]), caller.release);
}

// The values of nodes that depend on variables are of one round alone.
void Evaluation::forget(uint64_t slots) noexcept {
  for (uint32_t i = 0; i < plan_.nodes.size(); ++i)
    if (nodes_[i].variables & slots) {
      if (states_[i] == kOwned) release(i);
      states_[i] = kEmpty;
    }
}

void Evaluation::run_some(uint64_t roots, uint64_t tuple) {
  const size_t n = plan_.nodes.size();
  wanted_ = arena_.array<uint64_t>(n);
  std::fill_n(wanted_, n, 0);
  for (size_t r = 0; r < plan_.roots.size(); ++r)
    if ((roots >> r) & 1) wanted_[plan_.roots[r]] = tuple;
  for (uint32_t i = static_cast<uint32_t>(n); i-- > 0;) {
    if (!wanted_[i]) continue;
    const PlanNode& node = nodes_[i];
    const bool one = node.kind == BP_NODE_SELECT && node.imm < 64;
    for (uint32_t k = 0; k < node.n_inputs; ++k)
      wanted_[input(node, k)] |= one ? uint64_t{1} << node.imm : ~uint64_t{0};
  }
  run();
}

// An input that must be there before the node can be computed and is not; kNone: it can.
uint32_t Evaluation::missing_input(const PlanNode& node) const {
  uint32_t count = node.n_inputs;
  switch (node.kind) {
    case BP_NODE_IF:
    case kPlanAnd:
    case kPlanOr: {
      const uint32_t condition = input(node, 0);
      if (states_[condition] == kEmpty) return condition;
      const bool first = truth(op_.name, in(node, 0));
      if (node.kind != BP_NODE_IF && first == (node.kind == kPlanOr)) return kNone;
      const uint32_t chosen = input(node, node.kind == BP_NODE_IF && !first ? 2 : 1);
      return states_[chosen] == kEmpty ? chosen : kNone;
    }
    case BP_NODE_MAP:
    case BP_NODE_FOLD:
      --count;
      break;  // the body runs once per element
    default:
      break;
  }
  for (uint32_t k = 0; k < count; ++k)
    if (states_[input(node, k)] == kEmpty) return input(node, k);
  return kNone;
}

// The nodes on the stack are a path of the graph, so it never holds more than there are; a body that MAP or FOLD
// demands in turn goes on top.
void Evaluation::demand(uint32_t root) {
  if (states_[root] != kEmpty) return;
  const uint32_t base = stack_size_;
  stack_[stack_size_++] = root;
  while (stack_size_ > base) {
    const uint32_t node = stack_[stack_size_ - 1];
    const uint32_t missing = missing_input(nodes_[node]);
    if (missing != kNone) {
      stack_[stack_size_++] = missing;
    } else {
      compute(node);
      --stack_size_;
    }
  }
}

OwnedValue Evaluation::take(uint32_t node, bool may_move) {
  const bp_value& value = values_[node];
  check_single(value);
  if (states_[node] == kOwned && may_move) {
    states_[node] = kBorrowed;  // readable on: the reference lives with the taker
    return OwnedValue(value);
  }
  if (value.tag == BP_TAG_TENSOR) {
    caller.retain(value.u.t);
    return OwnedValue(value);
  }
  if (value.tag != BP_TAG_TENSOR_LIST) return OwnedValue(value);
  OwnedValue list(make_owned_list(value.count));
  for (uint32_t i = 0; i < value.count; ++i) {
    if (value.u.tensors[i]) caller.retain(value.u.tensors[i]);
    owned_tensors(list.get())[i] = value.u.tensors[i];
  }
  return list;
}

namespace {

size_t count_results(const OpRecord& op, const bp_formula& formula) {
  if (!(formula.flags & (BP_FORMULA_TUPLE | BP_FORMULA_NATIVE_ONLY))) return formula.n_roots;
  if (formula.rule == BP_RULE_PUT) return 1;
  return formula.rule == BP_RULE_VJP ? formula.n_targets : op.results.size();
}

// What came from outside may be a NULL that says it is a tensor.
void release_results(bp_value* results, size_t count) noexcept {
  for (size_t i = 0; i < count; ++i) {
    if (!results[i].u.p) results[i] = bp_value{};
    release_owned(results[i], caller.release);
  }
}

// Bit per target: is its cotangent wanted?
uint64_t needed_targets(const bp_formula& formula, uint64_t needs) {
  uint64_t mask = 0;
  for (uint32_t t = 0; t < formula.n_targets; ++t)
    mask |= ((needs >> std::min<uint32_t>(formula.targets[t], 63)) & 1) << t;
  return mask;
}

uint64_t low_bits(size_t count) { return count >= 64 ? ~uint64_t{0} : (uint64_t{1} << count) - 1; }

const char* rule_name(uint16_t rule) {
  switch (rule) {
    case BP_RULE_VJP:
      return "vjp rule";
    case BP_RULE_JVP:
      return "jvp rule";
    case BP_RULE_DECOMPOSE:
      return "decomposition";
    case BP_RULE_BATCH:
      return "batch rule";
    default:
      return "put formula";
  }
}

[[noreturn]] void refuse_result(const OpRecord& op, const bp_formula& formula, size_t i, const bp_value& found,
                                bool list) {
  const char* kind = tag_name(found.tag);
  detail::fail(BP_ERROR_VALUE, op.name, ": its ", rule_name(formula.rule), " gives ",
               found.tag == BP_TAG_TENSOR ? (list ? "a tensor" : "a tensor that is NULL") : kind, " as ",
               formula.rule == BP_RULE_VJP ? "cotangent " : "result ", i, "; expected ",
               list ? "a list of tensors" : "a tensor");
}

// A number in a tensor position, from which the caller of the evaluator makes a tensor.
bool takes_numbers(const bp_formula& formula) {
  return formula.rule == BP_RULE_DECOMPOSE || formula.rule == BP_RULE_JVP;
}

// A result is what the op's signature has in its place; a symbolic zero of a derivative is nothing. What a rule gives
// may come from a plugin or from Python, and is read by its place from here on.
void check_result(const OpRecord& op, const bp_formula& formula, size_t i, const bp_value& found) {
  bool list = false;
  if (formula.rule == BP_RULE_VJP)
    list = op.args[formula.targets[i]].flags & BP_ARG_LIST;
  else if (formula.rule != BP_RULE_PUT && i < op.results.size())
    list = op.results[i].flags & BP_ARG_LIST;
  if (found.tag == BP_TAG_TENSOR && !list && found.u.t) [[likely]]
    return;
  const bool derivative = formula.rule == BP_RULE_VJP || formula.rule == BP_RULE_JVP;
  const bool good = (found.tag == BP_TAG_TENSOR_LIST && list && (found.u.tensors || !found.count)) ||
                    (found.tag == BP_TAG_ABSENT && derivative) || (is_number(found) && !list && takes_numbers(formula));
  if (!good) refuse_result(op, formula, i, found, list);
}

// Checks the results of a formula that has run; releases them if they are wrong.
void check_results(const OpRecord& op, const bp_formula& formula, bp_value* results, size_t count) {
  try {
    for (size_t i = 0; i < count; ++i) check_result(op, formula, i, results[i]);
  } catch (...) {
    release_results(results, count);
    throw;
  }
}

void evaluate_native(const OpRecord& op, const bp_formula& formula, const FormulaInputs& inputs, bp_value* results,
                     size_t count) {
  bp_formula_env env{};
  env.header = BP_HEADER(bp_formula_env);
  env.args = inputs.args;
  env.outs = inputs.outs;
  env.cotangents = inputs.cotangents;
  env.tangents = inputs.tangents;
  env.calls = op.calls.data();
  env.needs = inputs.needs;
  static_assert(sizeof(bool) == 1);
  env.batched = reinterpret_cast<const uint8_t*>(inputs.batched);
  const bp_status status = formula.native(inputs.frame, &env, results);
  if (status == BP_OK) return check_results(op, formula, results, count);
  release_results(results, count);
  throw Error(status, host_table.get_error());
}

// A number in a tensor's position says that it stands for one; other numbers are attributes.
void check_number(const OpRecord& op, const bp_formula& formula, size_t i, const bp_value& found) {
  if (is_number(found) && !(found.flags & BP_VALUE_NUMBER)) refuse_result(op, formula, i, found, false);
}

void take_tuple(const OpRecord& op, Evaluation& run, uint32_t root, bp_value* results, size_t count) {
  const bp_value& tuple = run.value(root);
  BP_CHECK(tuple.tag == kTagTuple ? tuple.count == count : count == 1, VALUE, op.name, ": a formula for ", count,
           " values calls an op with ", tuple.tag == kTagTuple ? tuple.count : 1u, " results");
  if (tuple.tag != kTagTuple) {
    results[0] = run.take(root).take();
    return;
  }
  for (uint32_t i = 0; i < tuple.count; ++i) {
    results[i] = std::exchange(const_cast<bp_value&>(tuple.u.values[i]), bp_value{});
    results[i].flags = 0;
  }
}

}  // namespace

const PlanNode* final_call(const FormulaPlan& plan, size_t root) {
  if (root >= plan.roots.size()) return nullptr;
  const PlanNode* node = &plan.nodes[plan.roots[root]];
  if (node->kind == BP_NODE_FIT) node = &input_node(plan, *node, 0);
  return node->kind == BP_NODE_CALL && node->n_inputs > 0 ? node : nullptr;
}

bool ends_in_addition(const OpRecord& op, const bp_formula& formula) {
  if (formula.n_roots != 1 || formula.n_targets != 1 || (formula.flags & BP_FORMULA_TUPLE)) return false;
  const FormulaPlan& plan = op.plan(formula);
  const PlanNode* last = final_call(plan);
  if (!last) return false;
  const PlanNode &first = input_node(plan, *last, 0), &flag = input_node(plan, *last, last->n_inputs - 1u);
  if (first.kind != BP_NODE_CALL || flag.kind != BP_NODE_CONST) return false;
  const bp_value& on = op.def.program->consts[static_cast<size_t>(flag.imm)];
  const auto number = static_cast<uint32_t>(&first - plan.nodes.data());
  const auto reads = std::count_if(plan.inputs.begin(), plan.inputs.end(),
                                   [&](uint32_t edge) { return (edge & ~kLastUse) == number; });
  return on.tag == BP_TAG_BOOL && on.u.i != 0 && reads == 1;
}

void evaluate(const OpRecord& op, const bp_formula& formula, const FormulaInputs& inputs, bp_value* results,
              bool use_native) {
  const size_t count = count_results(op, formula);
  std::fill_n(results, count, bp_value{});
  if (formula.native && !inputs.into && (use_native || (formula.flags & BP_FORMULA_NATIVE_ONLY)))
    return evaluate_native(op, formula, inputs, results, count);
  const FormulaPlan& plan = op.plan(formula);
  if (plan.roots.empty()) return;
  uint64_t wanted = low_bits(count);
  if (formula.rule == BP_RULE_VJP) wanted = needed_targets(formula, inputs.needs);
  if (!wanted) return;
  Evaluation run(op, plan, inputs);
  const bool tuple = (formula.flags & BP_FORMULA_TUPLE) != 0;
  if (inputs.into) run.write_into(static_cast<uint32_t>(final_call(plan) - plan.nodes.data()));
  if (wanted == low_bits(count)) {
    run.run();
  } else if (tuple) {
    run.run_some(1, wanted);
  } else {
    run.run_some(wanted);
  }
  if (tuple) {
    take_tuple(op, run, plan.roots[0], results, count);
    return check_results(op, formula, results, count);
  }
  for (size_t i = 0; i < count; ++i)
    if ((wanted >> i) & 1) check_number(op, formula, i, run.value(plan.roots[i]));
  try {
    for (size_t i = 0; i < count; ++i)
      if ((wanted >> i) & 1) results[i] = run.take(plan.roots[i]).take();
  } catch (...) {
    release_results(results, count);
    throw;
  }
  check_results(op, formula, results, count);
}

void evaluate_ints(const OpRecord& op, const bp_formula& formula, uint32_t result, const FormulaInputs& inputs,
                   int64_t* out, int32_t* count) {
  const FormulaPlan& plan = op.plan(formula);
  Evaluation run(op, plan, inputs);
  run.run_root(result);
  const bp_value& value = run.value(plan.roots[result]);
  const bool ints = value.tag == BP_TAG_INT_LIST || ((value.tag & BP_TAG_LIST) && value.count == 0);
  BP_CHECK(ints && value.count <= 64, SHAPE, op.name, ": its shape formula gives ", tag_name(value.tag), " of length ",
           value.count, "; expected at most 64 ints");
  std::copy_n(value.u.ints, value.count, out);
  *count = static_cast<int32_t>(value.count);
}

}  // namespace backplane::core

#include "record/resolved_args.hpp"

#include <algorithm>

#include "record/builtins.hpp"
#include "record/shape_rules.hpp"
#include "record/slices.hpp"

namespace backplane::core {
namespace {

using Kind = ResolvedArg::Kind;

// x.ndim, x.ndim + 1 or x.ndim - 1 of a tensor argument x.
bool reads_rank(const OpRecord& op, uint32_t at, ResolvedArg& to) {
  const bp_program& program = *op.def.program;
  const bp_node& node = program.nodes[at];
  const auto input = [&](const bp_node& of, uint32_t i) -> const bp_node& {
    return program.nodes[program.inputs[of.first_input + i]];
  };
  if (node.kind == BP_NODE_NDIM && input(node, 0).kind == BP_NODE_ARG) {
    to.tensor = static_cast<uint8_t>(input(node, 0).imm);
    return true;
  }
  if (node.kind != BP_NODE_BUILTIN || node.n_inputs != 2 || input(node, 1).kind != BP_NODE_CONST) return false;
  const auto sign = op.builtins[static_cast<size_t>(node.imm)]->fn;
  const bp_value& step = program.consts[input(node, 1).imm];
  if (step.tag != BP_TAG_INT || step.u.i != 1 || (sign != builtin::add && sign != builtin::sub)) return false;
  to.beyond = sign == builtin::add ? 1 : -1;
  return reads_rank(op, program.inputs[node.first_input], to);
}

// Of a rule in formulas: does it say normalize_axis(arg, x.ndim)?
bool says_formula(const OpRecord& op, ResolvedArg& to) {
  const bp_program& program = *op.def.program;
  for (uint32_t i = 0; i < program.n_nodes; ++i) {
    const bp_node& node = program.nodes[i];
    if (node.kind != BP_NODE_BUILTIN || node.n_inputs != 2) continue;
    const auto function = op.builtins[static_cast<size_t>(node.imm)]->fn;
    const bp_node& first = program.nodes[program.inputs[node.first_input]];
    if ((function == builtin::normalize_axis || function == builtin::normalize_axes) && first.kind == BP_NODE_ARG &&
        first.imm == to.arg && reads_rank(op, program.inputs[node.first_input + 1], to))
      return true;
  }
  return false;
}

bool says_word(const OpRecord& op, ResolvedArg& to) {
  const bp_shape_rule& rule = op.shapes[0];
  const std::string_view word = op.shape_words[0]->name;
  if (word == "same") {
    to.tensor = static_cast<uint8_t>(rule.args[0]);
    return true;
  }
  for (uint32_t i = 1; i < rule.n_args; ++i)
    if (rule.args[i] == to.arg) {
      to.tensor = static_cast<uint8_t>(rule.args[0]);
      to.beyond = word == "stack" ? 1 : 0;
      if (word == "reduce" && op.args[to.arg].type == BP_TYPE_AXES) to.kind = Kind::kAllAxes;
      if (word == "slice_put") to.kind = Kind::kSlice;
      return true;
    }
  return false;
}

int32_t rank_of(const bp_value& value) {
  if (value.tag == BP_TAG_TENSOR) return value.u.t->dl.ndim;
  if (value.tag == BP_TAG_TENSOR_LIST && value.count) return value.u.tensors[0]->dl.ndim;
  return 0;  // a number
}

void resolve_axes(const OpRecord& op, bp_value& axes, int32_t rank, ResolvedLists& lists) {
  if (axes.tag == BP_TAG_INT) {
    axes.u.i = normalize_axis(op, axes.u.i, std::max(rank, 1));
  } else if (axes.tag == BP_TAG_INT_LIST) {
    int64_t* list = lists.take(axes.count);
    for (uint32_t i = 0; i < axes.count; ++i) list[i] = normalize_axis(op, axes.u.ints[i], rank);
    axes.u.ints = list;
  }
}

void resolve_all(bp_value& axes, int32_t rank, ResolvedLists& lists) {
  int64_t* list = lists.take(static_cast<size_t>(rank));
  for (int32_t d = 0; d < rank; ++d) list[d] = d;
  axes = {BP_TAG_INT_LIST, 0, static_cast<uint32_t>(rank), {.ints = list}};
}

void resolve_slice(const bp_value& x, bp_value* args, ResolvedLists& lists) {
  const uint32_t n = args[0].tag == BP_TAG_INT ? 1 : args[0].count;
  const int64_t* axes = args[0].tag == BP_TAG_INT ? &args[0].u.i : args[0].u.ints;
  int64_t* lines[3] = {lists.take(n), lists.take(n), lists.take(n)};
  const OptionalInts starts(args[1]), stops(args[2]), steps(args[3]);
  for (uint32_t i = 0; i < n; ++i) {
    int64_t step = 1;
    steps.get(i, step);
    const Slice slice = slice_of(starts, stops, i, step, x.tag == BP_TAG_TENSOR ? x.u.t->dl.shape[axes[i]] : 1);
    lines[0][i] = slice.start;
    lines[1][i] = slice.count;
    lines[2][i] = step;
  }
  for (int i = 0; i < 3; ++i) args[i + 1] = {BP_TAG_INT_LIST, 0, n, {.ints = lines[i]}};
}

}  // namespace

std::vector<ResolvedArg> resolved_args(const OpRecord& op) {
  std::vector<ResolvedArg> all;
  for (uint32_t i = 0; i < op.args.size() && i < 64; ++i) {
    if (!(op.axis_args >> i & 1)) continue;
    ResolvedArg arg{Kind::kAxes, static_cast<uint8_t>(i), 0, 0};
    if (op.shape_words[0] ? says_word(op, arg) : says_formula(op, arg)) all.push_back(arg);
  }
  return all;
}

void resolve_args(const OpRecord& op, bp_value* args, ResolvedLists& lists) {
  for (const ResolvedArg& each : op.resolved) {
    const int32_t rank = rank_of(args[each.tensor]) + each.beyond;
    if (args[each.arg].tag == BP_TAG_ABSENT) {
      if (each.kind == Kind::kAllAxes) resolve_all(args[each.arg], rank, lists);
      continue;
    }
    resolve_axes(op, args[each.arg], rank, lists);
    if (each.kind == Kind::kSlice) resolve_slice(args[each.tensor], args + each.arg, lists);
  }
}

}  // namespace backplane::core

// How each kind of node is computed; see evaluation.hpp. The walk over nodes is in evaluator.cpp.
#include "record/evaluation.hpp"

#include <algorithm>

#include "record/builtin_numbers.hpp"
#include "record/dtype_rules.hpp"
#include "record/host_table.hpp"

namespace backplane::core {
namespace {

[[noreturn, gnu::cold, gnu::noinline]] void fail_call(bp_status status) { throw Error(status, host_table.get_error()); }

bool all_absent(const bp_value& list) {
  return std::all_of(list.u.values, list.u.values + list.count,
                     [](const bp_value& v) { return v.tag == BP_TAG_ABSENT; });
}

// Is the value another one where the callee takes tensors?
bool depends_on_position(const bp_value& v) {
  return is_number(v) || v.tag == BP_TAG_VALUE_LIST || ((v.tag & BP_TAG_LIST) && v.count == 0);
}

bool same_shape(const bp_tensor& tensor, const int64_t* sizes, int32_t ndim) {
  return tensor.dl.ndim == ndim && std::equal(sizes, sizes + ndim, tensor.dl.shape);
}

}  // namespace

void Evaluation::compute(uint32_t i) {
  const PlanNode& node = nodes_[i];
  const size_t imm = static_cast<size_t>(node.imm);
  switch (node.kind) {
    case BP_NODE_CONST:
      return put(i, op_.def.program->consts[imm]);
    case BP_NODE_ARG:
      return put(i, inputs_.args[imm]);
    case BP_NODE_OUT:
      return put(i, inputs_.outs[imm]);
    case BP_NODE_COTANGENT:
      return put(i, inputs_.cotangents[imm]);
    case BP_NODE_TANGENT:
      return put(i, inputs_.tangents[imm]);
    case BP_NODE_NEEDS:
      return put(i, make_bool((inputs_.needs >> std::min<size_t>(imm, 63)) & 1));
    case BP_NODE_BATCHED:
      return put(i, make_bool(inputs_.batched && inputs_.batched[imm]));
    case BP_NODE_VAR:
      return put(i, variables_[imm]);
    case BP_NODE_CALL:
      return call(i, node);
    case BP_NODE_FIT:
      return fit(i, node);
    case BP_NODE_SELECT:
      return put(i, select(node));
    case BP_NODE_BUILTIN:
      return put(i, builtin(node));
    case BP_NODE_LIST:
      return put(i, list(node));
    case BP_NODE_MAP:
      return map(i, node);
    case BP_NODE_FOLD:
      return fold(i, node);
    case BP_NODE_IF:
    case kPlanAnd:
    case kPlanOr:
      return put(i, decide(node));
    default:
      return put(i, attribute(node));
  }
}

// Straight: every needed node, in order. Else in steps, or by demand from the roots where some are not needed.
void Evaluation::run() {
  if (plan_.straight) [[likely]] {
    const uint32_t n = static_cast<uint32_t>(plan_.nodes.size());
    for (uint32_t i = 0; i < n; ++i)
      if (needed(i) && states_[i] == kEmpty) compute(i);
    return;
  }
  if (plan_.steps.size() == 1 && !wanted_) return run_steps(plan_.steps[0]);
  for (uint32_t root : plan_.roots)
    if (needed(root)) demand(root);
}

void Evaluation::run_root(uint32_t index) {
  if (plan_.straight && plan_.roots.size() == 1) return run();
  if (plan_.steps.empty()) return demand(plan_.roots[index]);
  run_steps(plan_.steps[index]);
}

void Evaluation::run_steps(const std::vector<PlanStep>& steps) {
  const PlanStep* const first = steps.data();
  const PlanStep* const end = first + steps.size();
  for (const PlanStep* step = first; step != end;) {
    const uint32_t node = step->node;
    switch (step->kind) {
      case PlanStep::kCompute:
        if (states_[node] == kEmpty) compute(node);
        break;
      case PlanStep::kTake:
        check_single(values_[step->other]);
        put(node, values_[step->other]);
        break;
      case PlanStep::kIfTrue:
      case PlanStep::kIfFalse:
        check_single(values_[node]);
        if (truth(op_.name, values_[node]) != (step->kind == PlanStep::kIfTrue)) break;
        step = first + step->other;
        continue;
      case PlanStep::kGo:
        step = first + step->other;
        continue;
    }
    ++step;
  }
}

// ---- ops -------------------------------------------------------------------------------------------------------

// A computed number becomes an immediate where the callee takes a tensor, and an empty or all-absent list a list of
// tensors where it takes those.
void Evaluation::pass_numbers(const OpRecord& callee, bp_value* args, uint32_t n_args) {
  for (uint32_t k = 0; k < n_args && k < callee.args.size(); ++k) {
    bp_value& arg = args[k];
    BP_CHECK(!(arg.tag == BP_TAG_INT && (arg.flags & BP_VALUE_UINT64)) || callee.args[k].type <= BP_TYPE_SCALAR, VALUE,
             op_.name, ": its formula passes an int that exceeds 64 bits for '", callee.args[k].name, "' of ",
             callee.name);
    if (callee.args[k].type != BP_TYPE_TENSOR) continue;
    if (is_number(arg)) arg.flags |= BP_VALUE_NUMBER;
    if (!(arg.tag & BP_TAG_LIST) || arg.tag == BP_TAG_TENSOR_LIST) continue;
    BP_CHECK(arg.count == 0 || (arg.tag == BP_TAG_VALUE_LIST && all_absent(arg)), TYPE, op_.name,
             ": its formula passes a list that is not of tensors for '", callee.args[k].name, "' of ", callee.name);
    auto** none = arena_.array<bp_tensor*>(arg.count);
    std::fill_n(none, arg.count, nullptr);
    arg.tag = BP_TAG_TENSOR_LIST;
    arg.u.tensors = none;
  }
}

void Evaluation::write_into(uint32_t node) {
  writer_ = node;
  bp_value target{};
  target.tag = BP_TAG_TENSOR;
  target.u.t = inputs_.into;
  if (inputs_.over_first) put(input(nodes_[node], 0), target);
}

void Evaluation::call_into(uint32_t i, uint32_t op, const bp_value* args, int32_t n_args) {
  bp_value out{};
  out.tag = BP_TAG_TENSOR;
  out.flags = BP_VALUE_GIVEN;
  out.u.t = inputs_.into;
  const bp_status status = caller.call(inputs_.frame, op, args, n_args, &out, 1);
  if (status != BP_OK) fail_call(status);
  caller.retain(inputs_.into);
  out.flags = 0;
  put(i, out, kOwned);
}

void Evaluation::call(uint32_t i, const PlanNode& node) {
  const uint32_t op = op_.calls[static_cast<size_t>(node.imm)];
  const OpRecord& callee = *caller.record(op);
  bp_value args[kMaxArgs];
  bool plain = true;
  for (uint32_t k = 0; k < node.n_inputs; ++k) {
    args[k] = in(node, k);
    plain = plain && !depends_on_position(args[k]);
  }
  if (!plain) pass_numbers(callee, args, node.n_inputs);
  const int32_t n_args = node.n_inputs;
  const size_t n_results = callee.results.size();
  if (i == writer_) [[unlikely]] {
    call_into(i, op, args, n_args);
  } else if (n_results == 1) [[likely]] {
    bp_value out{};
    const uint64_t donated = caller.call_donating ? donations(node) : 0;
    const bp_status status = donated ? caller.call_donating(inputs_.frame, op, args, n_args, &out, donated)
                                     : caller.call(inputs_.frame, op, args, n_args, &out, 1);
    if (status != BP_OK) fail_call(status);
    put(i, out, kOwned);
  } else {
    bp_value* outs = arena_.array<bp_value>(n_results);
    std::fill_n(outs, n_results, bp_value{});
    for (size_t r = 0; r < n_results; ++r)
      if (!((wanted(i) >> r) & 1)) outs[r].flags = BP_VALUE_NOT_WANTED;
    const bp_status status = caller.call(inputs_.frame, op, args, n_args, outs, static_cast<int32_t>(n_results));
    if (status != BP_OK) fail_call(status);
    bp_value tuple{};
    tuple.tag = kTagTuple;
    tuple.count = static_cast<uint32_t>(n_results);
    tuple.u.values = outs;
    put(i, tuple, kOwned);
  }
  release_last_uses(node);
}

bp_value Evaluation::call_one(uint32_t op, const bp_value* args, int32_t n_args) {
  bp_value out{};
  const bp_status status = caller.call(inputs_.frame, op, args, n_args, &out, 1);
  if (status != BP_OK) fail_call(status);
  return out;
}

// Has the tensor the shape of `like` (a number has none), and the dtype where that has one?
bool Evaluation::fits(const bp_tensor& tensor, const bp_value& like) {
  if (like.tag != BP_TAG_TENSOR) return tensor.dl.ndim == 0;
  const DLTensor& target = like.u.t->dl;
  if (tensor.dtype != like.u.t->dtype || tensor.dl.ndim != target.ndim) return false;
  for (int32_t d = 0; d < target.ndim; ++d)
    if (tensor.dl.shape[d] != target.shape[d]) return false;
  return true;
}

// Fits `tensor` to `like`: real part, then sum to the shape, then cast to the dtype; only steps that are
// needed. Real parts come first, so that the sum reads half the bytes.
OwnedValue Evaluation::fit_tensor(bp_tensor* tensor, const bp_value& like) {
  const bp_tensor* target = like.tag == BP_TAG_TENSOR ? like.u.t : nullptr;
  const int64_t* sizes = target ? target->dl.shape : nullptr;
  const int32_t ndim = target ? target->dl.ndim : 0;
  OwnedValue current;
  bp_value args[2] = {};
  args[0].tag = BP_TAG_TENSOR;
  args[0].u.t = tensor;
  const auto apply = [&](uint32_t op, int32_t n_args) {
    current = OwnedValue(call_one(op, args, n_args));
    args[0] = current.get();
  };
  const auto is_complex = [](bp_dtype dtype) { return real_dtype(dtype) != dtype; };
  if (target && is_complex(tensor->dtype) && !is_complex(target->dtype)) apply(op_.fit_ops[2], 1);
  if (!same_shape(*args[0].u.t, sizes, ndim)) {
    args[1].tag = BP_TAG_INT_LIST;
    args[1].count = static_cast<uint32_t>(ndim);
    args[1].u.ints = sizes;
    apply(op_.fit_ops[0], 2);
  }
  if (target && args[0].u.t->dtype != target->dtype) {
    args[1] = bp_value{};
    args[1].tag = BP_TAG_DTYPE;
    args[1].u.i = target->dtype;
    apply(op_.fit_ops[1], 2);
  }
  return current;
}

void Evaluation::fit(uint32_t i, const PlanNode& node) {
  const bp_value& value = in(node, 0);
  const bp_value& like = inputs_.args[node.imm];
  if (value.tag == BP_TAG_ABSENT) return put(i, value);
  if (value.tag == BP_TAG_TENSOR) {
    if (!fits(*value.u.t, like)) {
      put(i, fit_tensor(value.u.t, like).take(), kOwned);
      return release_last_uses(node);
    }
    // Handed on as it is, with its reference where nobody else reads it.
    const uint32_t edge = edges_[node.first_input];
    uint8_t& state = states_[edge & ~kLastUse];
    const bool moves = (edge & kLastUse) && state == kOwned;
    put(i, value, moves ? kOwned : kBorrowed);
    if (moves) state = kBorrowed;
    return;
  }
  BP_CHECK(value.tag == BP_TAG_TENSOR_LIST && like.tag == BP_TAG_TENSOR_LIST && value.count == like.count, TYPE,
           op_.name, ": the derivative for '", op_.args[static_cast<size_t>(node.imm)].name, "' is ",
           tag_name(value.tag), "; expected what the argument is");
  OwnedValue fitted(make_owned_list(value.count));
  for (uint32_t k = 0; k < value.count; ++k) {
    bp_tensor* tensor = value.u.tensors[k];
    if (!tensor || !like.u.tensors[k]) continue;
    bp_value element{};
    element.tag = BP_TAG_TENSOR;
    element.u.t = like.u.tensors[k];
    const bool as_is = fits(*tensor, element);
    if (as_is) caller.retain(tensor);
    owned_tensors(fitted.get())[k] = as_is ? tensor : fit_tensor(tensor, element).take().u.t;
  }
  put(i, fitted.take(), kOwned);
  release_last_uses(node);
}

// ---- values ----------------------------------------------------------------------------------------------------

bp_value Evaluation::attribute(const PlanNode& node) {
  const bp_value& value = in(node, 0);
  const bool tensor = value.tag == BP_TAG_TENSOR;
  BP_CHECK(tensor || is_number(value), TYPE, op_.name, ": its formula asks ", tag_name(value.tag),
           " for a tensor's attribute");
  bp_value result{};
  switch (node.kind) {
    case BP_NODE_SHAPE:
      result.tag = BP_TAG_INT_LIST;
      if (tensor) result.count = static_cast<uint32_t>(value.u.t->dl.ndim);
      if (tensor) result.u.ints = value.u.t->dl.shape;
      break;
    case BP_NODE_NDIM:
      return make_int(tensor ? value.u.t->dl.ndim : 0);
    case BP_NODE_DTYPE:
      result.tag = BP_TAG_DTYPE;
      result.u.i = tensor ? value.u.t->dtype : number_dtype(value.tag);
      break;
    default:
      BP_CHECK(tensor, TYPE, op_.name,
               ": found a number, expected a tensor, whose device the result gets. Fix: make one with asarray");
      result.tag = BP_TAG_DEVICE;
      result.u.d = {value.u.t->backend, value.u.t->ordinal};
  }
  return result;
}

bp_value Evaluation::select(const PlanNode& node) {
  const bp_value& from = values_[input(node, 0)];
  BP_CHECK(from.tag == kTagTuple || (from.tag & BP_TAG_LIST), TYPE, op_.name, ": its formula selects element ",
           node.imm, " of ", tag_name(from.tag));
  BP_CHECK(node.imm < int64_t{from.count}, INDEX, op_.name, ": its formula selects element ", node.imm, " of ",
           from.count);
  const uint32_t i = static_cast<uint32_t>(node.imm);
  return from.tag == kTagTuple ? from.u.values[i] : list_element(from, i);
}

bp_value Evaluation::builtin(const PlanNode& node) {
  const Builtin& function = *op_.builtins[static_cast<size_t>(node.imm)];
  bp_value values[kMaxArgs];
  for (uint32_t k = 0; k < node.n_inputs; ++k) values[k] = in(node, k);
  return function.fn({op_.name, function.name, {values, node.n_inputs}, arena_});
}

bp_value Evaluation::list(const PlanNode& node) {
  bp_value* values = arena_.array<bp_value>(node.n_inputs);
  for (uint32_t k = 0; k < node.n_inputs; ++k) {
    values[k] = in(node, k);
    BP_CHECK(!(values[k].tag & BP_TAG_LIST), TYPE, op_.name, ": its formula makes a list of lists");
  }
  return make_list(arena_, {values, node.n_inputs});
}

// IF, `and`, `or`: the inputs that decide have been computed, the others perhaps not.
bp_value Evaluation::decide(const PlanNode& node) {
  const bool first = truth(op_.name, in(node, 0));
  if (node.kind == BP_NODE_IF) return in(node, first ? 1 : 2);
  if (first == (node.kind == kPlanOr)) return make_bool(first);
  return make_bool(truth(op_.name, in(node, 1)));
}

// ---- lists -----------------------------------------------------------------------------------------------------

void Evaluation::map(uint32_t i, const PlanNode& node) {
  const bp_value over = in(node, 0);
  BP_CHECK(over.tag & BP_TAG_LIST, TYPE, op_.name, ": its formula maps over ", tag_name(over.tag));
  const uint64_t slot = uint64_t{1} << node.imm;
  const uint32_t body = input(node, 1);
  const bool own_body = (nodes_[body].variables & slot) != 0;  // else every round shares its value
  OwnedValue tensors(make_owned_list(over.count));
  bp_value* values = arena_.array<bp_value>(over.count);
  for (uint32_t k = 0; k < over.count; ++k) {
    variables_[node.imm] = list_element(over, k);
    demand(body);
    OwnedValue made = take(body, own_body);
    BP_CHECK(!(made.get().tag & BP_TAG_LIST), TYPE, op_.name, ": its formula makes a list of lists");
    values[k] = made.get();
    if (made.get().tag == BP_TAG_TENSOR) owned_tensors(tensors.get())[k] = made.take().u.t;
    forget(slot);
  }
  const bp_value result = make_list(arena_, {values, over.count}, over.tag);
  const bool all_tensors = result.tag == BP_TAG_TENSOR_LIST;
  const bool any_tensor =
      std::any_of(values, values + over.count, [](const bp_value& v) { return v.tag == BP_TAG_TENSOR; });
  BP_CHECK(all_tensors || !any_tensor, TYPE, op_.name, ": its formula makes a list of tensors and other values");
  if (all_tensors) {
    put(i, tensors.take(), kOwned);
  } else {
    put(i, result);
  }
}

void Evaluation::fold(uint32_t i, const PlanNode& node) {
  const bp_value over = in(node, 0);
  BP_CHECK(over.tag & BP_TAG_LIST, TYPE, op_.name, ": its formula folds over ", tag_name(over.tag));
  const uint64_t slots = uint64_t{3} << node.imm;
  const uint32_t body = input(node, 2);
  const bool own_body = (nodes_[body].variables & slots) != 0;
  OwnedValue sum = take(input(node, 1), false);
  for (uint32_t k = 0; k < over.count; ++k) {
    variables_[node.imm] = sum.get();
    variables_[node.imm + 1] = list_element(over, k);
    demand(body);
    // The old sum lives until the new one is held: the body may have handed it on, or a list that holds it.
    OwnedValue next = take(body, own_body);
    forget(slots);
    sum = std::move(next);
  }
  put(i, sum.take(), kOwned);
}

}  // namespace backplane::core

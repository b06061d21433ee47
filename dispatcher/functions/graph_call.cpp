#include "functions/graph_call.hpp"

#include <algorithm>

#include "call/dispatch.hpp"
#include "functions/closed_function.hpp"
#include "functions/closed_over.hpp"
#include "functions/graph_node.hpp"
#include "functions/graph_rules.hpp"
#include "levels/inplace.hpp"
#include "levels/replaced_tensors.hpp"
#include "record/owned_value.hpp"
#include "tape/node.hpp"

namespace backplane::core {
namespace {

// Under all levels. Where nothing wants a gradient the function just runs.
std::vector<Tensor> call_checkpoint(const OpEntry& op, GraphFunction& function, Args args) {
  Captures captures(function.name());
  for (const Tensor& t : args)
    if (wants_grad(impl(t))) captures.note(impl(t));
  const std::vector<Version> before(args.begin(), args.end());
  RecordRandom random;
  std::vector<Tensor> results;
  {
    NoteOnTape noting(&captures);
    results = function.call(args);
    for (const Tensor& t : results)
      if (wants_grad(impl(t))) captures.note(impl(t));
  }
  captures.check_unchanged(function.name());
  if (captures.empty()) return results;
  for (const Version& argument : before) argument.check(function.name());
  return record_checkpoint({op, function.shared_from_this(), nullptr, args, args, random.take()}, results, captures);
}

std::vector<Tensor> call_custom(const OpEntry& op, GraphFunction& function, Args args) {
  std::vector<bool> followed;
  for (const Tensor& t : args) followed.push_back(wants_grad(impl(t)));
  Captures captures;
  if (std::find(followed.begin(), followed.end(), true) == followed.end()) {
    NoteOnTape noting(&captures);
    std::vector<Tensor> results = function.call(args);
    captures.refuse(function.name(), "backward");
    return results;
  }
  check_covered(function, args, followed, "backward", "differentiates");
  if (is_closed(function)) static_cast<ClosedFunction&>(function).follow(std::move(followed));
  std::shared_ptr<GraphFunction> rules = with_backward(function, "backward");
  RecordRandom random;
  GraphFunction::Forward forward;
  {
    std::vector<Tensor> constants;
    for (const Tensor& t : args) constants.push_back(detach(t));
    NoteOnTape noting(&captures);
    const std::vector<Version> before(constants.begin(), constants.end());
    forward = rules->forward(constants);
    for (const Version& constant : before) constant.check(function.name());
  }
  captures.refuse(function.name(), "backward");
  return record_custom({op, std::move(rules), nullptr, args, args, random.take()}, std::move(forward));
}

std::vector<Tensor> call_on_tape(const OpEntry& op, GraphFunction& function, Args args) {
  if (thread_state.grad_disabled) return function.call(args);
  if (Captures* captures = thread_state.captures) {  // inside a run that notes
    bool wanted = false;
    for (const Tensor& t : args) {
      if (!wants_grad(impl(t))) continue;
      captures->note(impl(t));
      wanted = true;
    }
    std::vector<Tensor> results = function.call(args);
    if (wanted) captures->mark(results, nullptr);
    return results;
  }
  return function.recompute() ? call_checkpoint(op, function, args) : call_custom(op, function, args);
}

std::vector<Tensor> call_now(const OpEntry& op, GraphFunction& function, Args args) {
  Level* level = thread_state.level;
  if (!level) return call_on_tape(op, function, args);
  for (const Tensor& t : args)
    if (impl(t)->wrapper && impl(t)->view) refresh(impl(t));
  return level->call_graph(op, function, args);
}

// Nodes call the function again when nothing is replaced.
std::vector<Tensor> call_replaced(const OpEntry& op, GraphFunction& function, Args args) {
  std::vector<Tensor> values;
  for (const Tensor& t : args) values.push_back(Tensor::share(ReplacedTensors::value_of(impl(t))));
  if (!is_authors_own(function) || uses_only_arguments(function)) return call_now(op, function, values);
  return call_now(op, *std::make_shared<ClosedOver>(function, args.size(), Args{}), values);
}

}  // namespace

std::vector<Tensor> call_graph(const OpEntry& op, GraphFunction& function, Args args) {
  return ReplacedTensors::any() ? call_replaced(op, function, args) : call_now(op, function, args);
}

namespace {

std::vector<Tensor> results_of(const OpEntry& op, GraphFunction& function, Args args) {
  using Rule = GraphFunction::Rule;
  if (!ByForwardRules::active() || !is_authors_own(function) || function.recompute() ||
      !(function.has(Rule::kBackward) || function.has(Rule::kJvp)))
    return call_graph(op, function, args);
  const ByForwardRules off(false);
  return with_backward(function, "backward")->forward(args).results;
}

}  // namespace

void call_higher_order(const Call& call) {
  const OpRecord& record = *call.op.record;
  GraphFunction* function = nullptr;
  std::vector<Tensor> args;
  for (int32_t i = 0; i < call.n_args; ++i) {
    const bp_value& v = call.args[i];
    if (v.tag == BP_TAG_GRAPH) function = static_cast<GraphFunction*>(const_cast<void*>(v.u.p));
    each_tensor(&v, 1, [&](TensorImpl* t) { args.push_back(Tensor::share(t)); });
  }
  BP_CHECK(function, TYPE, record.name, ": expected a function, found none");
  std::shared_ptr<GraphFunction> made;
  if (const MakeFunction make = function_maker(record.def)) {
    made = make(call);
    function = made.get();
  }
  const std::vector<Tensor> results = results_of(call.op, *function, args);
  for (const Tensor& t : results) BP_CHECK(t, VALUE, function->name(), ": returned an empty tensor");
  bp_value list = make_owned_list(static_cast<uint32_t>(results.size()));
  for (size_t i = 0; i < results.size(); ++i) owned_tensors(list)[i] = Tensor(results[i]).detach_handle();
  call.outs[0] = list;
}

namespace {
[[gnu::constructor]] void register_handler() {
  handlers.function = [](const Call& call, const KeySlot*) { call_higher_order(call); };
}
}  // namespace

}  // namespace backplane::core

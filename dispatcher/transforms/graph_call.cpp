#include "transforms/graph_call.hpp"

#include "core/device_call.hpp"
#include "core/owned_value.hpp"
#include "transforms/graph_node.hpp"

namespace backplane::core {
namespace {

// Nothing comes through a call whose derivatives are all zero: the result of stop_gradient is a constant.
bool passes_gradients(const Node& node) {
  if (node.kind != Node::Kind::kOp) return true;
  for (size_t i = 0; i < node.op->vjp_of_arg.size(); ++i) {
    if (!(node.needs >> (i < 63 ? i : 63) & 1)) continue;
    const bp_formula* formula = node.op->vjp_of_arg[i];
    if (!formula || !(formula->flags & BP_FORMULA_ZERO)) return true;
  }
  return false;
}

// Under all levels. Where nothing wants a gradient the function just runs.
std::vector<Tensor> call_checkpoint(const OpEntry& op, GraphFunction& function, Args args) {
  Captures captures;
  for (const Tensor& t : args)
    if (wants_grad(impl(t))) captures.note(impl(t));
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
  return record_checkpoint({op, function.shared_from_this(), nullptr, args, args, random.take()}, results, captures);
}

std::vector<Tensor> call_custom(const OpEntry& op, GraphFunction& function, Args args) {
  bool wanted = false;
  for (const Tensor& t : args) wanted = wanted || wants_grad(impl(t));
  Captures captures;
  if (!wanted) {
    NoteOnTape noting(&captures);
    std::vector<Tensor> results = function.call(args);
    captures.refuse(function.name(), "backward");
    return results;
  }
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
    for (const Tensor& t : args)
      if (wants_grad(impl(t))) captures->note(impl(t));
    return function.call(args);
  }
  return function.recompute() ? call_checkpoint(op, function, args) : call_custom(op, function, args);
}

}  // namespace

Version::Version(Tensor t) : tensor(std::move(t)), version(tensor ? version_now(*impl(tensor)) : 0) {}

void Version::check(const std::string& function) const {
  if (!tensor) return;
  if (impl(tensor)->wrapper && impl(tensor)->view) refresh(impl(tensor));  // its base may have changed since
  const uint32_t now = version_now(*impl(tensor));
  BP_CHECK(now == version, VALUE, function,
           ": a tensor that its backward pass needs was changed in place: it had version ", version, ", now ", now,
           "; use the out-of-place form, or copy the tensor before the change");
}

Captures::~Captures() {
  for (const Edge& edge : edges) release_edge(edge);
}

void Captures::note(TensorImpl* tensor) {
  const Edge edge = edge_to(tensor);
  if (!edge.node) return;
  if (!passes_gradients(*edge.node)) return release_edge(edge);
  if (!seen_.emplace(edge.node, edge.output).second) return release_edge(edge);
  edges.push_back(edge);
  versions.emplace_back(Tensor::share(tensor));
}

void Captures::note(const Call& call, const Level* level) {
  for (int32_t i = 0; i < call.n_args; ++i) {
    const bp_formula* formula = call.op.vjp_of_arg[static_cast<size_t>(i)];
    if (formula && (formula->flags & BP_FORMULA_ZERO)) continue;  // no gradient passes
    each_tensor(&call.args[i], 1, [&](TensorImpl* t) {
      if (level ? t->node && wrapper_of(*level, t) : wants_grad(t)) note(t);
    });
  }
}

void Captures::check_unchanged(const std::string& function) const {
  for (const Version& v : versions)
    BP_CHECK(version_now(*impl(v.tensor)) == v.version, VALUE, function,
             ": changes a tensor in place that was made outside of it and has a gradient; copy it first");
}

void Captures::refuse(const std::string& function, const char* transform) const {
  BP_CHECK(empty(), VALUE, function, ": uses a tensor from outside that ", transform,
           " differentiates, of which its rules say nothing; make it an argument, or use stop_gradient of it");
}

int32_t Captures::find(const Edge& edge) const {
  for (size_t i = 0; i < edges.size(); ++i)
    if (edges[i].node == edge.node && edges[i].output == edge.output) return static_cast<int32_t>(i);
  return -1;
}

std::vector<Tensor> call_graph(const OpEntry& op, GraphFunction& function, Args args) {
  if (Level* level = thread_state.level) return level->call_graph(op, function, args);
  return call_on_tape(op, function, args);
}

void call_higher_order(const Call& call) {
  const OpRecord& record = *call.op.record;
  GraphFunction* function = nullptr;
  std::vector<Tensor> args;
  for (int32_t i = 0; i < call.n_args; ++i) {
    const bp_value& v = call.args[i];
    if (v.tag == BP_TAG_GRAPH) function = static_cast<GraphFunction*>(const_cast<void*>(v.u.p));
    each_tensor(&v, 1, [&](TensorImpl* t) { args.push_back(Tensor::share(t)); });
  }
  BP_CHECK(function, TYPE, record.name, ": takes a function; found none");
  const std::vector<Tensor> results = call_graph(call.op, *function, args);
  for (const Tensor& t : results) BP_CHECK(t, VALUE, function->name(), ": returned an empty tensor");
  bp_value list = make_owned_list(static_cast<uint32_t>(results.size()));
  for (size_t i = 0; i < results.size(); ++i) owned_tensors(list)[i] = Tensor(results[i]).detach_handle();
  call.outs[0] = list;
}

}  // namespace backplane::core

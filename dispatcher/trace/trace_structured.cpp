#include "trace/trace_structured.hpp"

#include "functions/closed_over.hpp"
#include "memory/devices/device.hpp"
#include "trace/trace_level.hpp"
#include "trace/trace_updates.hpp"

namespace backplane::core {

using graph::Argument;
using graph::Dim;
using graph::Type;
using graph::ValueId;

std::shared_ptr<const graph::GraphBody> graph_of(const Body& body, std::span<const Tensor> examples) {
  if (auto own = std::dynamic_pointer_cast<const graph::GraphBody>(body)) return own;
  TraceLevel level(body->name().c_str(), {});
  level.keep_rules();
  std::vector<Tensor> entered;
  for (size_t i = 0; i < examples.size(); ++i) entered.push_back(level.enter(examples[i], "x" + std::to_string(i)));
  auto graph = level.finish(body->call(entered));
  check_no_updates(*graph, body->name());
  return std::make_shared<graph::GraphBody>(std::move(graph));
}

namespace {
[[gnu::constructor]] void register_forms() {
  traced_forms = [](const Body& body, std::span<const Tensor> args) { return graph_of(body, args)->result_examples(); };
}
}  // namespace

std::vector<Tensor> TraceLevel::record_structured(const Structured& call, std::span<const Tensor> args) {
  std::vector<std::vector<Tensor>> of_bodies;
  std::vector<Argument> arguments;
  for (size_t b = 0; b < call.bodies().size(); ++b) {
    const auto body = graph_of(call.bodies()[b], call.body_examples(b, args));
    arguments.push_back(Argument::of_graph(static_cast<uint32_t>(graph_->graphs.size())));
    graph_->graphs.push_back(body->graph());
    if (!body->graph()->own_rules.empty()) graph_->own_rules = graph_->not_of_ops = body->graph()->own_rules;
    if (!body->graph()->own_batch.empty()) graph_->own_batch = graph_->not_of_ops = body->graph()->own_batch;
    of_bodies.push_back(body->result_examples());
  }
  size_t next = 0, group = 0;
  for (size_t i = arguments.size(); i < call.op().record->args.size(); ++i) {
    const bp_arg_def& arg = call.op().record->args[i];
    if (arg.type != BP_TYPE_TENSOR) {
      arguments.push_back(graph_->copy(call.plain_argument(i)));
      continue;
    }
    std::vector<ValueId> ids;
    for (size_t k = 0; k < call.counts()[group]; ++k) ids.push_back(used_value(impl(args[next++]), true));
    arguments.push_back(arg.flags & BP_ARG_LIST ? graph_->list(ids) : Argument::of(ids[0]));
    ++group;
  }
  return record_functions_node(call.op(), arguments, call.result_examples(args, of_bodies));
}

// The graph of a function with rules, or nullptr where it cannot stand for the function: where it draws random numbers,
// for which the rules would draw others. What the function uses from outside is appended to `args`.
std::shared_ptr<const graph::Graph> TraceLevel::with_rules(GraphFunction& function, std::vector<Tensor>& args) const {
  using Rule = GraphFunction::Rule;
  const bool derives = function.has(Rule::kBackward) || function.has(Rule::kJvp), batches = function.has(Rule::kBatch);
  if (function.recompute() || !(derives || batches)) return nullptr;
  TraceLevel level(function.name().c_str(), where_);
  level.keep_rules();
  std::vector<Tensor> entered, lifted;
  for (size_t i = 0; i < args.size(); ++i) entered.push_back(level.enter(args[i], "x" + std::to_string(i)));
  level.lift(lifted);
  if (!below || !below->every_call) level.keep_constants();
  auto graph = level.finish(function.call(entered));
  if (!level.random().generators().empty()) return nullptr;
  check_no_updates(*graph, function.name());
  if (derives) graph->own_rules = function.name();
  if (batches) graph->own_batch = function.name();
  graph->rules = function.shared_from_this();
  if (!lifted.empty()) graph->rules = std::make_shared<ClosedOver>(function, args.size(), lifted);
  args.insert(args.end(), lifted.begin(), lifted.end());
  return graph;
}

std::vector<Tensor> TraceLevel::record_function(const OpEntry& op, const std::shared_ptr<const graph::Graph>& function,
                                                std::span<const Tensor> args) {
  std::vector<ValueId> ids;
  for (const Tensor& t : args) ids.push_back(used_value(impl(t)));
  const Argument arguments[] = {Argument::of_graph(static_cast<uint32_t>(graph_->graphs.size())), graph_->list(ids)};
  graph_->graphs.push_back(function);
  return record_functions_node(op, arguments, graph::GraphBody(function).result_examples());
}

std::vector<Tensor> TraceLevel::record_functions_node(const OpEntry& op, std::span<const Argument> arguments,
                                                      std::span<const Tensor> results) {
  std::vector<std::vector<Dim>> dims;
  std::vector<Type> types;
  dims.reserve(results.size());
  for (const Tensor& t : results) {
    dims.emplace_back(t.shape().begin(), t.shape().end());
    types.push_back({t.dtype(), t.device(), dims.back()});
  }
  const graph::NodeId node = graph_->add_node(op, arguments, types, location());
  note_unrecorded(node);
  const ValueId first = graph_->node(node).first_result;
  std::vector<Tensor> traced_results;
  for (size_t j = 0; j < results.size(); ++j) {
    const Tensor& t = results[j];
    traced_results.push_back(Tensor::adopt(
        traced(first + static_cast<ValueId>(j), device_of(*t.get()), t.dtype(), t.ndim(), t.shape().data())));
  }
  of_control_flow_.insert(of_control_flow_.end(), traced_results.begin(), traced_results.end());
  return traced_results;
}

}  // namespace backplane::core

#include "graph/graph_body.hpp"

#include "backplane/transforms.hpp"
#include "graph/ruled_graph.hpp"
#include "memory/devices/device.hpp"
#include "tape/node.hpp"

namespace backplane::core::graph {

Tensor example_of_value(const Graph& graph, ValueId value) {
  const Type type = graph.type(value);
  std::vector<int64_t> sizes;
  for (const Dim dim : type.dims) {
    BP_CHECK(dim.is_number(), NOT_IMPLEMENTED, "graph ", graph.name,
             ": is run by control flow, or transformed, where its sizes are numbers; found ", graph.text(dim));
    sizes.push_back(dim.number());
  }
  return Tensor::adopt(
      new_handle(device_at(type.device), type.dtype, static_cast<int32_t>(sizes.size()), sizes.data()));
}

std::shared_ptr<GraphFunction> function_of(const std::shared_ptr<const Graph>& graph) {
  if (graph->rules) return std::make_shared<RuledGraph>(graph);
  return std::make_shared<GraphBody>(graph);
}

std::vector<Tensor> GraphBody::call(std::span<const Tensor> args) {
  check_own_rules(*graph_, args);
  return executable_.run(args);
}

namespace {

bool is_batched(const Tensor& tensor) {
  for (const TensorImpl* t = impl(tensor.get()); t->wrapper; t = t->wrapper->inner)
    if (t->wrapper->batched) return true;
  return false;
}

}  // namespace

void check_own_rules(const Graph& graph, std::span<const Tensor> args) {
  if (!graph.own_batch.empty())
    for (const Tensor& t : args)
      BP_CHECK(!is_batched(t), NOT_IMPLEMENTED, "graph ", graph.name, ": holds the ops of ", graph.own_batch,
               ", a function with its own batch rule, which the graph would not use. Fix: batch "
               "the function, and trace the result");
  if (graph.own_rules.empty()) return;
  const bool is_kept_history = graph.own_rules == kUnrecordedChange;
  for (const Tensor& t : args)
    BP_CHECK(!differentiated_by(t) && !wants_grad(impl(t)), NOT_IMPLEMENTED, "graph ", graph.name,
             is_kept_history ? ": changes a tensor under " : ": holds the ops of ", graph.own_rules,
             is_kept_history
                 ? ", whose derivative stays the derivative of the earlier value, which a graph does not keep. Fix: "
                   "compute a new tensor in place of the change, or call the function without a graph"
                 : ", a function with its own derivative rules, which the graph would differentiate "
                   "without them. Fix: differentiate the function, and trace the result. Inside "
                   "control flow, give the function the random numbers that it draws as arguments");
}

std::vector<Tensor> GraphBody::result_examples() const {
  std::vector<Tensor> examples;
  for (const ValueId output : graph_->outputs) examples.push_back(example_of_value(*graph_, output));
  return examples;
}

}  // namespace backplane::core::graph

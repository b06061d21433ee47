// The public face of graphs.
#include "backplane/graph.hpp"

#include "graph/compare_traces.hpp"
#include "graph/files/model_file.hpp"
#include "graph/graph_body.hpp"
#include "graph/plans/draws.hpp"
#include "graph/plans/executable.hpp"
#include "graph/text/parse.hpp"
#include "graph/text/print.hpp"
#include "memory/process/epoch.hpp"

namespace backplane {
namespace {

using core::graph::ValueId;
using Core = core::graph::Graph;

const Core& held(const std::shared_ptr<const Core>& graph) {
  BP_CHECK(graph, VALUE, "graph: found an empty one, which a default-made Graph is; expected one that make_graph gave");
  return *graph;
}

Graph::Value described(const Core& graph, ValueId id) {
  const core::graph::Type type = graph.type(id);
  Graph::Value value{"%" + std::to_string(id), type.dtype, type.device, {}};
  for (core::graph::Dim dim : type.dims) value.dims.push_back(graph.text(dim));
  return value;
}

}  // namespace

Graph::Graph(std::shared_ptr<const Core> graph, GraphOptions options)
    : graph_(std::move(graph)),
      executable_(
          std::make_shared<core::graph::Executable>(graph_, core::graph::ExecutableOptions{std::move(options)})) {}

Graph::Graph(std::shared_ptr<const Core> graph, std::shared_ptr<core::graph::Executable> executable)
    : graph_(std::move(graph)), executable_(std::move(executable)) {}

bool Graph::is_dynamic() const { return !held(graph_).symbols().empty(); }

std::string Graph::refusal_of_sizes(std::span<const Tensor> inputs) const {
  std::vector<Shape> shapes;
  for (const Tensor& input : inputs) shapes.push_back(input.shape());
  try {
    held(graph_).check(graph_->bind(shapes));
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

std::string Graph::difference(const Graph& trace, std::span<const Tensor> inputs) const {
  std::vector<Shape> shapes;
  for (const Tensor& input : inputs) shapes.push_back(input.shape());
  const auto found = core::graph::difference(held(graph_), graph_->bind(shapes), held(trace.graph_));
  if (!found) return "";
  const std::string line = found->where.file + ":" + std::to_string(found->where.line);
  return found->where.line == 0 ? found->what : found->what + " (" + line + ")";
}

int64_t Graph::size_at(int64_t expression, std::span<const Tensor> inputs) const {
  std::vector<Shape> shapes;
  for (const Tensor& input : inputs) shapes.push_back(input.shape());
  const std::vector<int64_t> symbols = held(graph_).bind(shapes);
  return graph_->sizes.evaluate(core::graph::Dim(expression), symbols);
}

Graph Graph::at_sizes_of(std::span<const Tensor> inputs) const {
  core::CallGuard guard;
  held(graph_);
  std::shared_ptr<core::graph::Executable> at_sizes = executable_->at_sizes_of(inputs);
  if (!at_sizes) return *this;
  std::shared_ptr<const Core> graph = at_sizes->shared_graph();
  return Graph(std::move(graph), std::move(at_sizes));
}

std::string Graph::text() const {
  core::CallGuard guard;
  return core::graph::print(held(graph_));
}

size_t Graph::size() const { return held(graph_).nodes().size(); }

Graph::Node Graph::node(size_t i) const {
  const Core& graph = held(graph_);
  BP_CHECK(i < graph.nodes().size(), INDEX, "graph ", graph.name, ": has ", graph.nodes().size(),
           " nodes, found index ", i);
  const core::graph::Node& node = graph.node(static_cast<core::graph::NodeId>(i));
  Node found;
  found.op = node.op->handle;
  found.op_name = node.op->record->name;
  Core::each_value(graph.arguments(node), [&](ValueId v) { found.inputs.push_back("%" + std::to_string(v)); });
  for (auto& [name, text] : core::graph::argument_texts(graph, static_cast<core::graph::NodeId>(i)))
    found.arguments.emplace_back(std::move(name), std::move(text));
  for (uint32_t j = 0; j < node.n_results; ++j) found.results.push_back(described(graph, node.first_result + j));
  if (node.location != core::graph::kNone) {
    const core::graph::Location& at = graph.locations()[node.location];
    found.line = {at.file, at.function, at.line};
  }
  return found;
}

std::vector<Graph::Value> Graph::inputs() const {
  std::vector<Value> values;
  for (const core::graph::Input& input : held(graph_).inputs()) {
    values.push_back(described(*graph_, input.value));
    values.back().name = input.name;
  }
  return values;
}

std::vector<Graph::Value> Graph::outputs() const {
  std::vector<Value> values;
  const std::vector<ValueId>& outputs = held(graph_).outputs;
  for (size_t i = 0; i < graph_->n_results(); ++i) values.push_back(described(*graph_, outputs[i]));
  return values;
}

std::vector<Graph::Value> Graph::updates() const {
  std::vector<Value> values;
  for (const core::graph::Update& update : held(graph_).updates) {
    const core::graph::Value& target = graph_->value(update.target);
    values.push_back(described(*graph_, update.target));
    if (target.kind == core::graph::Value::Kind::kInput) values.back().name = graph_->inputs()[target.index].name;
  }
  return values;
}

std::string Graph::shared_memory(std::span<const Tensor> inputs) const {
  held(graph_);
  return executable_->updates().shared_memory(inputs);
}

std::vector<Tensor> Graph::constants() const {
  std::vector<Tensor> tensors;
  for (const core::graph::Constant& c : held(graph_).constants()) tensors.push_back(c.tensor);
  return tensors;
}

std::vector<std::string> Graph::generators() const { return held(graph_).generators; }

std::vector<Tensor> Graph::call(std::span<const Tensor> inputs, std::span<bp_generator_state* const> generators) const {
  core::CallGuard guard;
  const Core& graph = held(graph_);
  core::graph::check_own_rules(graph, inputs);
  if (graph.draws.empty() && generators.empty()) return executable_->run_and_update(inputs);
  std::vector<Shape> shapes;
  for (const Tensor& input : inputs) shapes.push_back(input.shape());
  const std::vector<int64_t> symbols = graph.bind(shapes);
  graph.check(symbols);
  return executable_->run_and_update(inputs, core::graph::reserve_draws(graph, generators, symbols));
}

std::string Graph::explain(std::span<const Tensor> inputs) const {
  held(graph_);
  return executable_->explain_run(inputs);
}

const GraphOptions& Graph::options() const {
  held(graph_);
  return executable_->options();
}

Graph Graph::with_options(GraphOptions options) const {
  held(graph_);
  return Graph(graph_, std::move(options));
}

void save_graph(const Graph& graph, const std::string& path) {
  core::CallGuard guard;
  held(graph.get());
  core::graph::save(*graph.get(), path);
}

Graph parse_graph(std::string_view text, const std::function<Tensor(const std::string&)>& constant,
                  std::optional<bp_device> device) {
  core::graph::FindConstant find;
  if (constant) find = [&](const core::graph::WantedConstant& wanted) { return constant(wanted.name); };
  return Graph(core::graph::parse(text, find, device));
}

Graph load_graph(const std::string& path, std::optional<bp_device> device) {
  return Graph(core::graph::load(path, device));
}

}  // namespace backplane

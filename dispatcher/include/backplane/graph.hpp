// Graphs of tensor functions: tracing a function into one, reading it, and running it again.
//
// A TraceScope is the thread's innermost transform until it ends: every op that is called inside, whatever its
// arguments are, is written down instead of being run. A Graph never changes, is shared by its copies, and may be run
// by any number of threads. All functions throw Error.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backplane/graph_function.hpp"
#include "backplane/size_uses.hpp"
#include "backplane/transforms.hpp"

namespace backplane {

namespace core {
class TraceLevel;
class DerivedGraphs;
namespace graph {
class Graph;
class SharedResults;
class Executable;
}  // namespace graph
}  // namespace core

// How a graph is to be run.
struct GraphOptions {
  // Per input: a run may write its results into the input's memory if nothing else refers to it. Empty: no input.
  std::vector<bool> donated;
  // The bytes that a run keeps between its nodes, without inputs and results. To stay within the budget, values are
  // recomputed where they are next needed, as far as that helps. The forward and backward half of a derivative share
  // the budget.
  std::optional<uint64_t> memory_budget;
};

class BACKPLANE_API Graph {
 public:
  Graph() = default;
  explicit Graph(std::shared_ptr<const core::graph::Graph> graph, GraphOptions options = {});
  explicit operator bool() const noexcept { return graph_ != nullptr; }
  const std::shared_ptr<const core::graph::Graph>& get() const noexcept { return graph_; }

  struct Value {
    std::string name;  // "%3"
    bp_dtype dtype;
    bp_device device;
    std::vector<std::string> dims;  // "4", "2*batch + 1"
  };
  struct Node {
    OpHandle op;
    std::string op_name;
    std::vector<std::string> inputs;  // names of values, without absent ones
    // By name, those that differ from their defaults, as the text has them: {"x", "%0"}, {"axis", "[1]"}.
    std::vector<std::pair<std::string, std::string>> arguments;
    std::vector<Value> results;
    SourceLine line;  // line 0: unknown
  };
  std::string text() const;  // docs/reference/graph-format.md
  size_t size() const;       // nodes
  Node node(size_t i) const;
  std::vector<Value> inputs() const;
  std::vector<Value> outputs() const;
  // What a call changes in place, as the function did: inputs, by their names, and constants.
  std::vector<Value> updates() const;
  std::vector<Tensor> constants() const;
  std::vector<std::string> generators() const;

  // Runs it from a plan that is made ready once for each of the latest sizes; where a transform or the tape follows an
  // input, as ordinary calls, one op after the other, so that it can be differentiated and batched. `generators`: as
  // many as `generators()` names, each moved on as the function would have done. Throws before it runs where an update
  // would change memory that something else shares (shared_memory).
  std::vector<Tensor> call(std::span<const Tensor> inputs, std::span<bp_generator_state* const> generators = {}) const;
  // Which input or constant that a call changes shares memory with another one, so that the function itself would do
  // something else. Empty: none does.
  std::string shared_memory(std::span<const Tensor> inputs) const;
  // Has it sizes that differ from call to call?
  bool is_dynamic() const;
  // Where inputs of these sizes break a constraint: which, and why it is one. Empty: they do not.
  std::string refusal_of_sizes(std::span<const Tensor> inputs) const;
  // In what a trace of the function, for inputs of these sizes, is not this graph. Empty: it is.
  std::string difference(const Graph& trace, std::span<const Tensor> inputs) const;
  // The number that an expression of its sizes (SizeNotes) has for inputs of these sizes.
  int64_t size_at(int64_t expression, std::span<const Tensor> inputs) const;
  // The graph for inputs of these sizes, in which sizes are numbers; kept with this one.
  Graph at_sizes_of(std::span<const Tensor> inputs) const;
  // Who would run which node for inputs of these sizes, and how memory is reused. For people.
  std::string explain(std::span<const Tensor> inputs) const;
  const GraphOptions& options() const;
  Graph with_options(GraphOptions options) const;

 private:
  Graph(std::shared_ptr<const core::graph::Graph> graph, std::shared_ptr<core::graph::Executable> executable);

  std::shared_ptr<const core::graph::Graph> graph_;
  std::shared_ptr<core::graph::Executable> executable_;
};

// A graph whose derivatives and batches are graphs as well. They are made when a transform or the tape first asks for
// them, and kept. Constants take part as arguments do.
class BACKPLANE_API TransformableGraph {
 public:
  explicit TransformableGraph(const Graph& graph);
  std::vector<Tensor> call(std::span<const Tensor> inputs, std::span<bp_generator_state* const> generators = {}) const;
  // What the traced function held for which its derivative has to be taken of the function itself; empty: nothing.
  static const std::string& refusal(const Graph& graph);

 private:
  Graph graph_;
  std::shared_ptr<const core::graph::SharedResults> shared_;
  std::shared_ptr<core::DerivedGraphs> derived_;
};

struct TensorRead {
  Tensor tensor;
  uint64_t version;  // version_of(tensor) then
};

class BACKPLANE_API TraceScope {
 public:
  // `where`: asked for every op that is written down.
  explicit TraceScope(const char* transform = "make_graph", std::function<SourceLine()> where = {});
  ~TraceScope();
  TraceScope(const TraceScope&) = delete;
  // The tensor that the function sees instead of `example`. Reads only the shape (unless `shape` is given), dtype and
  // device of `example`.
  Tensor enter(const Tensor& example, std::string name, std::optional<Shape> shape = {});
  // The caller differentiates the function, and never the graph in its place. Values computed under no_grad then need
  // no nodes that make them constants.
  void runs_only();
  // Ends the scope. Results that depend on no input are constants of the graph.
  Graph leave(std::span<const Tensor> results, GraphOptions options = {});
  // The generators that the function drew from, in the order of Graph::generators. Their states are unchanged since
  // reserve_random received them.
  std::span<bp_generator_state* const> generators() const;
  // The tensors from outside whose values the function has read, unordered. The graph has no nodes for these reads.
  std::vector<TensorRead> reads() const;
  // Tensors from outside that the function has changed in place so far. They keep their values until the graph runs.
  std::vector<Tensor> changed() const;
  // The same of a tensor that `enter` gave.
  bool has_changed(const Tensor& entered) const;
  // For a generator made inside the function: its calls always return the numbers that they would return now.
  void fix_generator(size_t index);

 private:
  std::unique_ptr<core::TraceLevel> level_;
};

// Functions as arguments of control flow (the ops cond, while_loop, scan). Each is traced for arguments like its
// examples. Tensors that they use from outside become additional arguments of every function, after its own: `lifted`.
// Some may be known before. Random numbers are drawn here, before the op is called, and become arguments too.
struct BodyOf {
  const char* name;  // of what the user called, for messages
  Function function;
  std::vector<Tensor> examples;
  size_t first_row = 0;  // `n_rows` examples from there on are gone through along axis 0: the function sees an element
  size_t n_rows = 0;
  // May it draw random numbers? Those of one run, which are `lifted`; or others for each of `length` rows, which are
  // further rows behind the `n_rows` ones. kNone: an error.
  enum class Draws : uint8_t { kNone, kOnce, kPerRow };
  Draws draws = Draws::kNone;
  int64_t length = 0;
};
struct Bodies {
  std::vector<std::shared_ptr<GraphFunction>> functions;
  std::vector<Tensor> lifted;
  std::vector<Tensor> rows;  // random numbers to go through
};
// `made_inside`: was the generator made by the function, which makes it anew at each run? So that it gives the same
// numbers each time.
BACKPLANE_API Bodies make_bodies(std::span<const BodyOf> functions, std::span<const Tensor> lifted_so_far = {},
                                 const std::function<SourceLine()>& where = {},
                                 const std::function<bool(const bp_generator_state*)>& made_inside = {});

// One file that every reader of safetensors opens (docs/reference/graph-format.md): the constants as tensors, the graph
// in the metadata.
BACKPLANE_API void save_graph(const Graph& graph, const std::string& path);
// Opens the plugins of the ops and devices that the file names. `device`: where it is to run in their place.
BACKPLANE_API Graph load_graph(const std::string& path, std::optional<bp_device> device = {});

// The graph of a text (docs/reference/graph-format.md), as Graph::text writes it. `constant`: returns the tensor, by
// name, of a constant whose elements are not in the text; empty if unknown. `device`: as in load_graph.
BACKPLANE_API Graph parse_graph(std::string_view text, const std::function<Tensor(const std::string&)>& constant = {},
                                std::optional<bp_device> device = {});

// The graph with some nodes replaced. `edit` is called for each node, in order, inside a trace, with the node's index
// and the tensors that it reads. The tensors that `edit` returns replace the node's results; nullopt keeps the node.
// This covers adding, dropping and moving nodes. Unused nodes are dropped before a run. `where`: as for TraceScope.
// The sizes of the graph must be numbers.
using EditNode = std::function<std::optional<std::vector<Tensor>>(size_t node, std::span<const Tensor> inputs)>;
BACKPLANE_API Graph edit_graph(const Graph& graph, const EditNode& edit, const std::function<SourceLine()>& where = {});

// A named size of these input axes, which may differ from call to call.
struct DynamicSize {
  std::string name;
  std::vector<std::pair<size_t, uint32_t>> places;  // input, axis
};
// A function from tensors to tensors as a graph, for arguments like these. With dynamic sizes it is traced some ten
// times; the graph is valid for other sizes within the constraints that it states.
BACKPLANE_API Graph make_graph(const Function& function, std::span<const Tensor> examples,
                               std::span<const DynamicSize> dynamic = {});

// The function's trace at given dynamic sizes. If the graph is empty, the trace failed and `refusal` gives the reason.
struct TracedAt {
  Graph graph;
  std::string refusal;
  SourceLine line;
  std::vector<SizeUse> uses;
};
using TraceAt = std::function<TracedAt(std::span<const int64_t>)>;
// The graph of a function for all sizes. `traced` is one trace; `trace` makes others. If the function needs the value
// of a size, throws BP_ERROR_SHAPE, which names it. `notes`: the uses of `traced`; the rest is filled in.
BACKPLANE_API Graph with_dynamic_sizes(const Graph& traced, std::span<const DynamicSize> dynamic, const TraceAt& trace,
                                       GraphOptions options = {}, SizeNotes* notes = nullptr);

}  // namespace backplane

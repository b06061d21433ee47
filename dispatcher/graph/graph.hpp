// A graph: typed single assignment over the registry's ops, with what a replay must know.
//
// Values, nodes and arguments lie in flat arrays and name each other by index. A value is an input, a constant, or a
// result of one node; nodes stand in an order in which they can run. What an argument points to (strings, lists) is the
// graph's. A graph holds its constants and the records of its ops. It knows nothing of tracing. No locks: one thread
// edits; any number may read.
//
// Editing: nodes are appended, or inserted before another one; values are replaced; nodes are erased. All of that is
// noted, and `compact` carries it out in one linear walk, which renumbers everything.
#pragma once

#include <deque>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backplane/graph_function.hpp"
#include "graph/dim.hpp"
#include "registry/registry.hpp"

namespace backplane::core::graph {

using ValueId = uint32_t;
using NodeId = uint32_t;
inline constexpr uint32_t kNone = 0xffffffffu;

// A bp_value whose references are the graph's:
// TENSOR: `u.i` is a ValueId. TENSOR_LIST: `u.p` leads to `count` ValueIds, kNone for an absent element.
// GENERATOR: `count` is a draw, `u.i` the Dim of the counters that come before in it. GRAPH: `count` is a sub-graph.
// INT and INT_LIST with kSymbolic: Dims, by their code; FLOAT with kSymbolic: the number of `u.i`'s Dim, or `count`
// divided by it where that is not 0. All else is as a call takes it, in the graph's memory.
struct Argument {
  bp_value plain{};
  static constexpr uint16_t kSymbolic = 1u << 14;  // in plain.flags

  bool is_value() const { return plain.tag == BP_TAG_TENSOR; }
  bool is_values() const { return plain.tag == BP_TAG_TENSOR_LIST; }
  bool is_draw() const { return plain.tag == BP_TAG_GENERATOR; }
  bool is_graph() const { return plain.tag == BP_TAG_GRAPH; }
  bool is_symbolic() const { return plain.flags & kSymbolic; }
  ValueId value() const { return static_cast<ValueId>(plain.u.i); }
  std::span<ValueId> values() const { return {static_cast<ValueId*>(const_cast<void*>(plain.u.p)), plain.count}; }
  uint32_t draw() const { return plain.count; }
  Dim offset() const { return dims_at(&plain.u.i, 1)[0]; }
  uint32_t graph() const { return plain.count; }
  // Of INT and INT_LIST, symbolic or not, and of a symbolic FLOAT.
  std::span<const Dim> dims() const {
    return plain.tag != BP_TAG_INT_LIST ? dims_at(&plain.u.i, 1) : dims_at(plain.u.ints, plain.count);
  }

  static Argument of(ValueId value) {
    Argument a;
    a.plain.tag = BP_TAG_TENSOR;
    a.plain.u.i = value;
    return a;
  }
  static Argument of_draw(uint32_t draw, Dim offset = 0) {
    Argument a;
    a.plain.tag = BP_TAG_GENERATOR;
    a.plain.count = draw;
    a.plain.u.i = offset.code();
    return a;
  }
  static Argument of_graph(uint32_t graph) {
    Argument a;
    a.plain.tag = BP_TAG_GRAPH;
    a.plain.count = graph;
    return a;
  }
  static Argument of_size(Dim dim) {
    Argument a;
    a.plain.tag = BP_TAG_INT;
    a.plain.flags = dim.is_number() ? 0 : kSymbolic;
    a.plain.u.i = dim.code();
    return a;
  }
  // The floating number of the Dim; with a dividend, that divided by it.
  static Argument of_float(Dim dim, uint32_t dividend = 0) {
    Argument a = of_size(dim);
    a.plain.tag = BP_TAG_FLOAT;
    a.plain.flags = kSymbolic;
    a.plain.count = dividend;
    return a;
  }

 private:
  static std::span<const Dim> dims_at(const int64_t* codes, size_t n) {
    return {reinterpret_cast<const Dim*>(codes), n};
  }
};
static_assert(sizeof(Argument) == 16 && sizeof(Dim) == sizeof(int64_t));

// In place of a function's name in Graph::own_rules: a tensor that has a history was changed where nothing is recorded.
inline constexpr std::string_view kUnrecordedChange = "no_grad";

struct Type {
  bp_dtype dtype;
  bp_device device;
  std::span<const Dim> dims;
};

struct Value {
  enum class Kind : uint8_t { kInput, kConstant, kResult };
  Kind kind;
  uint8_t ndim;
  bp_dtype dtype;
  uint32_t index;  // of the input or constant; among the node's results
  NodeId node;     // kNone: an input or a constant
  uint32_t first_dim;
  bp_device device;
};

struct Node {
  enum : uint16_t {
    kErased = 1u << 0,
    // Computed again on purpose (a checkpoint's backward pass): it is not to be merged with an equal node.
    kRecomputed = 1u << 1
  };
  const OpEntry* op;
  uint32_t first_argument;
  ValueId first_result;
  uint32_t location;   // kNone: unknown
  uint32_t n_results;  // flat: of an op with a list among its results, the list's tensors follow each other
  uint16_t n_arguments;
  uint16_t flags;
};

struct Location {
  std::string file, function;
  int32_t line = 0;
  bool operator==(const Location&) const = default;
};

struct Input {
  std::string name;
  ValueId value;
};
struct Constant {
  std::string name;  // may be empty
  Tensor tensor;
  ValueId value;
  // Somebody else may change the tensor in place, and expects a replay to see that: it is not to be folded.
  bool live = false;
};

// A symbol's number is a size of a value: of an input, where a user named it; of a result, where it depends on values.
// Without a value, it is the symbol of this name in the outer graph or, with a divisor, a quotient.
struct Symbol {
  ValueId value;
  uint32_t axis;
  int64_t example;  // when the graph was made
  Dim numerator = 0;
  int64_t divisor = 0;  // rounded down; the numerator's symbols come before this one
};

// What holds of the sizes, because somebody relied on it. `left` stands in the relation to `right`.
struct Constraint {
  enum class Relation : uint8_t { kEqual, kNotEqual, kLess, kLessEqual, kDivisible };
  Relation relation;
  Dim left, right;
  uint32_t location;
  std::string reason;
};

// Where a random op's counters come from. Several nodes may take the same draw.
// RESERVED: a replay reserves them anew, in the order of the draws, before it runs: `count` of `generator`, which the
// caller gives. DERIVED: from the draw `from`, whose counter is moved on by `offset`, as vmap does for rows of their
// own (derived_generator, levels/random_log.hpp). FIXED: always `state`.
struct Draw {
  enum class Kind : uint8_t { kReserved, kDerived, kFixed };
  Kind kind = Kind::kReserved;
  uint32_t generator = kNone;
  Dim count = 0;
  uint32_t from = kNone;
  Dim offset = 0;
  uint64_t stream = 0;
  bp_generator_state state{};
};

// A tensor that is changed in place: an input or a constant, which has another value after a run. These values are the
// graph's last outputs, one per update, in their order. An output before them that is such a value, or a view of one,
// is the tensor itself, or a view of it, after the change (updates.hpp).
struct Update {
  ValueId target;
  bool recorded;  // a change was made with recording on, so that it belongs to the tensor's history
  bool operator==(const Update&) const = default;
};

class Graph {
 public:
  Graph();
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  // ---- Reading. References hold until something is added.
  std::string name;
  const std::vector<Value>& values() const { return values_; }
  const std::vector<Node>& nodes() const { return nodes_; }  // also erased ones, until `compact`
  const Value& value(ValueId id) const { return values_[id]; }
  const Node& node(NodeId id) const { return nodes_[id]; }
  bool is_erased(NodeId id) const { return nodes_[id].flags & Node::kErased; }
  std::span<const Argument> arguments(const Node& node) const {
    return {arguments_.data() + node.first_argument, node.n_arguments};
  }
  std::span<const Dim> dims(ValueId id) const { return {dims_.data() + values_[id].first_dim, values_[id].ndim}; }
  Type type(ValueId id) const { return {values_[id].dtype, values_[id].device, dims(id)}; }
  bp_device device_of(const Node& node) const;  // of its results
  const std::vector<Input>& inputs() const { return inputs_; }
  const std::vector<Constant>& constants() const { return constants_; }
  std::vector<ValueId> outputs;  // an output may be an input or a constant, and the same as another one
  std::vector<Update> updates;
  size_t n_results() const { return outputs.size() - updates.size(); }
  std::vector<Constraint> constraints;
  std::vector<Draw> draws;
  std::vector<std::string> generators;  // a name each; a replay is given one for each
  // A function with derivative rules of its own that was taken apart into its ops, so that a derivative of the graph is
  // not the function's; empty: none.
  std::string own_rules;  // or kUnrecordedChange
  // The same of a rule for batches. Not written to files.
  std::string own_batch;
  // That function, where a node of control flow's graphs calls this graph for it and so its rules are kept. Not written
  // to files.
  std::shared_ptr<GraphFunction> rules;
  // What in the function makes a derivative of these ops another one than the function's, or one that needs other
  // memory: it is to be taken of the function. Empty: nothing. Not written to files.
  std::string not_of_ops;
  std::vector<std::shared_ptr<const Graph>> graphs;

  const std::vector<Location>& locations() const { return locations_; }
  const std::vector<Symbol>& symbols() const { return symbols_; }
  std::span<const std::string> symbol_names() const { return symbol_names_; }
  DimTable sizes;  // expressions in the symbols
  std::string text(Dim dim) const { return sizes.text(dim, symbol_names_); }
  // `numerator` divided by a positive number, rounded down: a number, or a symbol, the same one for the same quotient.
  Dim quotient(Dim numerator, int64_t divisor);
  // What each ValueId that a node or the outputs read is called with, in order; sub-graphs read nothing of this one.
  template <class Visit>
  static void each_value(std::span<const Argument> arguments, Visit visit) {
    for (const Argument& a : arguments) {
      if (a.is_value()) visit(a.value());
      if (a.is_values())
        for (ValueId v : a.values())
          if (v != kNone) visit(v);
    }
  }
  // The values of all symbols for inputs of these shapes, in the order of `inputs`; those of results are 0.
  // Throws BP_ERROR_SHAPE where ranks or fixed sizes differ, or two axes disagree on a symbol.
  std::vector<int64_t> bind(std::span<const Shape> shapes) const;
  // Throws BP_ERROR_SHAPE naming the first constraint that does not hold, and where it came from. Constraints on
  // symbols of results are passed over where those are 0.
  void check(std::span<const int64_t> symbols) const;

  // ---- Building. The types' dims and what arguments point to are copied.
  ValueId add_input(std::string name, const Type& type);
  ValueId add_constant(Tensor tensor, std::string name = {}, bool live = false);
  void rename_constant(size_t index, std::string to) { constants_[index].name = std::move(to); }
  void set_constant(size_t index, Tensor to) { constants_[index].tensor = std::move(to); }
  void make_live(size_t index) { constants_[index].live = true; }
  SymbolId add_symbol(std::string name, ValueId value, uint32_t axis, int64_t example);
  uint32_t add_location(Location location);  // the same index for the same location
  // Memory of the graph, for what an argument points to.
  void* allocate(size_t bytes);
  Argument copy(const bp_value& plain);  // neither tensors, nor a generator, nor a graph
  Argument list(std::span<const ValueId> values);
  Argument sizes_of(std::span<const Dim> dims);
  // At the end. Of full length: defaults filled in. Results are `node(id).first_result` and those behind it.
  NodeId add_node(const OpEntry& op, std::span<const Argument> arguments, std::span<const Type> results,
                  uint32_t location = kNone, uint16_t flags = 0);

  // ---- Editing, carried out by `compact`.
  NodeId insert_node(NodeId before, const OpEntry& op, std::span<const Argument> arguments,
                     std::span<const Type> results, uint32_t location = kNone, uint16_t flags = 0);
  void erase(NodeId node);
  // Every use of `old`, outputs too, becomes one of `replacement`, whose type is the same.
  void replace_uses(ValueId old, ValueId replacement);
  ValueId resolve(ValueId value) const;                                  // after the replacements so far
  void set_arguments(NodeId node, std::span<const Argument> arguments);  // of any number
  void set_location(NodeId node, uint32_t location) { nodes_[node].location = location; }
  // Inputs stay; constants that nobody uses go. Throws BP_ERROR_RUNTIME where a result of an erased node is used.
  void compact();
  // The same graph, to be edited apart from this one.
  std::unique_ptr<Graph> clone() const;
  // The name, the draws and functions that its nodes refer to, and facts about the function.
  void copy_facts(const Graph& other);

 private:
  ValueId add_value(Value::Kind kind, const Type& type, uint32_t index, NodeId node);
  void hold(const OpEntry& op);
  // With a list of its own: no two nodes share one, as `compact` writes into them.
  Argument owned(const Argument& a) { return a.is_values() ? list(a.values()) : a; }
  void redirect(std::span<const Argument> arguments);
  std::vector<NodeId> order() const;

  std::vector<Value> values_;
  std::vector<Node> nodes_;
  std::vector<Argument> arguments_;
  std::vector<Dim> dims_;
  std::vector<Input> inputs_;
  std::vector<Constant> constants_;
  std::vector<Location> locations_;
  std::vector<Symbol> symbols_;
  std::vector<std::string> symbol_names_;
  std::vector<ValueId> replaced_;                    // per value: by which; empty while nothing is
  std::vector<std::pair<NodeId, NodeId>> inserted_;  // before which, and the node
  struct Held;
  std::unique_ptr<Held> held_;  // records of the ops; the memory of arguments
};

}  // namespace backplane::core::graph

// Ops that take a function (BP_OP_HIGHER_ORDER): how each level, and the tape under them, treats its call.
//
// Every level of the thread takes part, the innermost first, whether or not the arguments are its own: what the
// function uses from outside may be. A level hands a derived function to the levels below, which pushes the level
// again, with its serial, around the original; so the function runs once, at all of its levels. Where a gradient is
// wanted, nothing of the run is recorded but which tensors with a history it used, and one node stands for all of it
// (graph_node.cpp).
#pragma once

#include <memory>
#include <set>
#include <span>
#include <vector>

#include "backplane/graph_function.hpp"
#include "transforms/level.hpp"
#include "transforms/tape.hpp"

namespace backplane::core {

using Args = std::span<const Tensor>;

// A call of a flagged op, from dispatch.
void call_higher_order(const Call& call);
// From the innermost level of the thread downwards.
std::vector<Tensor> call_graph(const OpEntry& op, GraphFunction& function, Args args);

// A tensor as a node saw it, to tell whether it was changed in place since.
struct Version {
  explicit Version(Tensor t);
  void check(const std::string& function) const;
  Tensor tensor;
  uint32_t version;
};

// The tensors with a history, of one level or the tape, that a run used without making them.
class Captures {
 public:
  Captures() = default;
  ~Captures();
  Captures(const Captures&) = delete;
  void note(TensorImpl* tensor);
  void note(const Call& call, const Level* level);  // of `level`; nullptr: the tape's
  bool empty() const { return edges.empty(); }
  // After a run that must not have changed any of them.
  void check_unchanged(const std::string& function) const;
  // After a run of a function with rules of its own, which say nothing of them.
  void refuse(const std::string& function, const char* transform) const;
  // The edge's place; -1 where it was not noted.
  int32_t find(const Edge& edge) const;

  std::vector<Edge> edges;  // owned; each once
  std::vector<Version> versions;

 private:
  std::set<std::pair<Node*, uint32_t>> seen_;
};

// The tape notes into `captures` instead of recording, for a scope; nullptr: it records.
class NoteOnTape {
 public:
  explicit NoteOnTape(Captures* captures) : saved_(thread_state.captures) { thread_state.captures = captures; }
  ~NoteOnTape() { thread_state.captures = saved_; }
  NoteOnTape(const NoteOnTape&) = delete;

 private:
  Captures* saved_;
};

// graph_rules.cpp. The function, or where it has forward rules alone, one whose backward is the transpose of its jvp.
// Throws where it has neither, naming the transform.
std::shared_ptr<GraphFunction> with_backward(GraphFunction& function, const char* transform);
[[noreturn]] void throw_missing_rule(const GraphFunction& function, const char* transform, const char* rule);

}  // namespace backplane::core

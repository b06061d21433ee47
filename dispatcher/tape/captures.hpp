// What a run of a function used from outside: tensors with a history that it did not make, and the versions that it
// saw. A gradient level, or the tape, notes them instead of recording while the function runs. The results that
// it computes from them get a mark as their history. A derivative that reaches a mark is refused: nothing of the run is
// kept.
#pragma once

#include <set>
#include <span>
#include <string>
#include <vector>

#include "tape/node.hpp"

namespace backplane::core {

// A tensor as a node saw it, to see whether it was changed in place since.
struct Version {
  explicit Version(Tensor t);
  void check(const std::string& function) const;
  Tensor tensor;
  uint32_t version;
};

// The tensors with a history, of one level or the tape, that a run used without making them.
class Captures {
 public:
  explicit Captures(std::string function = {}) : function_(std::move(function)) {}
  ~Captures();
  Captures(const Captures&) = delete;
  void note(TensorImpl* tensor);
  void note(const Call& call, const Level* level);  // of `level`; nullptr: the tape's
  // Marks the results of a call, or of a function, whose arguments have a history or a mark.
  void mark(const Call& call, const Level* level);
  void mark(std::span<const Tensor> results, const Level* level);
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
  void mark(TensorImpl* result, const Level* level);
  // Does its history end in the mark?
  bool is_made_here(Node* node) const;

  std::set<std::pair<Node*, uint32_t>> seen_;
  std::string function_;
  Node* mark_ = nullptr;  // owned; made with the first mark
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

}  // namespace backplane::core

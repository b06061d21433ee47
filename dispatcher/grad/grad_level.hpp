// Reverse mode as a level: the graph of a functional gradient, of the same nodes as the tape.
//
// Values are kept as seen below the level, so that a pullback outlives it, and its formulas run as ordinary calls at
// the levels that are active then.
#pragma once

#include <vector>

#include "backplane/transforms.hpp"
#include "levels/level.hpp"
#include "tape/node.hpp"

namespace backplane::core {

class GradLevel final : public Level {
 public:
  explicit GradLevel(const char* transform) : Level(transform) {}
  GradLevel(const char* transform, uint64_t serial) : Level(transform, serial) {}
  ~GradLevel() override;
  void handle(const Call& call) override;
  std::vector<Tensor> call_graph(const OpEntry& op, GraphFunction& function, std::span<const Tensor> args) override;
  bool writes_through() const override { return is_tape; }
  void check_write(const Call& call, const TensorImpl& target) override;

  bool* recording() override { return &recording_; }
  // A leaf of this level's graph around `input`.
  Tensor track(const Tensor& input);

  Captures* captures = nullptr;  // not owned: calls are noted there instead of being recorded
  bool is_tape = false;          // of a TapeScope
  bool is_passive = false;       // the derivatives of what runs are given by rules: nothing is recorded
  std::vector<Edge> inputs;      // owned: the leaves, in the order of `track`
  std::vector<Tensor> below;     // what they wrap

 private:
  bool recording_ = true;
};

struct PullbackState {
  const char* transform = "";
  std::vector<Tensor> roots;     // as the function returned them; unwrapped ones do not depend on any input
  std::vector<Edge> root_edges;  // owned; empty where a root has no history
  std::vector<Edge> inputs;      // owned
  std::vector<Tensor> below;     // the inputs' values: for zeros
  ~PullbackState();
};

}  // namespace backplane::core

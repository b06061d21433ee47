// Random numbers while a function is traced: no counter is taken, but each reservation becomes a draw of the graph.
//
// What a function gets is a state that stands for the draw: a key of this trace, and a counter whose high part is the
// draw's number. The level recognises it, and the number added to the counter, in the arguments of random ops.
#pragma once

#include <unordered_map>

#include "graph/graph.hpp"
#include "levels/random_log.hpp"

namespace backplane::core {

class TraceRandom final : public RandomScope {
 public:
  TraceRandom(graph::Graph& graph, uint64_t serial);
  // Moves the draws of a graph to this one, which has none yet. Returns states that stand for them, one per draw.
  std::vector<bp_generator_state> take_draws(const graph::Graph& of);
  // The argument for a generator's state. A state that is not a draw of this trace never changes.
  graph::Argument argument(const bp_generator_state& state);
  const std::vector<bp_generator_state*>& generators() const { return generators_; }
  // Draws of this generator become fixed ones, from the state that it had at the first.
  void fix(size_t generator);

 private:
  static constexpr int kOffsetBits = 40;
  bp_generator_state reserve(RandomScope* outer, bp_generator_state& generator, uint64_t count) override;
  void note_derived(const bp_generator_state& from, uint64_t stream, const bp_generator_state& state) override;
  bool is_draw(const bp_generator_state& state) const;
  uint32_t add(graph::Draw draw);

  graph::Graph& graph_;
  uint64_t key_;
  std::vector<bp_generator_state*> generators_;
  std::vector<bp_generator_state> first_states_;
  std::unordered_map<uint64_t, uint32_t> derived_;  // by the derived key
};

}  // namespace backplane::core

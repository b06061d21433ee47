#include "graph/plans/draws.hpp"

#include "backplane/graph_function.hpp"
#include "levels/random_log.hpp"

namespace backplane::core::graph {

std::vector<bp_generator_state> reserve_draws(const Graph& graph, std::span<bp_generator_state* const> generators,
                                              std::span<const int64_t> symbols) {
  BP_CHECK(generators.size() == graph.generators.size(), VALUE, "graph ", graph.name, ": draws random numbers from ",
           graph.generators.size(), " generators, found ", generators.size());
  std::vector<bp_generator_state> states;
  states.reserve(graph.draws.size());
  for (const Draw& draw : graph.draws) {
    if (draw.kind == Draw::Kind::kFixed) {
      states.push_back(draw.state);
    } else if (draw.kind == Draw::Kind::kDerived) {
      bp_generator_state from = states.at(draw.from);
      from.counter += static_cast<uint64_t>(graph.sizes.evaluate(draw.offset, symbols));
      states.push_back(derived_generator(from, draw.stream));
    } else {
      const auto count = static_cast<uint64_t>(graph.sizes.evaluate(draw.count, symbols));
      states.push_back(reserve_random(*generators[draw.generator], count));
    }
  }
  return states;
}

}  // namespace backplane::core::graph

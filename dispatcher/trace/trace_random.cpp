#include "trace/trace_random.hpp"

#include <algorithm>

namespace backplane::core {

using graph::Argument;
using graph::Draw;

// A key that nobody's generator has but by chance: multiples of an odd number are all different.
TraceRandom::TraceRandom(graph::Graph& graph, uint64_t serial)
    : graph_(graph), key_(serial * 0x9e3779b97f4a7c15u ^ 0x5bd1e995b1a85ae3u) {}

uint32_t TraceRandom::add(Draw draw) {
  graph_.draws.push_back(draw);
  return static_cast<uint32_t>(graph_.draws.size() - 1);
}

std::vector<bp_generator_state> TraceRandom::take_draws(const graph::Graph& of) {
  graph_.draws = of.draws;
  graph_.generators = of.generators;
  std::vector<bp_generator_state> states;
  for (size_t draw = 0; draw < of.draws.size(); ++draw) states.push_back({key_, uint64_t{draw} << kOffsetBits});
  return states;
}

bp_generator_state TraceRandom::reserve(RandomScope*, bp_generator_state& generator, uint64_t count) {
  const auto known = std::find(generators_.begin(), generators_.end(), &generator);
  const auto index = static_cast<uint32_t>(known - generators_.begin());
  if (known == generators_.end()) {
    generators_.push_back(&generator);
    first_states_.push_back(generator);
    graph_.generators.push_back("generator" + std::to_string(index));
  }
  Draw draw;
  draw.generator = index;
  draw.count = static_cast<int64_t>(count);
  return {key_, uint64_t{add(draw)} << kOffsetBits};
}

bool TraceRandom::is_draw(const bp_generator_state& state) const {
  return state.key == key_ && (state.counter >> kOffsetBits) < graph_.draws.size();
}

void TraceRandom::note_derived(const bp_generator_state& from, uint64_t stream, const bp_generator_state& state) {
  const auto earlier = derived_.find(from.key);
  if (!is_draw(from) && earlier == derived_.end()) return;
  Draw draw;
  draw.kind = Draw::Kind::kDerived;
  const bool direct = is_draw(from);
  draw.from = direct ? static_cast<uint32_t>(from.counter >> kOffsetBits) : earlier->second;
  draw.offset = static_cast<int64_t>(direct ? from.counter & ((uint64_t{1} << kOffsetBits) - 1) : from.counter);
  draw.stream = stream;
  const auto [place, is_new] = derived_.try_emplace(state.key, static_cast<uint32_t>(graph_.draws.size()));
  if (is_new) add(draw);
}

Argument TraceRandom::argument(const bp_generator_state& state) {
  if (is_draw(state))
    return Argument::of_draw(static_cast<uint32_t>(state.counter >> kOffsetBits),
                             static_cast<int64_t>(state.counter & ((uint64_t{1} << kOffsetBits) - 1)));
  if (const auto derived = derived_.find(state.key); derived != derived_.end())
    return Argument::of_draw(derived->second, static_cast<int64_t>(state.counter));
  Draw draw;
  draw.kind = Draw::Kind::kFixed;
  draw.state = state;
  return Argument::of_draw(add(draw));
}

void TraceRandom::fix(size_t generator) {
  bp_generator_state state = first_states_[generator];
  for (Draw& draw : graph_.draws) {
    if (draw.kind != Draw::Kind::kReserved || draw.generator != generator) continue;
    draw.kind = Draw::Kind::kFixed;
    draw.state = state;
    state.counter += static_cast<uint64_t>(draw.count.number());
  }
}

}  // namespace backplane::core

#include "trace/body_draws.hpp"

#include <algorithm>
#include <map>

#include "call/dispatch.hpp"
#include "graph/extract.hpp"
#include "graph/plans/draws.hpp"
#include "graph/text/print.hpp"
#include "levels/random_log.hpp"

namespace backplane::core {
namespace {

using graph::Argument;
using graph::Draw;
using graph::ValueId;

class DrawOutside {
 public:
  DrawOutside(const graph::Graph& graph, const BodyOf& body, std::span<bp_generator_state* const> generators)
      : graph_(graph), body_(body), generators_(generators) {}

  std::shared_ptr<graph::Graph> run(Bodies& bodies) {
    std::vector<ValueId> inputs, kept, rows;
    for (const graph::Input& input : graph_.inputs()) inputs.push_back(input.value);
    for (const graph::Node& node : graph_.nodes()) {
      const std::span<const Argument> arguments = graph_.arguments(node);
      const auto draw = std::find_if(arguments.begin(), arguments.end(), [](const Argument& a) { return a.is_draw(); });
      if (draw == arguments.end()) continue;
      check(node);
      const bool by_row = body_.draws == BodyOf::Draws::kPerRow && root(draw->draw()).kind == Draw::Kind::kReserved;
      (by_row ? rows : kept).push_back(node.first_result);
      (by_row ? bodies.rows : bodies.lifted).push_back(drawn(node, *draw, by_row));
    }
    inputs.insert(inputs.begin() + static_cast<ptrdiff_t>(body_.first_row + body_.n_rows), rows.begin(), rows.end());
    inputs.insert(inputs.end(), kept.begin(), kept.end());
    std::shared_ptr<graph::Graph> without = graph::extract(graph_, inputs, graph_.outputs);
    without->draws.clear();
    without->generators.clear();
    return without;
  }

 private:
  void check(const graph::Node& node) const {
    const OpRecord& record = *node.op->record;
    size_t shapes = 0;
    bool plain = node.n_results == 1;
    for (const bp_arg_def& arg : record.args) shapes += arg.type == BP_TYPE_SHAPE ? 1 : 0;
    for (const Argument& a : graph_.arguments(node)) plain = plain && !a.is_value() && !a.is_values() && !a.is_graph();
    BP_CHECK(plain && shapes == 1, NOT_IMPLEMENTED, body_.name, ": its function draws random numbers with ",
             record.name,
             ", which takes more than one shape. Fix: draw them before, all at once, and pass them as an argument");
  }

  const Draw& root(uint32_t draw) const {
    while (graph_.draws[draw].kind == Draw::Kind::kDerived) draw = graph_.draws[draw].from;
    return graph_.draws[draw];
  }

  // Of one run: what the function would have got. The same ones for the same call, which a derivative makes again.
  bp_generator_state state_of(uint32_t draw) {
    if (states_.empty() && body_.draws == BodyOf::Draws::kOnce) states_ = graph::reserve_draws(graph_, generators_, {});
    if (!states_.empty()) return states_[draw];
    const Draw& d = graph_.draws[draw];
    if (d.kind == Draw::Kind::kFixed) return d.state;
    bp_generator_state from = state_of(d.from);
    from.counter += static_cast<uint64_t>(d.offset.number());
    return derived_generator(from, d.stream);
  }

  // Of all runs: counters of their own.
  bp_generator_state state_of_rows(const Draw& reserved) const {
    uint64_t count = 0;
    BP_CHECK(!__builtin_mul_overflow(static_cast<uint64_t>(reserved.count.number()),
                                     static_cast<uint64_t>(std::max<int64_t>(body_.length, 0)), &count),
             MEMORY, body_.name, ": its function draws random numbers in each of ", body_.length,
             " steps, more than any memory holds");
    return reserve_random(*generators_[reserved.generator], count);
  }

  Tensor drawn(const graph::Node& node, const Argument& draw, bool by_row) {
    std::string key(node.op->record->name);
    for (const Argument& a : graph_.arguments(node)) key += ", " + graph::argument_text(graph_, a);
    const auto [known, is_new] = known_.try_emplace(std::move(key));
    if (!is_new) return known->second;
    bp_generator_state state = by_row ? state_of_rows(root(draw.draw())) : state_of(draw.draw());
    if (!by_row) state.counter += static_cast<uint64_t>(draw.offset().number());
    std::vector<int64_t> shape;
    bp_value args[kMaxArgs];
    int32_t n_args = 0;
    for (const Argument& a : graph_.arguments(node)) {
      bp_value& v = args[n_args];
      v = a.plain;
      if (a.is_draw()) {
        v.count = 0;
        v.u.g = &state;
      } else if (by_row && node.op->record->args[static_cast<size_t>(n_args)].type == BP_TYPE_SHAPE) {
        shape.assign(v.u.ints, v.u.ints + v.count);
        shape.insert(shape.begin(), body_.length);
        v = value(Shape(shape));
      }
      ++n_args;
    }
    return known->second = Tensor::adopt(call_one(*node.op, args, n_args));
  }

  const graph::Graph& graph_;
  const BodyOf& body_;
  std::span<bp_generator_state* const> generators_;
  std::vector<bp_generator_state> states_;
  std::map<std::string, Tensor> known_;
};

}  // namespace

std::shared_ptr<graph::Graph> draw_outside(std::shared_ptr<graph::Graph> graph, const BodyOf& body,
                                           std::span<bp_generator_state* const> generators, Bodies& bodies) {
  if (graph->draws.empty()) return graph;
  BP_CHECK(body.draws != BodyOf::Draws::kNone, NOT_IMPLEMENTED, body.name,
           ": its function draws random numbers, but the number of its runs is not known. Fix: draw them before, all "
           "at once, "
           "and pass them as an argument");
  return DrawOutside(*graph, body, generators).run(bodies);
}

}  // namespace backplane::core

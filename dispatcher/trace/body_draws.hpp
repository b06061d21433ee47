// Random numbers that a function of control flow draws: they are drawn before the op runs, those of all its runs at
// once, and given to it as arguments, so that the function itself draws none and every transform treats them as what
// they are.
#pragma once

#include "backplane/graph.hpp"
#include "graph/graph.hpp"

namespace backplane::core {

// The graph of `body` without draws. Its random ops are called here, at the active levels: once, and their result
// joins `bodies.lifted` and the inputs behind these; or with a row for each run, and it joins `bodies.rows` and
// the inputs behind the rows. What never changes is drawn once. `generators`: of the graph. Throws where `body` may
// draw none, or by an op that does not make its result of plain arguments.
std::shared_ptr<graph::Graph> draw_outside(std::shared_ptr<graph::Graph> graph, const BodyOf& body,
                                           std::span<bp_generator_state* const> generators, Bodies& bodies);

}  // namespace backplane::core

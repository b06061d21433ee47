// A graph's sizes as numbers: of its symbols for a call, of an argument, of the whole graph.
//
// What Graph::bind, check and quotient do is defined here as well. No locks: they read a graph, or edit one that is the
// caller's.
#pragma once

#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "graph/graph.hpp"

namespace backplane::core::graph {

int64_t floor_divide(int64_t numerator, int64_t divisor);

// In `count` of a symbolic FLOAT: of the square root of the size, or the rest of `count` divided by that.
inline constexpr uint32_t kRootOfSize = 1u << 31;

// Of an INT in a symbolic VALUE_LIST.
Dim dim_of(const bp_value& element);
// The number of a symbolic FLOAT.
double float_of(const Graph& graph, const Argument& argument, std::span<const int64_t> symbols);
// A symbolic argument as a call takes it. Its list lies in `ints`.
bp_value evaluated(const Graph& graph, const Argument& argument, std::span<const int64_t> symbols,
                   std::deque<std::vector<int64_t>>& ints);

// Has it symbols, and is each known once a call's inputs are?
bool is_sized_by_inputs(const Graph& graph);
// The numbers of the symbols of a graph within `outer`, from the numbers of the outer symbols of the same name. Throws
// Error where `outer` has none of that name.
std::vector<int64_t> symbols_within(const Graph& outer, std::span<const int64_t> symbols, const Graph& inner);
// The same graph with these numbers in place of symbols, in the graphs within it too. Each op's rules are asked again:
// throws Error naming the node where they give other sizes than the graph's.
std::shared_ptr<const Graph> specialize(const Graph& graph, std::span<const int64_t> symbols);

}  // namespace backplane::core::graph

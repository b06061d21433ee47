// A graph of one op becomes a call of that op, whatever its inputs are called.
#include "node_call.hpp"

#include <gtest/gtest.h>

#include "null_backend.hpp"

namespace backplane::jax {
namespace {

Graph graph_of(std::string_view text) {
  testing::null_backend();
  return parse_graph(text);
}

NodeCall require(std::string_view text) {
  std::optional<NodeCall> call = NodeCall::of(graph_of(text));
  if (!call) throw std::runtime_error("found no call, expected one");
  return *call;
}

TEST(NodeCall, TakesInputsThatHaveNamesOfTheirOwn) {
  EXPECT_NO_THROW(require(R"(graph "named" {
  input %0 "args[0]": float32[8] "null"
  input %1 "x.y": float32[8] "null"
  %2: float32[8] "null" = bp::subtract(%1, %0)
  output %2
})"));
}

TEST(NodeCall, ReadsNumbersListsAndWords) {
  EXPECT_NO_THROW(require(R"(graph "sum" {
  input %0 "x": float32[2, 3] "null"
  %1: float32[2, 1] "null" = bp::sum(%0, axis=[1], keepdims=true)
  output %1
})"));
  EXPECT_NO_THROW(require(R"(graph "add" {
  input %0 "x": float32[2] "null"
  %1: float32[2] "null" = bp::add(%0, 2.5)
  output %1
})"));
}

TEST(NodeCall, LeavesGraphsOfSeveralOpsAndViews) {
  EXPECT_FALSE(NodeCall::of(graph_of(R"(graph "two" {
  input %0 "x": float32[2] "null"
  %1: float32[2] "null" = bp::sin(%0)
  %2: float32[2] "null" = bp::cos(%1)
  output %2
})")));
  EXPECT_FALSE(NodeCall::of(graph_of(R"(graph "view" {
  input %0 "x": float32[2, 3] "null"
  %1: float32[3, 2] "null" = bp::permute_dims(%0, [1, 0])
  output %1
})")));
  EXPECT_FALSE(NodeCall::of(graph_of(R"(graph "view or copy" {
  input %0 "x": float32[2, 3] "null"
  %1: float32[6] "null" = bp::reshape(%0, [6])
  output %1
})")));
}

}  // namespace
}  // namespace backplane::jax

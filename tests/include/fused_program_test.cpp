// A region as calls: a call per op over codegen's functions, casts and half floats' rounding as the ops would have
// them, an operand loaded once for each way in which it is read; and which nodes are taken for one region.
#include "backplane/plugin/fused_program.hpp"

#include <gtest/gtest.h>

#include <deque>

#include "backplane/plugin/regions.hpp"

namespace backplane::plugin {
namespace {

class TinyGraph {
 public:
  int64_t value(bp_dtype dtype, std::vector<int64_t> dims) {
    const auto& kept = dims_.emplace_back(std::move(dims));
    values_.push_back({dtype, 0, static_cast<int32_t>(kept.size()), kept.data(), {2, 0}, nullptr});
    return static_cast<int64_t>(values_.size()) - 1;
  }
  int64_t input(bp_dtype dtype, std::vector<int64_t> dims) {
    inputs_.push_back(static_cast<uint32_t>(value(dtype, std::move(dims))));
    return inputs_.back();
  }
  int64_t node(const char* op, std::vector<bp_value> args, bp_dtype compute, bp_dtype dtype,
               std::vector<int64_t> dims) {
    const int64_t made = value(dtype, std::move(dims));
    const auto& kept = args_.emplace_back(std::move(args));
    const auto& result = results_.emplace_back(static_cast<uint32_t>(made));
    nodes_.push_back({op, 0, 1, kept.data(), &result, static_cast<uint32_t>(kept.size()), 1, compute, 0, 0,
                      ~uint64_t{0}, 0, nullptr});
    return made;
  }
  void recompute(std::initializer_list<size_t> nodes) {
    for (const size_t i : nodes) nodes_[i].flags |= BP_GRAPH_NODE_RECOMPUTED;
  }
  const bp_graph* crossing(std::vector<uint32_t> outputs) {
    outputs_ = std::move(outputs);
    graph_ = {BP_HEADER(bp_graph),
              {values_.data(), static_cast<uint32_t>(values_.size()), sizeof(bp_graph_value)},
              {nodes_.data(), static_cast<uint32_t>(nodes_.size()), sizeof(bp_graph_node)},
              inputs_.data(),
              outputs_.data(),
              static_cast<uint32_t>(inputs_.size()),
              static_cast<uint32_t>(outputs_.size())};
    return &graph_;
  }

 private:
  std::deque<std::vector<int64_t>> dims_;
  std::deque<std::vector<bp_value>> args_;
  std::deque<uint32_t> results_;
  std::vector<bp_graph_value> values_;
  std::vector<bp_graph_node> nodes_;
  std::vector<uint32_t> inputs_, outputs_;
  bp_graph graph_{};
};

bp_value ref(int64_t value) {
  bp_value made{};
  made.tag = BP_TAG_REF;
  made.u.i = value;
  return made;
}
bp_value number(double value) {
  bp_value made{};
  made.tag = BP_TAG_FLOAT;
  made.u.f = value;
  return made;
}

const FusedOps kOps{{{{"t::plus", BP_FLOAT32}, {"plus_f", 2, BP_FLOAT32}},
                     {{"t::less", BP_FLOAT32}, {"less_f", 2, BP_BOOL}},
                     {{"t::divide", BP_INT32}, {"divide_i", 2, BP_INT32}},
                     {{"t::choose", BP_FLOAT32}, {"choose_f", 3, BP_FLOAT32}}},
                    {"t::cast"},
                    {"t::view"},
                    [](std::string_view op, bp_dtype) { return op == "t::divide"; }};
constexpr bp_device kHere{2, 0};

std::vector<std::string> functions(const FusedProgram& program) {
  std::vector<std::string> names;
  for (const FusedCall& call : program.calls) names.push_back(call.function);
  return names;
}
FusedProgram lowered(const bp_graph* graph) {
  const GraphView view(graph);
  return FusedLowering(view, FusedRules(view, kHere, kOps, 0)).run();
}

TEST(FusedProgram, HalfFloatsAreRoundedAfterEachOpAndCastThroughFloat32) {
  TinyGraph g;
  const int64_t x = g.input(BP_FLOAT16, {4}), y = g.input(BP_INT8, {4});
  const int64_t sum = g.node("t::plus", {ref(x), ref(y)}, BP_FLOAT16, BP_FLOAT16, {4});
  const int64_t less = g.node("t::less", {ref(sum), number(0.1)}, BP_FLOAT16, BP_BOOL, {4});
  const FusedProgram program = lowered(g.crossing({static_cast<uint32_t>(less)}));
  const std::vector<std::string> expected = {"bp_cast_int8_float32", "rounded_float16", "plus_f", "rounded_float16",
                                             "less_f"};
  EXPECT_EQ(functions(program), expected);
  ASSERT_EQ(program.numbers.size(), 1u);
  float held;
  std::memcpy(&held, program.numbers[0].bytes, sizeof(held));
  EXPECT_EQ(held, static_cast<float>(float16(0.1f)));  // the number is a float16 first
}

TEST(FusedProgram, AnOperandIsLoadedOnceForEachWayInWhichItLies) {
  TinyGraph g;
  const int64_t x = g.input(BP_FLOAT32, {3, 3}), row = g.input(BP_FLOAT32, {3}), one = g.input(BP_FLOAT32, {1, 1});
  const int64_t a = g.node("t::plus", {ref(x), ref(row)}, BP_FLOAT32, BP_FLOAT32, {3, 3});
  const int64_t b = g.node("t::plus", {ref(a), ref(row)}, BP_FLOAT32, BP_FLOAT32, {3, 3});
  const int64_t c = g.node("t::plus", {ref(b), ref(one)}, BP_FLOAT32, BP_FLOAT32, {3, 3});
  const FusedProgram program = lowered(g.crossing({static_cast<uint32_t>(c), static_cast<uint32_t>(a)}));
  ASSERT_EQ(program.loads.size(), 3u);
  EXPECT_EQ(program.loads[0].axes, (std::vector<int32_t>{0, 1}));
  EXPECT_EQ(program.loads[1].axes, (std::vector<int32_t>{-1, 0}));
  EXPECT_TRUE(program.loads[2].uniform());
  ASSERT_EQ(program.stores.size(), 2u);
  EXPECT_EQ(program.stores[1].variable, program.calls[0].result);
}

TEST(FusedRules, FewElementsThatShareNoValueAreOneRegionWhereTheBackendSaysSo) {
  TinyGraph g;
  const int64_t x = g.input(BP_FLOAT32, {6}), y = g.input(BP_FLOAT32, {6}), z = g.input(BP_FLOAT32, {7}),
                n = g.input(BP_INT32, {6});
  g.node("t::plus", {ref(x), number(1)}, BP_FLOAT32, BP_FLOAT32, {6});
  const int64_t b = g.node("t::plus", {ref(y), number(2)}, BP_FLOAT32, BP_FLOAT32, {6});
  g.node("t::plus", {ref(z), number(2)}, BP_FLOAT32, BP_FLOAT32, {7});
  const int64_t c = g.node("t::divide", {ref(b), ref(n)}, BP_INT32, BP_INT32, {6});  // of another's kernel
  const int64_t d = g.node("t::plus", {ref(c), number(3)}, BP_FLOAT32, BP_FLOAT32, {6});
  const int64_t e = g.node("t::plus", {ref(d), number(3)}, BP_FLOAT32, BP_FLOAT32, {6});
  const GraphView view(g.crossing({0, 1, static_cast<uint32_t>(e)}));
  FusedOps ops = kOps;
  const auto regions = [&](int64_t most) {
    ops.most_alike = most;
    return grow_regions(view, FusedRules(view, kHere, ops, 0)).regions;
  };
  constexpr uint32_t kNone = BP_NO_REGION;
  EXPECT_EQ(regions(5), (std::vector<uint32_t>{kNone, kNone, kNone, kNone, 0, 0}));
  // The first one is read by nobody, so it waits for the last; the second is what the last depends on.
  EXPECT_EQ(regions(6), (std::vector<uint32_t>{0, kNone, kNone, kNone, 0, 0}));
}

TEST(FusedRules, ChainsOfOneShapeAreOneRegionAndWhatIsNotTakenHasAReason) {
  TinyGraph g;
  const int64_t x = g.input(BP_FLOAT32, {6}), n = g.input(BP_INT32, {6}), flag = g.input(BP_BOOL, {6});
  const int64_t a = g.node("t::plus", {ref(x), number(1)}, BP_FLOAT32, BP_FLOAT32, {6});
  const int64_t b = g.node("t::view", {ref(a)}, BP_FLOAT32, BP_FLOAT32, {1, 6});
  const int64_t c = g.node("t::choose", {ref(flag), ref(b), number(2)}, BP_FLOAT32, BP_FLOAT32, {1, 6});
  g.node("t::divide", {ref(n), ref(n)}, BP_INT32, BP_INT32, {6});
  g.node("t::plus", {ref(n), ref(n)}, BP_INT32, BP_INT32, {6});
  g.node("t::choose", {ref(x), ref(x), ref(x)}, BP_FLOAT32, BP_FLOAT32, {6});
  g.node("t::view", {ref(x)}, BP_FLOAT32, BP_FLOAT32, {2, 3});
  g.node("t::plus", {ref(c), ref(c)}, BP_DTYPE_NONE, BP_FLOAT32, {1, 6});
  const GraphView view(g.crossing({static_cast<uint32_t>(c)}));
  const Partition found = grow_regions(view, FusedRules(view, kHere, kOps, 0));
  EXPECT_EQ(found.n_regions, 1u);
  const std::vector<uint32_t> none(5, BP_NO_REGION);
  EXPECT_EQ(std::vector<uint32_t>(found.regions.begin(), found.regions.begin() + 3), std::vector<uint32_t>(3, 0));
  EXPECT_EQ(std::vector<uint32_t>(found.regions.begin() + 3, found.regions.end()), none);
  EXPECT_STREQ(found.reasons[0], nullptr);
  EXPECT_STREQ(found.reasons[3], "it may find an error in its data");
  EXPECT_STREQ(found.reasons[4], "it is no elementwise op of the dtype");
  EXPECT_STREQ(found.reasons[5], "an argument is neither a tensor of its dtype nor a number");
  EXPECT_STREQ(found.reasons[6], "it is a view of another shape");
  EXPECT_STREQ(found.reasons[7], "the host keeps the call to itself");
}

// A value that is kept for later would be kept all the same, had its second run joined the first.
TEST(FusedRules, WhatIsComputedAgainJoinsNothingBefore) {
  TinyGraph g;
  const int64_t x = g.input(BP_FLOAT32, {6});
  const auto plus = [&](int64_t a, int64_t b) {
    return g.node("t::plus", {ref(a), ref(b)}, BP_FLOAT32, BP_FLOAT32, {6});
  };
  const int64_t a = plus(x, x), b = plus(a, a), again = plus(a, a), twice = plus(again, again), c = plus(twice, b);
  plus(c, b);
  g.recompute({2, 3});
  const GraphView view(g.crossing({static_cast<uint32_t>(b), static_cast<uint32_t>(c)}));
  const Partition found = grow_regions(view, FusedRules(view, kHere, kOps, 0));
  EXPECT_EQ(found.regions, (std::vector<uint32_t>{0, 0, 1, 1, 1, 1}));
}

TEST(FusedRules, DtypesThatTheDeviceLacksAreLeft) {
  TinyGraph g;
  const int64_t x = g.input(BP_FLOAT32, {6});
  const int64_t a = g.node("t::plus", {ref(x), ref(x)}, BP_FLOAT32, BP_FLOAT32, {6});
  const int64_t b = g.node("t::plus", {ref(a), ref(x)}, BP_FLOAT32, BP_FLOAT32, {6});
  const GraphView view(g.crossing({static_cast<uint32_t>(b)}));
  EXPECT_EQ(grow_regions(view, FusedRules(view, kHere, kOps, 0)).n_regions, 1u);
  EXPECT_EQ(grow_regions(view, FusedRules(view, kHere, kOps, BP_DTYPE_BIT(BP_FLOAT32))).n_regions, 0u);
}

TEST(FusedProgram, NodesOfTwoShapesAreRefused) {
  TinyGraph g;
  const int64_t x = g.input(BP_FLOAT32, {6}), y = g.input(BP_FLOAT32, {5});
  const int64_t a = g.node("t::plus", {ref(x), ref(x)}, BP_FLOAT32, BP_FLOAT32, {6});
  const int64_t b = g.node("t::plus", {ref(y), ref(y)}, BP_FLOAT32, BP_FLOAT32, {5});
  EXPECT_THROW(lowered(g.crossing({static_cast<uint32_t>(a), static_cast<uint32_t>(b)})), Error);
}

}  // namespace
}  // namespace backplane::plugin

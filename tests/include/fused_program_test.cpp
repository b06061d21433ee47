// A region as calls: a call per op over codegen's functions, casts and half floats' rounding as the ops would have
// them, an operand loaded once for each way in which it is read; and which nodes are taken for one region.
#include "backplane/plugin/fused_program.hpp"

#include <gtest/gtest.h>

#include "backplane/plugin/regions.hpp"
#include "include/tiny_graph.hpp"

namespace backplane::plugin {
namespace {

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
  EXPECT_STREQ(found.reasons[4], "it is not an elementwise op of the dtype");
  EXPECT_STREQ(found.reasons[5], "an argument is not a tensor of its dtype, and not a number");
  EXPECT_STREQ(found.reasons[6], "it is a view of another shape");
  EXPECT_STREQ(found.reasons[7], "the host does not pass the call to compilers");
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

// Regions with reductions: which nodes make one, how values lie in its rows, and in which passes they are computed.
#include "backplane/plugin/fused_passes.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <string>

#include "backplane/plugin/fused_region.hpp"
#include "backplane/plugin/regions.hpp"
#include "include/tiny_graph.hpp"

namespace backplane::plugin {
namespace {

using Places = std::vector<size_t>;

FusedOps with_rows() {
  FusedOps ops = kOps;
  ops.joins[BP_JOIN_SUM] = "sum";
  ops.accumulator = [](uint16_t, bp_dtype result) {
    return result == BP_FLOAT16 ? bp_dtype{BP_FLOAT32} : result == BP_BOOL ? bp_dtype{BP_DTYPE_NONE} : result;
  };
  ops.longest_row = 1000;
  return ops;
}
const FusedOps kWithRows = with_rows();

class Rows : public ::testing::Test {
 protected:
  int64_t plus(int64_t a, int64_t b, std::vector<int64_t> dims) {
    return g.node("t::plus", {ref(a), ref(b)}, BP_FLOAT32, BP_FLOAT32, std::move(dims));
  }
  int64_t sum(int64_t x, const std::vector<int64_t>& axes, std::vector<int64_t> dims, bp_dtype dtype = BP_FLOAT32) {
    bp_value list{};
    list.tag = BP_TAG_INT_LIST;
    list.count = static_cast<uint32_t>(axes.size());
    list.u.ints = axes_.emplace_back(axes).data();
    return g.node("t::sum", {ref(x), list}, dtype, dtype, std::move(dims));
  }
  const bp_graph* of(std::vector<int64_t> outputs) { return g.crossing({outputs.begin(), outputs.end()}); }
  std::vector<uint32_t> regions(const bp_graph* graph, const FusedOps& ops = kWithRows) {
    const GraphView view(graph);
    const FusedRules rules(view, kHere, ops, 0);
    return grow_regions(view, rules).regions;
  }
  std::string reason(int64_t value) {
    const GraphView view(of({value}));
    const FusedRules rules(view, kHere, kWithRows, 0);
    return rules.reason(view.n_nodes() - 1);
  }
  FusedProgram lowered(const bp_graph* graph) {
    const GraphView view(graph);
    return FusedLowering(view, FusedRules(view, kHere, kWithRows, 0)).run();
  }

  TinyGraph g;
  std::deque<std::vector<int64_t>> axes_;
};

TEST_F(Rows, ValuesOfAnElementPerRowAndForEachAreOneRegionWhereTheBackendNamesReductions) {
  const int64_t x = g.input(BP_FLOAT32, {5, 6});
  const int64_t y = plus(x, x, {5, 6}), kept = sum(y, {1}, {5, 1}), centred = plus(y, kept, {5, 6});
  const int64_t total = sum(centred, {1}, {5}), twice = plus(total, total, {5});
  EXPECT_EQ(regions(of({centred, twice})), std::vector<uint32_t>(5, 0));
  constexpr uint32_t kNone = BP_NO_REGION;
  EXPECT_EQ(regions(of({centred, twice}), kOps), (std::vector<uint32_t>{kNone, kNone, kNone, kNone, kNone}));
}

TEST_F(Rows, WhatIsRepeatedAlongARowCostsNothing) {
  const int64_t x = g.input(BP_FLOAT32, {5, 6});
  const int64_t total = sum(x, {1}, {5, 1});
  const int64_t repeated = g.node("t::view", {ref(total)}, BP_FLOAT32, BP_FLOAT32, {5, 6});
  const int64_t y = plus(repeated, x, {5, 6});
  EXPECT_EQ(regions(of({y})), std::vector<uint32_t>(3, 0));
  const FusedProgram program = lowered(of({y}));
  EXPECT_EQ(program.calls[0].args[0], program.reductions[0].result);
}

TEST_F(Rows, WhatReadsAValuePerRowAlongTheColumnsIsNoneOfTheRegion) {
  const int64_t x = g.input(BP_FLOAT32, {6, 6});
  const int64_t y = plus(x, x, {6, 6}), total = sum(y, {1}, {6}), z = plus(y, total, {6, 6});
  const std::vector<uint32_t> found = regions(of({plus(z, z, {6, 6})}));
  EXPECT_EQ(found, (std::vector<uint32_t>{0, 0, 1, 1}));
}

TEST_F(Rows, OtherReductionsAreLeftWithAReason) {
  const int64_t x = g.input(BP_FLOAT32, {5, 6, 7}), thin = g.input(BP_FLOAT32, {5, 1});
  EXPECT_EQ(reason(sum(x, {1}, {5, 7})), "it reduces over axes that are not the last ones");
  EXPECT_EQ(reason(sum(x, {-1}, {5, 6})), "it names an axis that its operand does not have");
  EXPECT_EQ(reason(sum(thin, {1}, {5})), "its rows have one element");
  EXPECT_EQ(reason(sum(x, {2}, {5, 6}, BP_BOOL)), "it does not accumulate in the dtype of its result");
  const std::string sizes = "its rows are empty, too long, or of a size that is not known yet";
  EXPECT_EQ(reason(sum(g.input(BP_FLOAT32, {5, 0}), {1}, {5})), sizes);
  EXPECT_EQ(reason(sum(g.input(BP_FLOAT32, {5, 1001}), {1}, {5})), sizes);
  EXPECT_EQ(reason(sum(g.input(BP_FLOAT32, {5, -1}), {1}, {5})), sizes);
  EXPECT_EQ(reason(sum(g.input(BP_FLOAT32, {-1, 5}), {1}, {-1})), sizes);
  EXPECT_EQ(reason(sum(g.input(BP_FLOAT32, {5, 40, 40}), {1, 2}, {5})), sizes);
}

TEST_F(Rows, AReductionIsRoundedAsItsKernelStoresIt) {
  const int64_t x = g.input(BP_FLOAT16, {2, 1, 3, 4});
  const int64_t total = sum(x, {3}, {2, 1, 3}, BP_FLOAT16);
  const FusedProgram program = lowered(of({total}));
  EXPECT_EQ(program.space.dims, (std::vector<int64_t>{2, 3, 4}));
  EXPECT_EQ(program.space.rows(), 6);
  EXPECT_EQ(program.space.row_length(), 4);
  ASSERT_EQ(program.reductions.size(), 1u);
  EXPECT_EQ(program.reductions[0].dtype, BP_FLOAT32);
  ASSERT_EQ(program.calls.size(), 1u);
  EXPECT_EQ(program.calls[0].function, "rounded_float16");
  EXPECT_EQ(program.stores[0].axes, (std::vector<int32_t>{0, 2, -1}));
}

// y = x + x; centred = y + sum(y); total = sum(centred)
TEST_F(Rows, APassComputesWhatItNeedsAndWhatFollowsAReductionComesLater) {
  const int64_t x = g.input(BP_FLOAT32, {5, 6}), row = g.input(BP_FLOAT32, {5, 1}), other = g.input(BP_FLOAT32, {5, 6});
  const int64_t y = plus(x, x, {5, 6}), kept = sum(y, {1}, {5, 1}), shifted = plus(kept, row, {5, 1});
  const int64_t centred = plus(y, shifted, {5, 6}), total = sum(centred, {1}, {5});
  const int64_t last = plus(other, other, {5, 6});
  const FusedProgram program = lowered(of({centred, total, last}));
  const FusedPasses passes(program);
  EXPECT_EQ(passes.row_loads, Places{1});
  EXPECT_EQ(passes.row_calls, Places{});
  ASSERT_EQ(passes.passes.size(), 2u);
  const FusedPass &first = passes.passes[0], &second = passes.passes[1];
  EXPECT_EQ(first.loads, (Places{0, 2}));
  EXPECT_EQ(first.calls, (Places{0, 3}));  // y, last
  EXPECT_EQ(first.reductions, Places{0});
  EXPECT_EQ(first.stores, Places{2});
  EXPECT_EQ(first.calls_behind, Places{1});
  EXPECT_EQ(second.loads, Places{0});
  EXPECT_EQ(second.calls, (Places{0, 2}));  // y again, centred
  EXPECT_EQ(second.reductions, Places{1});
  EXPECT_EQ(second.stores, Places{0});
  EXPECT_EQ(passes.row_stores, Places{1});
}

TEST_F(Rows, AnOutputLiesInAnInputThatNoLaterPassReads) {
  bp_host host{};
  const int64_t x = g.input(BP_FLOAT32, {5, 6}), row = g.input(BP_FLOAT32, {5, 1});
  const int64_t y = plus(x, x, {5, 6}), kept = sum(y, {1}, {5, 1}), shifted = plus(kept, row, {5, 1});
  const int64_t centred = plus(y, shifted, {5, 6});
  const GraphView view(of({y, centred, shifted}));
  const FusedRegion region(&host, view, FusedRules(view, kHere, kWithRows, 0));
  EXPECT_FALSE(region.may_share(0, 0));  // y is written by the first pass, x read by the second
  EXPECT_TRUE(region.may_share(1, 0));
  EXPECT_FALSE(region.may_share(2, 1));  // lanes read what there is one of per row when they come to it
}

TEST_F(Rows, OneRowIsTheWholeTensor) {
  const int64_t x = g.input(BP_FLOAT32, {3, 4});
  const int64_t total = sum(x, {0, 1}, {}), twice = plus(total, total, {}), y = plus(x, twice, {3, 4});
  const FusedProgram program = lowered(of({y, twice}));
  EXPECT_EQ(program.space.rows(), 1);
  EXPECT_EQ(program.space.row_length(), 12);
  const FusedPasses passes(program);
  EXPECT_EQ(passes.levels[program.calls[0].result], FusedLevel::kRow);
  EXPECT_EQ(passes.row_stores, Places{1});
  EXPECT_EQ(passes.stores_once, Places{});
}

}  // namespace
}  // namespace backplane::plugin

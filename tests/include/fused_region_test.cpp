// What executables of compiled regions share: the constants that they hold, where operands usually lie, and which
// outputs may lie in an input.
#include "backplane/plugin/fused_region.hpp"

#include <gtest/gtest.h>

#include "include/tiny_graph.hpp"

namespace backplane::plugin {
namespace {

struct Region : FusedRegion {
  using FusedRegion::check_counts;
  using FusedRegion::usual_places;
  Region(const bp_host* host, const GraphView& view) : FusedRegion(host, view, FusedRules(view, kHere, kOps, 0)) {}
};

int g_held = 0;

bp_host counting_host() {
  bp_host host{};
  host.retain = [](bp_tensor*) { ++g_held; };
  host.release = [](bp_tensor*) { --g_held; };
  return host;
}

using Sizes = std::vector<int64_t>;

TEST(FusedRegion, HoldsItsConstantsWhereTheyLie) {
  const bp_host host = counting_host();
  int64_t shape[] = {2, 3}, strides[] = {1, 2};
  bp_tensor tensor{};
  tensor.dtype = BP_FLOAT32;
  tensor.dl.ndim = 2;
  tensor.dl.shape = shape;
  tensor.dl.strides = strides;
  TinyGraph g;
  const int64_t x = g.input(BP_FLOAT32, {2, 3}), c = g.constant(tensor);
  const int64_t a = g.node("t::plus", {ref(x), ref(c)}, BP_FLOAT32, BP_FLOAT32, {2, 3});
  const GraphView view(g.crossing({static_cast<uint32_t>(a)}));
  {
    const Region region(&host, view);
    EXPECT_EQ(g_held, 1);
    const std::vector<FusedPlace> places = region.usual_places(view);
    ASSERT_EQ(places.size(), 3u);  // x, the constant, the output
    EXPECT_EQ(places[0].strides, (Sizes{3, 1}));
    EXPECT_EQ(places[0].constant, nullptr);
    EXPECT_EQ(places[1].strides, (Sizes{1, 2}));
    EXPECT_EQ(places[1].constant, &tensor);
    EXPECT_EQ(places[2].shape, (Sizes{2, 3}));
  }
  EXPECT_EQ(g_held, 0);
}

TEST(FusedRegion, AnOpenSizeHasNoUsualPlaces) {
  const bp_host host = counting_host();
  TinyGraph g;
  const int64_t x = g.input(BP_FLOAT32, {-1});
  const int64_t a = g.node("t::plus", {ref(x), number(1)}, BP_FLOAT32, BP_FLOAT32, {-1});
  const GraphView view(g.crossing({static_cast<uint32_t>(a)}));
  EXPECT_TRUE(Region(&host, view).usual_places(view).empty());
}

TEST(FusedRegion, AnOutputLiesInAnInputThatIsReadAsItIsWritten) {
  const bp_host host = counting_host();
  TinyGraph g;
  const int64_t x = g.input(BP_FLOAT32, {3, 3}), row = g.input(BP_FLOAT32, {3}), square = g.input(BP_FLOAT32, {3, 3});
  const int64_t a = g.node("t::plus", {ref(x), ref(row)}, BP_FLOAT32, BP_FLOAT32, {3, 3});
  const int64_t less = g.node("t::less", {ref(a), ref(square)}, BP_FLOAT32, BP_BOOL, {3, 3});
  const GraphView view(g.crossing({static_cast<uint32_t>(a), static_cast<uint32_t>(less)}));
  const Region region(&host, view);
  EXPECT_TRUE(region.may_share(0, 0));
  EXPECT_FALSE(region.may_share(0, 1));  // broadcast
  EXPECT_TRUE(region.may_share(0, 2));
  EXPECT_FALSE(region.may_share(1, 0));  // of another dtype
}

TEST(FusedRegion, OtherCountsOfOperandsAreRefused) {
  const bp_host host = counting_host();
  TinyGraph g;
  const int64_t x = g.input(BP_FLOAT32, {6});
  const int64_t a = g.node("t::plus", {ref(x), number(1)}, BP_FLOAT32, BP_FLOAT32, {6});
  const GraphView view(g.crossing({static_cast<uint32_t>(a)}));
  const Region region(&host, view);
  const bp_op_info op{BP_HEADER(bp_op_info), "t::region", 0, 0, nullptr};
  bp_frame frame{};
  frame.op = &op;
  region.check_counts(&frame, 1, 1);
  EXPECT_THROW(region.check_counts(&frame, 2, 1), Error);
  EXPECT_THROW(region.check_counts(&frame, 1, 2), Error);
}

}  // namespace
}  // namespace backplane::plugin

// Laws of reductions over all axes of many elements: they share a region with what makes their elements, and have the
// kernels' bits, however tiles and threads cut the elements.
#include <gmock/gmock.h>

#include <cmath>

#include "backends/cpu/fuse/region_graph.hpp"

namespace backplane::testing::wholes_test {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

int64_t over_all(RegionGraph& g, const std::string& op, int64_t x) { return g.reduce(op, x, g.shape(x).size(), false); }
uint32_t out(int64_t value) { return static_cast<uint32_t>(value); }

TEST(CpuFuseWholes, HaveTheBitsOfTheKernels) {
  std::mt19937 random(41);
  const Shape shapes[] = {{4096, 256}, {70001},       {16385},        {131072},         {131073},     {300, 257},
                          {3, 70000},  {5, 40, 1000}, {1, 1, 200000}, {2, 3, 5, 7, 99}, {200, 1, 333}};
  for (const Shape& shape : shapes)
    for (const bp_dtype dtype : {BP_FLOAT32, BP_FLOAT64}) {
      const Array drawn = normal_array(random, dtype, shape);
      for (const char* op : {"bp::sum", "bp::max", "bp::min", "bp::mean"}) {
        SCOPED_TRACE(::testing::Message() << op << " of rank " << shape.size() << ", " << drawn.count());
        RegionGraph g;
        const int64_t x = g.input(drawn);
        const int64_t product = g.map("bp::multiply", {ref(x), ref(x)});
        g.outputs = {out(over_all(g, op, product))};
        if (random() % 2 != 0) g.outputs.push_back(out(product));
        EXPECT_EQ(regions_of(g).count, 1u);
        expect_same_bytes(g);
        if (HasFailure()) return;
      }
    }
  EXPECT_EQ(cpu().retained, 0);
}

TEST(CpuFuseWholes, KeepNaN) {
  std::mt19937 random(42);
  Array drawn = normal_array(random, BP_FLOAT32, {90, 1000});
  drawn.at<float>()[50000] = NAN;
  for (const char* op : {"bp::sum", "bp::max", "bp::min"}) {
    RegionGraph g;
    g.outputs = {out(over_all(g, op, g.map("bp::abs", {ref(g.input(drawn))})))};
    Arrays found = run_by_regions(g, regions_of(g));
    EXPECT_TRUE(std::isnan(found.at(g.outputs[0]).at<float>()[0])) << op;
  }
}

// A loss with its gradient: reductions of rows, over rows, and of all, in one pass.
TEST(CpuFuseWholes, ShareARegionWithOtherReductions) {
  std::mt19937 random(43);
  for (const Shape& shape : {Shape{512, 100}, {77, 513}, {20, 40, 64}}) {
    RegionGraph g;
    const int64_t x = g.input(normal_array(random, BP_FLOAT32, shape)),
                  y = g.input(normal_array(random, BP_FLOAT32, shape));
    const int64_t shifted = g.map("bp::subtract", {ref(x), ref(g.reduce("bp::max", x, 1, true))});
    const int64_t e = g.map("bp::exp", {ref(shifted)}), sum = g.reduce("bp::sum", e, 1, true);
    const int64_t hit =
        g.map("bp::multiply", {ref(y), ref(g.map("bp::subtract", {ref(shifted), ref(g.map("bp::log", {ref(sum)}))}))});
    const int64_t loss = over_all(g, "bp::sum", hit), most = over_all(g, "bp::max", e);
    const int64_t dx = g.map("bp::subtract", {ref(g.map("bp::divide", {ref(e), ref(sum)})), ref(y)});
    Shape list;
    for (size_t d = 0; d + 1 < shape.size(); ++d) list.push_back(static_cast<int64_t>(d));
    const int64_t columns = g.node("bp::sum", {ref(dx), ints(list)}, BP_FLOAT32, {shape.back()}, BP_FLOAT32);
    // Read outside of the region that makes it.
    const int64_t after = g.map("bp::negative", {ref(g.map("bp::multiply", {ref(loss), number(0.5)}))});
    for (const int64_t v : {loss, most, dx, columns, after}) g.outputs.push_back(out(v));
    EXPECT_EQ(regions_of(g).count, 2u);
    expect_same_bytes(g);
  }
}

TEST(CpuFuseWholes, WhatIsLeftSaysWhy) {
  std::mt19937 random(44);
  RegionGraph g;
  const int64_t x = g.input(normal_array(random, BP_FLOAT16, {200, 200})),
                y = g.input(normal_array(random, BP_FLOAT32, {200, 200}));
  const int64_t half = over_all(g, "bp::sum", g.map("bp::multiply", {ref(x), ref(x)}));
  const int64_t alone = over_all(g, "bp::sum", y);
  g.outputs = {out(half), out(alone)};
  const Regions regions = regions_of(g);
  EXPECT_THAT(regions.of_node, Each(BP_NO_REGION));
  EXPECT_THAT(regions.reasons[1], HasSubstr("over all axes"));
  EXPECT_THAT(regions.reasons[2], HasSubstr("no region makes"));
  expect_same_bytes(g);
}

}  // namespace
}  // namespace backplane::testing::wholes_test

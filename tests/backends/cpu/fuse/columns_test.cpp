// Laws of reductions over the first axes: they share a region with what makes their rows, and have the kernels' bits,
// however the rows are cut.
#include <gmock/gmock.h>

#include <random>

#include "backends/cpu/fuse/region_graph.hpp"

namespace backplane::testing {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

// Over the first `axes` dims.
int64_t over_rows(RegionGraph& g, const std::string& op, int64_t x, size_t axes, bool keepdims) {
  Shape list, dims = g.shape(x);
  for (size_t d = 0; d < axes; ++d) list.push_back(static_cast<int64_t>(d)), dims[d] = 1;
  if (!keepdims) dims.erase(dims.begin(), dims.begin() + static_cast<std::ptrdiff_t>(axes));
  return g.node(op, {ref(x), ints(list)}, g.dtype(x), dims, g.dtype(x));
}

TEST(CpuFuseColumns, HaveTheBitsOfTheKernels) {
  std::mt19937 random(31);
  const Shape shapes[] = {{2, 3},     {16, 8},     {17, 33},       {1000, 7},    {4096, 256},
                          {513, 300}, {6, 50, 40}, {4, 32, 2, 65}, {3, 16000},   {70, 1025},
                          {1, 5},     {5000, 2},   {128, 9000},    {2, 3, 4, 5}, {8, 32, 512}};
  for (const Shape& shape : shapes)
    for (const bp_dtype dtype : {BP_FLOAT32, BP_FLOAT64}) {
      const Array drawn = normal_array(random, dtype, shape);
      for (const char* op : {"bp::sum", "bp::max", "bp::min", "bp::mean"})
        for (size_t axes = 1; axes < shape.size(); ++axes) {
          SCOPED_TRACE(::testing::Message() << op << " of rank " << shape.size() << " over " << axes);
          RegionGraph g;
          const int64_t x = g.input(drawn);
          const int64_t product = g.map("bp::multiply", {ref(x), ref(x)});
          g.outputs = {static_cast<uint32_t>(over_rows(g, op, product, axes, random() % 2 != 0))};
          EXPECT_EQ(regions_of(g).count, 1u);
          expect_same_bytes(g);
          if (HasFailure()) return;
        }
    }
  EXPECT_EQ(cpu().retained, 0);
}

// The gradients of a normalisation: reductions of both kinds, shared values, and rows that repeat or are not
// contiguous.
TEST(CpuFuseColumns, ShareARegionWithReductionsOfRows) {
  std::mt19937 random(32);
  for (const Shape& shape : {Shape{300, 256}, {33, 17}, {5, 40, 64}}) {
    RegionGraph g;
    const Shape columns = {shape.back()};
    Shape turned = shape;
    std::reverse(turned.begin(), turned.end());
    Array gaps = normal_array(random, BP_FLOAT32, turned);
    Shape strides = gaps.strides();
    std::reverse(strides.begin(), strides.end());
    const int64_t x = g.input(normal_array(random, BP_FLOAT32, shape)), dy = g.input(gaps.view(shape, strides)),
                  w = g.input(normal_array(random, BP_FLOAT32, columns));
    const int64_t centred = g.map("bp::subtract", {ref(x), ref(g.reduce("bp::mean", x, 1, true))});
    const int64_t weighted = g.map("bp::multiply", {ref(dy), ref(w)});
    const int64_t moved = g.map("bp::subtract", {ref(weighted), ref(g.reduce("bp::mean", weighted, 1, true))});
    const int64_t dx = g.map("bp::multiply", {ref(moved), ref(centred)});
    const size_t axes = shape.size() - 1;
    const int64_t dw = over_rows(g, "bp::sum", g.map("bp::multiply", {ref(dy), ref(centred)}), axes, false);
    const int64_t rest = over_rows(g, "bp::sum", g.map("bp::multiply", {ref(weighted), number(0.5)}), axes, true);
    // Read outside of the region that makes it.
    const int64_t after = g.map("bp::multiply", {ref(g.map("bp::exp", {ref(g.map("bp::tanh", {ref(dw)}))})), ref(dw)});
    for (const int64_t v : {dx, dw, rest, after}) g.outputs.push_back(static_cast<uint32_t>(v));
    EXPECT_EQ(regions_of(g).count, 2u);
    expect_same_bytes(g);
  }
}

TEST(CpuFuseColumns, WhatIsLeftSaysWhy) {
  RegionGraph g;
  std::mt19937 random(33);
  const int64_t x = g.input(normal_array(random, BP_FLOAT32, {4, 5, 6}));
  const int64_t y = g.map("bp::multiply", {ref(x), ref(x)});
  const int64_t middle = g.node("bp::sum", {ref(y), ints({1})}, BP_FLOAT32, {4, 6}, BP_FLOAT32);
  const int64_t alone = over_rows(g, "bp::sum", x, 1, false);
  const int64_t upright = g.map("bp::multiply", {ref(g.reshape(y, {120, 1})), number(2)});
  const int64_t column = over_rows(g, "bp::sum", upright, 1, false);
  for (const int64_t v : {middle, alone, column}) g.outputs.push_back(static_cast<uint32_t>(v));
  const Regions regions = regions_of(g);
  EXPECT_THAT(regions.reasons[1], HasSubstr("not the first ones or the last ones"));
  EXPECT_EQ(regions.of_node[2], BP_NO_REGION);
  EXPECT_THAT(regions.reasons.back(), HasSubstr("its sizes are 0, 1"));
  expect_same_bytes(g);
}

}  // namespace
}  // namespace backplane::testing

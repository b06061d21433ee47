// Laws of the fuser: its regions can run one by one, and give the same bits as the kernels op by op.
#include <gmock/gmock.h>

#include <bit>
#include <cmath>
#include <random>

#include "backends/cpu/fuse/region_graph.hpp"

namespace backplane::testing {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

constexpr bp_dtype kFloats[] = {BP_FLOAT32, BP_FLOAT64, BP_FLOAT16, BP_BFLOAT16};
constexpr bp_dtype kIntegers[] = {BP_INT8, BP_INT16, BP_INT32, BP_INT64, BP_UINT8, BP_UINT16, BP_UINT32, BP_UINT64};

bool is_floating(bp_dtype dtype) { return (BP_DTYPE_BIT(dtype) & BP_MASK_FLOATING) != 0; }

// Small whole numbers and halves, which no op of the tests divides by 0 with; for floats with an infinity and a NaN.
Array random_array(std::mt19937& random, bp_dtype dtype, const Shape& shape, bool special = true) {
  Array wide(BP_FLOAT64, shape), result(dtype, shape);
  for (int64_t i = 0; i < wide.count(); ++i) {
    double value = static_cast<double>(static_cast<int>(random() % 97) - 48) / 8;
    if (!is_floating(dtype)) value = static_cast<double>(random() % 90 + 1);
    if (dtype == BP_BOOL) value = static_cast<double>(random() % 2);
    if (special && is_floating(dtype) && random() % 200 == 0) value = random() % 2 != 0 ? INFINITY : NAN;
    wide.at<double>()[i] = value;
  }
  EXPECT_EQ(cpu().call("bp::cast", {tensor(wide)}, {tensor(result)}, BP_FLOAT64), BP_OK);
  return result;
}
// As it may arrive: row-major, turned, with gaps, or repeated along an axis.
Array random_layout(std::mt19937& random, bp_dtype dtype, const Shape& shape) {
  const size_t rank = shape.size();
  Shape stored = shape, strides(rank, 0);
  const uint32_t kind = random() % 5;
  if (kind == 1 && rank >= 2) {
    std::reverse(stored.begin(), stored.end());
    Array array = random_array(random, dtype, stored);
    for (size_t d = 0; d < rank; ++d) strides[d] = array.strides()[rank - 1 - d];
    return array.view(shape, strides);
  }
  if (kind == 2 && rank >= 1) {
    stored.back() *= 2;
    Array array = random_array(random, dtype, stored);
    strides = array.strides();
    strides.back() = 2;
    return array.view(shape, strides, 1);
  }
  if (kind == 3 && rank >= 1) {
    const size_t axis = random() % rank;
    stored[axis] = 1;
    Array array = random_array(random, dtype, stored);
    strides = array.strides();
    strides[axis] = 0;
    return array.view(shape, strides);
  }
  return random_array(random, dtype, shape);
}

template <class T>
bool same_elements(Array& a, Array& b) {
  const auto x = a.values<T>(), y = b.values<T>();
  return std::memcmp(x.data(), y.data(), x.size() * sizeof(T)) == 0;
}
template <class T>
bool same_or_both_nan(Array& a, Array& b) {
  const auto x = a.values<T>(), y = b.values<T>();
  for (size_t i = 0; i < x.size(); ++i) {
    const auto p = static_cast<double>(x[i]), q = static_cast<double>(y[i]);
    if (!(std::isnan(p) && std::isnan(q)) && std::memcmp(&x[i], &y[i], sizeof(T)) != 0) return false;
  }
  return true;
}
bool same_bits(Array& a, Array& b) {
  switch (a.dtype()) {
    case BP_FLOAT16:
      return same_or_both_nan<plugin::float16>(a, b);
    case BP_BFLOAT16:
      return same_or_both_nan<plugin::bfloat16>(a, b);
    case BP_FLOAT32:
      return same_or_both_nan<float>(a, b);
    case BP_FLOAT64:
      return same_or_both_nan<double>(a, b);
    default:
      switch (kItemSize[a.dtype()]) {
        case 1:
          return same_elements<uint8_t>(a, b);
        case 2:
          return same_elements<uint16_t>(a, b);
        case 4:
          return same_elements<uint32_t>(a, b);
        default:
          return same_elements<uint64_t>(a, b);
      }
  }
}

// Every output is what the ops give one by one. Returns the regions.
Regions check(RegionGraph& graph) {
  Arrays expected = run_op_by_op(graph);
  Regions regions = regions_of(graph);
  Arrays found = run_by_regions(graph, regions);
  for (const uint32_t v : graph.outputs) {
    if (!found.contains(v)) {
      ADD_FAILURE() << "value " << v << " was not made";
      continue;
    }
    EXPECT_TRUE(same_bits(found.at(v), expected.at(v))) << "value " << v;
  }
  return regions;
}

int64_t gelu(RegionGraph& g, int64_t x) {
  const int64_t cube = g.map("bp::multiply", {ref(g.map("bp::multiply", {ref(x), ref(x)})), ref(x)});
  const int64_t inner = g.map("bp::add", {ref(x), ref(g.map("bp::multiply", {ref(cube), number(0.044715)}))});
  const int64_t t = g.map("bp::tanh", {ref(g.map("bp::multiply", {ref(inner), number(0.7978845608)}))});
  return g.map("bp::multiply",
               {ref(g.map("bp::multiply", {ref(x), number(0.5)})), ref(g.map("bp::add", {ref(t), number(1)}))});
}

TEST(CpuFuse, AChainIsOneRegionOfItsBits) {
  std::mt19937 random(3);
  for (const bp_dtype dtype : kFloats)
    for (const int64_t n : {1, 17, 4096, 70001}) {
      RegionGraph g;
      g.outputs = {static_cast<uint32_t>(gelu(g, g.input(random_array(random, dtype, {n}))))};
      const Regions regions = check(g);
      EXPECT_EQ(regions.count, 1u);
      EXPECT_THAT(regions.of_node, Each(0u));
    }
}

int64_t layer_norm(RegionGraph& g, int64_t x, int64_t weight, int64_t bias, size_t axes) {
  const int64_t centred = g.map("bp::subtract", {ref(x), ref(g.reduce("bp::mean", x, axes, true))});
  const int64_t variance = g.reduce("bp::mean", g.map("bp::multiply", {ref(centred), ref(centred)}), axes, true);
  const int64_t scale = g.map("bp::rsqrt", {ref(g.map("bp::add", {ref(variance), number(1e-5)}))});
  const int64_t normal = g.map("bp::multiply", {ref(centred), ref(scale)});
  return g.map("bp::add", {ref(g.map("bp::multiply", {ref(normal), ref(weight)})), ref(bias)});
}

TEST(CpuFuse, RowsAreNormalisedInOneRegion) {
  std::mt19937 random(4);
  for (const bp_dtype dtype : kFloats)
    for (const Shape& shape : {Shape{5, 7}, {300, 256}, {1, 1}, {3, 5000}, {6, 4, 33}, {2, 1}})
      for (size_t axes = 1; axes < shape.size(); ++axes) {
        RegionGraph g;
        const Shape columns(shape.end() - static_cast<std::ptrdiff_t>(axes), shape.end());
        const int64_t x = g.input(random_array(random, dtype, shape)),
                      w = g.input(random_array(random, dtype, columns)),
                      b = g.input(random_array(random, dtype, columns));
        g.outputs = {static_cast<uint32_t>(layer_norm(g, x, w, b, axes))};
        EXPECT_EQ(check(g).count, 1u);
      }
}

// Softmax with its sum kept and dropped, and the view between the two forms.
TEST(CpuFuse, SoftmaxWithCrossEntropyIsOneRegion) {
  std::mt19937 random(5);
  for (const Shape& shape : {Shape{9, 10}, {64, 1000}, {1, 3}, {4, 1}}) {
    RegionGraph g;
    const int64_t x = g.input(random_array(random, BP_FLOAT32, shape, false)),
                  y = g.input(random_array(random, BP_FLOAT32, shape, false));
    const int64_t z = g.map("bp::subtract", {ref(x), ref(g.reduce("bp::max", x, 1, true))}),
                  e = g.map("bp::exp", {ref(z)});
    const int64_t sum = g.reduce("bp::sum", e, 1, false);
    const int64_t log_sum = g.map("bp::log", {ref(sum)});
    const int64_t p = g.map("bp::divide", {ref(e), ref(g.reshape(sum, {shape[0], 1}))});
    const int64_t hit = g.reduce("bp::sum", g.map("bp::multiply", {ref(y), ref(z)}), 1, false);
    const int64_t loss = g.map("bp::subtract", {ref(log_sum), ref(hit)});
    g.outputs = {static_cast<uint32_t>(loss), static_cast<uint32_t>(p)};
    EXPECT_EQ(check(g).count, 1u);
  }
}

TEST(CpuFuse, SeveralOutputsOfOnePass) {
  std::mt19937 random(6);
  RegionGraph g;
  const Shape shape = {130, 77};
  int64_t in[4];
  for (int64_t& each : in) each = g.input(random_layout(random, BP_FLOAT32, shape));
  const int64_t step = g.input(random_array(random, BP_FLOAT32, {}, false));
  const int64_t rate =
      g.map("bp::divide", {number(0.01), ref(g.map("bp::sqrt", {ref(g.map("bp::abs", {ref(step)}))}))});
  const int64_t m = g.map("bp::add", {ref(g.map("bp::multiply", {ref(in[1]), number(0.9)})),
                                      ref(g.map("bp::multiply", {ref(in[2]), number(0.1)}))});
  const int64_t square = g.map("bp::square", {ref(in[2])});
  const int64_t v = g.map("bp::add", {ref(g.map("bp::multiply", {ref(in[3]), number(0.99)})),
                                      ref(g.map("bp::multiply", {ref(square), number(0.01)}))});
  const int64_t ratio =
      g.map("bp::divide", {ref(m), ref(g.map("bp::add", {ref(g.map("bp::sqrt", {ref(v)})), number(1e-8)}))});
  const int64_t p = g.map("bp::subtract", {ref(in[0]), ref(g.map("bp::multiply", {ref(ratio), ref(rate)}))});
  g.outputs = {static_cast<uint32_t>(p), static_cast<uint32_t>(m), static_cast<uint32_t>(v),
               static_cast<uint32_t>(rate)};
  EXPECT_EQ(check(g).count, 1u);
}

// Steps of many tensors that have a number in common: one region, whose parts share no tensor.
TEST(CpuFuse, TensorsOfOneSpaceThatShareANumber) {
  std::mt19937 random(7);
  RegionGraph g;
  const int64_t rate = g.map("bp::exp", {ref(g.input(random_array(random, BP_FLOAT32, {1}, false)))});
  for (int i = 0; i < 20; ++i) {
    const int64_t p = g.input(random_layout(random, BP_FLOAT32, {50, 90})),
                  slope = g.input(random_layout(random, BP_FLOAT32, {50, 90}));
    const int64_t moved = g.map("bp::multiply", {ref(g.map("bp::tanh", {ref(slope)})), ref(rate)});
    g.outputs.push_back(static_cast<uint32_t>(g.map("bp::subtract", {ref(p), ref(moved)})));
    if (i % 3 == 0) g.outputs.push_back(static_cast<uint32_t>(g.map("bp::add", {ref(p), ref(rate)})));
  }
  EXPECT_EQ(check(g).count, 1u);
}

// Two producers of one level, one of them already read elsewhere: a node that reads both joins both.
TEST(CpuFuse, WhatReadsSeveralRegionsOfOneLevelMakesThemOne) {
  std::mt19937 random(8);
  RegionGraph g;
  const Shape shape = {30, 40};
  const int64_t x = g.input(random_array(random, BP_FLOAT32, shape)),
                y = g.input(random_array(random, BP_FLOAT32, shape));
  const int64_t a = g.map("bp::tanh", {ref(g.map("bp::abs", {ref(x)}))});
  const int64_t product = g.node("bp::matmul", {ref(a), ref(g.input(random_array(random, BP_FLOAT32, {40, 3})))},
                                 BP_FLOAT32, {30, 3}, BP_FLOAT32);
  const int64_t b = g.map("bp::exp", {ref(g.map("bp::negative", {ref(y)}))});
  const int64_t both = g.map("bp::add", {ref(b), ref(a)});
  g.outputs = {static_cast<uint32_t>(product), static_cast<uint32_t>(both)};
  const Regions regions = check(g);
  EXPECT_EQ(regions.count, 1u);
  EXPECT_EQ(regions.of_node[0], regions.of_node.back());
}

// A graph of random ops over a space, of every form, layout and dtype.
class RandomGraph {
 public:
  RandomGraph(uint32_t seed) : random_(seed) {
    const Shape spaces[] = {{7},     {33, 65}, {5, 3, 70},    {4, 1, 9}, {2, 3000},
                            {40, 6}, {1, 12},  {3, 2, 2, 11}, {130, 140}};
    space_ = spaces[random_() % std::size(spaces)];
    dtype_ = random_() % 2 != 0 ? kFloats[random_() % std::size(kFloats)] : kIntegers[random_() % std::size(kIntegers)];
    axes_ = random_() % (space_.size() + 1);
    for (int i = 0; i < 3; ++i) values_.push_back(graph.input(random_layout(random_, dtype_, shape_of_form())));
    if (random_() % 2 != 0) {
      const int64_t v = graph.value(dtype_, space_);
      graph.constants.emplace(v, random_array(random_, dtype_, space_));
      values_.push_back(v);
    }
    const size_t count = 3 + random_() % 25;
    for (size_t i = 0; i < count; ++i) grow();
    for (const RegionGraph::Node& node : graph.nodes)
      if (random_() % 4 == 0 || &node == &graph.nodes.back()) graph.outputs.push_back(node.result);
  }
  RegionGraph graph;

 private:
  Shape shape_of_form() {
    Shape shape = space_;
    const uint32_t form = random_() % 6;
    if (form == 1)
      for (size_t d = space_.size() - axes_; d < space_.size(); ++d) shape[d] = 1;
    if (form == 2) shape.erase(shape.begin(), shape.end() - static_cast<std::ptrdiff_t>(axes_));
    if (form == 3) shape = {};
    if (form == 4) shape.erase(shape.begin(), shape.begin() + static_cast<std::ptrdiff_t>(random_() % shape.size()));
    if (form == 4 && random_() % 2 != 0) shape[random_() % shape.size()] = 1;
    return shape;
  }
  int64_t pick() { return values_[random_() % values_.size()]; }
  // One of dtype_ whose shape broadcasts with the other's.
  int64_t partner(int64_t of) {
    for (int turn = 0; turn < 20; ++turn) {
      const int64_t other = pick();
      const Shape &a = graph.shape(of), &b = graph.shape(other);
      bool fits = graph.dtype(other) == graph.dtype(of);
      for (size_t d = 1; d <= std::min(a.size(), b.size()); ++d)
        fits = fits && (a[a.size() - d] == b[b.size() - d] || a[a.size() - d] == 1 || b[b.size() - d] == 1);
      if (fits) return other;
    }
    return of;
  }
  void keep(int64_t value) { values_.push_back(value); }
  void grow() {
    static const char* const kUnary[] = {"bp::tanh", "bp::exp",    "bp::negative", "bp::relu",
                                         "bp::abs",  "bp::square", "bp::sqrt",     "bp::floor"};
    static const char* const kOfInts[] = {"bp::negative", "bp::abs", "bp::square", "bp::relu"};
    static const char* const kBinary[] = {"bp::add", "bp::subtract", "bp::multiply", "bp::maximum", "bp::minimum"};
    static const char* const kReductions[] = {"bp::sum", "bp::max", "bp::min", "bp::mean", "bp::var"};
    const int64_t x = pick();
    const bool floating = is_floating(graph.dtype(x)),
               is_unsigned = (BP_DTYPE_BIT(graph.dtype(x)) & BP_MASK_UNSIGNED) != 0;
    const bool computed = !graph.arrays.contains(x) && !graph.constants.contains(x);
    switch (random_() % 8) {
      case 0:
      case 1:
        if (floating) return keep(graph.map(kUnary[random_() % std::size(kUnary)], {ref(x)}));
        return keep(graph.map(is_unsigned ? "bp::square" : kOfInts[random_() % std::size(kOfInts)], {ref(x)}));
      case 2:
        return keep(
            graph.map(kBinary[random_() % std::size(kBinary)], {ref(x), floating ? number(0.75) : as_number(2)}));
      case 3: {
        const int64_t y = partner(x), less = graph.map("bp::less", {ref(x), ref(y)}, BP_BOOL);
        return keep(graph.map("bp::where", {ref(less), ref(x), ref(y)}, graph.dtype(x), graph.dtype(x)));
      }
      case 4: {
        if (axes_ == 0 || !computed || graph.shape(x) != space_) return;
        const size_t axes = random_() % 4 == 0 ? space_.size() : axes_;
        const size_t which = random_() % (floating ? 5 : 3);
        const bp_dtype sum = floating ? graph.dtype(x) : bp_dtype{is_unsigned ? BP_UINT64 : BP_INT64};
        std::vector<bp_value> more;
        if (which == 4) more = {integer(0)};
        return keep(
            graph.reduce(kReductions[which], x, axes, random_() % 2 != 0, which == 0 ? sum : graph.dtype(x), more));
      }
      case 5:
        if (graph.shape(x).size() != space_.size()) return;
        return keep(graph.broadcast(x, space_));
      case 6:
        if (!floating) return;
        return keep(graph.cast(x, kFloats[random_() % std::size(kFloats)]));
      default:
        return keep(graph.map(kBinary[random_() % std::size(kBinary)], {ref(x), ref(partner(x))}));
    }
  }
  static bp_value as_number(int64_t x) {
    bp_value value = integer(x);
    value.flags = BP_VALUE_NUMBER;
    return value;
  }

  std::mt19937 random_;
  Shape space_;
  bp_dtype dtype_;
  size_t axes_;
  std::vector<int64_t> values_;
};

TEST(CpuFuse, RandomGraphsGiveTheBitsOfTheirOps) {
  uint32_t claimed = 0, nodes = 0;
  for (uint32_t seed = 1; seed <= 1500; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    RandomGraph random(seed);
    const Regions regions = check(random.graph);
    nodes += static_cast<uint32_t>(regions.of_node.size());
    claimed += static_cast<uint32_t>(
        regions.of_node.size() -
        static_cast<size_t>(std::count(regions.of_node.begin(), regions.of_node.end(), BP_NO_REGION)));
    if (HasFailure()) break;
  }
  EXPECT_GT(claimed, nodes / 2) << "of " << nodes;
  EXPECT_EQ(cpu().retained, 0);
}

}  // namespace
}  // namespace backplane::testing

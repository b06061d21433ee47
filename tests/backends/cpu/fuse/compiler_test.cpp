// The extension's edges: claimed nodes, other nodes with their reasons; shared memory; faults of the data;
// refusals.
#include <gmock/gmock.h>

#include "backends/cpu/fuse/region_graph.hpp"

namespace backplane::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsNull;

Array counted(bp_dtype dtype, const Shape& shape, double from = 1) {
  Array wide(BP_FLOAT64, shape), result(dtype, shape);
  for (int64_t i = 0; i < wide.count(); ++i) wide.at<double>()[i] = from + static_cast<double>(i % 50);
  EXPECT_EQ(cpu().call("bp::cast", {tensor(wide)}, {tensor(result)}, BP_FLOAT64), BP_OK);
  return result;
}
uint32_t out(int64_t value) { return static_cast<uint32_t>(value); }

bp_executable* compiled(RegionGraph& g, bp_status expected = BP_OK) {
  bp_executable* executable = nullptr;
  bp_executable_info info{BP_HEADER(bp_executable_info), 0, 0, 0};
  cpu().error.clear();
  EXPECT_EQ(fuser().compile(cpu().backend.context, cpu().table(), kHere, g.crossing(), &info, &executable), expected)
      << cpu().error;
  return executable;
}
bp_status execute(bp_executable* executable, std::vector<bp_value> ins, std::vector<bp_value> outs) {
  const bp_op_info name{BP_HEADER(bp_op_info), "a region", 0, 0, nullptr};
  bp_frame frame{};
  frame.header = BP_HEADER(bp_frame);
  frame.host = cpu().table();
  frame.op = &name;
  return fuser().execute(&frame, executable, ins.data(), static_cast<int32_t>(ins.size()), outs.data(),
                         static_cast<int32_t>(outs.size()));
}

TEST(CpuCompiler, IsAskedByNameAndVersion) {
  const bp_backend_def& backend = cpu().backend;
  EXPECT_NE(backend.extension(backend.context, BP_EXTENSION_COMPILER, 1), nullptr);
  EXPECT_EQ(backend.extension(backend.context, BP_EXTENSION_COMPILER, 2), nullptr);
  EXPECT_EQ(backend.extension(backend.context, "unheard of", 1), nullptr);
}

TEST(CpuCompiler, LeavesWhatItCannotGainFrom) {
  RegionGraph g;
  const int64_t x = g.input(counted(BP_FLOAT32, {4, 20000}));
  const int64_t alone = g.map("bp::tanh", {ref(x)});
  const int64_t long_rows = g.reduce("bp::sum", x, 1, false);
  const int64_t product = g.node("bp::matmul", {ref(x), ref(x)}, BP_FLOAT32, {4, 4}, BP_FLOAT32);
  const int64_t kept = g.node("bp::exp", {ref(x)}, BP_FLOAT32, {4, 20000}, BP_DTYPE_NONE);
  const int64_t view = g.reshape(x, {80000});
  g.outputs = {out(alone), out(long_rows), out(product), out(kept), out(view)};
  const Regions regions = regions_of(g);
  EXPECT_EQ(regions.count, 0u);
  EXPECT_THAT(regions.reasons[0], HasSubstr("is a single node"));
  EXPECT_THAT(regions.reasons[1], HasSubstr("too long"));
  EXPECT_THAT(regions.reasons[2], HasSubstr("not an elementwise op"));
  EXPECT_THAT(regions.reasons[3], HasSubstr("does not pass the call"));
  EXPECT_THAT(regions.reasons[4], HasSubstr("view"));
}

// tanh - matmul - subtract: the subtraction reads the tanh too, but the way through the product leaves the region.
TEST(CpuCompiler, NoPathLeavesARegionAndComesBack) {
  RegionGraph g;
  const int64_t x = g.input(counted(BP_FLOAT32, {8, 8}));
  const int64_t a = g.map("bp::tanh", {ref(g.map("bp::add", {ref(x), number(1)}))});
  const int64_t product = g.node("bp::matmul", {ref(a), ref(a)}, BP_FLOAT32, {8, 8}, BP_FLOAT32);
  const int64_t b = g.map("bp::exp", {ref(g.map("bp::subtract", {ref(product), ref(a)}))});
  g.outputs = {out(b)};
  const Regions regions = regions_of(g);
  EXPECT_EQ(regions.count, 2u);
  EXPECT_EQ(regions.of_node[0], regions.of_node[1]);
  EXPECT_EQ(regions.of_node[3], regions.of_node[4]);
  EXPECT_NE(regions.of_node[1], regions.of_node[3]);
  EXPECT_THAT(regions.reasons[0], IsNull());
}

TEST(CpuCompiler, ValuesOfAnotherDeviceStay) {
  RegionGraph g;
  const int64_t x = g.input(counted(BP_FLOAT32, {8}));
  g.outputs = {out(g.map("bp::exp", {ref(g.map("bp::tanh", {ref(x)}))}))};
  std::vector<uint32_t> regions(2);
  uint32_t count = 7;
  ASSERT_EQ(fuser().partition(cpu().backend.context, cpu().table(), {kHere.backend, 1}, g.crossing(), regions.data(),
                              &count, nullptr),
            BP_OK);
  EXPECT_EQ(count, 0u);
}

// Where the compiler says that memory may be shared, the results over the inputs are those beside them.
TEST(CpuCompiler, OutputsMayLieOnInputsThatAreReadNoMore) {
  RegionGraph g;
  const Shape shape = {70, 33};
  const int64_t x = g.input(counted(BP_FLOAT32, shape)), y = g.input(counted(BP_FLOAT32, shape, 3));
  const int64_t row = g.input(counted(BP_FLOAT32, {33}, 2));
  const int64_t m = g.map("bp::multiply", {ref(g.map("bp::tanh", {ref(x)})), ref(row)});
  const int64_t v = g.map("bp::add", {ref(g.map("bp::exp", {ref(g.map("bp::negative", {ref(y)}))})), ref(m)});
  const int64_t p = g.map("bp::subtract", {ref(x), ref(v)});
  g.outputs = {out(m), out(p)};
  Arrays expected = run_op_by_op(g);
  bp_executable* executable = compiled(g);
  const auto may = [&](int32_t o, int32_t i) {
    return fuser().may_share(cpu().backend.context, executable, o, i) != 0;
  };
  EXPECT_FALSE(may(0, 0)) << "x is read after m is written";
  EXPECT_TRUE(may(1, 0));
  EXPECT_TRUE(may(1, 1));
  EXPECT_FALSE(may(1, 2)) << "the row is broadcast";
  for (const int32_t shared : {0, 1}) {
    Arrays in = g.arrays;
    std::deque<Array> copies;
    std::vector<bp_value> ins;
    for (const int64_t each : {x, y, row}) {
      copies.emplace_back(BP_FLOAT32, g.shape(each));
      ASSERT_EQ(cpu().call("bp::copy", {tensor(in.at(each))}, {tensor(copies.back())}, BP_FLOAT32), BP_OK);
      ins.push_back(tensor(copies.back()));
    }
    Array first(BP_FLOAT32, shape);
    ASSERT_EQ(execute(executable, ins, {tensor(first), ins[static_cast<size_t>(shared)]}), BP_OK) << cpu().error;
    EXPECT_EQ(first.values<float>(), expected.at(m).values<float>());
    EXPECT_EQ(copies[static_cast<size_t>(shared)].values<float>(), expected.at(p).values<float>());
  }
  fuser().destroy(cpu().backend.context, executable);
}

TEST(CpuCompiler, AnOutputThatNobodyWantsIsLeftAlone) {
  RegionGraph g;
  const int64_t x = g.input(counted(BP_FLOAT32, {5, 40}));
  const int64_t e = g.map("bp::exp", {ref(g.map("bp::negative", {ref(x)}))}), sum = g.reduce("bp::sum", e, 1, true);
  const int64_t p = g.map("bp::divide", {ref(e), ref(sum)});
  g.outputs = {out(e), out(p)};
  Arrays expected = run_op_by_op(g);
  bp_executable* executable = compiled(g);
  Array result(BP_FLOAT32, {5, 40});
  bp_value not_wanted{};
  not_wanted.flags = BP_VALUE_NOT_WANTED;
  ASSERT_EQ(execute(executable, {tensor(g.arrays.at(x))}, {not_wanted, tensor(result)}), BP_OK) << cpu().error;
  EXPECT_EQ(result.values<float>(), expected.at(p).values<float>());
  fuser().destroy(cpu().backend.context, executable);
}

TEST(CpuCompiler, FaultsOfTheDataNameTheOp) {
  RegionGraph g;
  const int64_t x = g.input(counted(BP_INT32, {100})), y = g.input(counted(BP_INT32, {100}, -20));
  g.outputs = {out(g.map("bp::add", {ref(g.map("bp::floor_divide", {ref(x), ref(y)})), ref(x)}))};
  bp_executable* executable = compiled(g);
  Array result(BP_INT32, {100});
  EXPECT_EQ(execute(executable, {tensor(g.arrays.at(x)), tensor(g.arrays.at(y))}, {tensor(result)}), BP_ERROR_DATA);
  EXPECT_THAT(cpu().error, HasSubstr("floor_divide: an integer divisor is 0"));
  EXPECT_EQ(execute(executable, {}, {tensor(result)}), BP_ERROR_VALUE);
  EXPECT_THAT(cpu().error, HasSubstr("2 inputs and 1 outputs was given 0 and 1"));
  fuser().destroy(cpu().backend.context, executable);
}

TEST(CpuCompiler, RefusesWhatItDoesNotClaim) {
  RegionGraph g;
  const int64_t x = g.input(counted(BP_FLOAT32, {8, 8}));
  g.outputs = {out(g.node("bp::matmul", {ref(x), ref(x)}, BP_FLOAT32, {8, 8}, BP_FLOAT32))};
  EXPECT_EQ(compiled(g, BP_ERROR_NOT_IMPLEMENTED), nullptr);
  EXPECT_THAT(cpu().error, HasSubstr("does not take bp::matmul"));

  RegionGraph apart;
  const int64_t a = apart.input(counted(BP_FLOAT32, {8})), b = apart.input(counted(BP_FLOAT32, {9}));
  apart.outputs = {out(apart.map("bp::exp", {ref(a)})), out(apart.map("bp::exp", {ref(b)}))};
  EXPECT_EQ(compiled(apart, BP_ERROR_VALUE), nullptr);
  EXPECT_THAT(cpu().error, HasSubstr("does not fit the region"));

  RegionGraph damaged;
  const int64_t c = damaged.input(counted(BP_FLOAT32, {8}));
  damaged.outputs = {out(damaged.map("bp::exp", {ref(c)}))};
  damaged.nodes[0].args[0].u.i = 77;
  EXPECT_EQ(compiled(damaged, BP_ERROR_VALUE), nullptr);
  EXPECT_THAT(cpu().error, HasSubstr("names value 77"));
}

// Values with no elements: nothing runs, nothing is touched.
TEST(CpuCompiler, NoElementsAreNoWork) {
  RegionGraph g;
  const int64_t x = g.input(Array(BP_FLOAT32, {0, 6}));
  const int64_t y = g.map("bp::exp", {ref(g.map("bp::tanh", {ref(x)}))});
  g.outputs = {out(y)};
  EXPECT_EQ(regions_of(g).count, 0u);
  EXPECT_THAT(regions_of(g).reasons[0], HasSubstr("no elements"));
}

}  // namespace
}  // namespace backplane::testing

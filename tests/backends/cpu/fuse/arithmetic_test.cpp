// Laws of runs of arithmetic: however long they are, whatever lies in rows or repeats, and wherever a row ends, they
// have the kernels' bits. ctest runs them with machine code and without.
#include <random>

#include "backends/cpu/fuse/region_graph.hpp"

namespace backplane::testing {
namespace {

using ::testing::Message;

// Sums, products, quotients by numbers of at least 1, and square roots of numbers of at least 0, of three extents:
// one per element, per row, and in all.
struct RandomRun {
  RegionGraph g;
  std::mt19937& random;
  std::vector<int64_t> values;

  RandomRun(std::mt19937& drawn, bp_dtype dtype, int64_t rows, int64_t columns) : random(drawn) {
    for (int i = 0; i < 3; ++i) values.push_back(g.input(normal_array(random, dtype, {rows, columns})));
    Array turned = normal_array(random, dtype, {columns, rows});
    values.push_back(g.input(turned.view({rows, columns}, {turned.strides()[1], turned.strides()[0]})));
    values.push_back(g.input(normal_array(random, dtype, {columns})));
    values.push_back(g.input(normal_array(random, dtype, {1, 1})));
  }
  int64_t any() { return values[random() % values.size()]; }
  bp_value operand() { return random() % 4 == 0 ? number(0.5 + static_cast<double>(random() % 7)) : ref(any()); }

  void step() {
    const int64_t x = any();
    switch (random() % 6) {
      case 0:
        return values.push_back(g.map("bp::add", {ref(x), operand()}));
      case 1:
        return values.push_back(g.map("bp::subtract", {operand(), ref(x)}));
      case 2:
        return values.push_back(g.map("bp::multiply", {ref(x), operand()}));
      case 3: {
        const int64_t square = g.map("bp::square", {ref(x)});
        return values.push_back(g.map("bp::sqrt", {ref(square)}));
      }
      case 4: {
        const int64_t square = g.map("bp::square", {ref(any())});
        const int64_t divisor = g.map("bp::add", {ref(square), number(1)});
        return values.push_back(g.map("bp::divide", {operand(), ref(divisor)}));
      }
      default:
        return values.push_back(g.map("bp::tanh", {ref(x)}));  // a run ends, and what it made is read behind it
    }
  }
};

TEST(CpuFuseArithmetic, RunsOfAnyLengthHaveTheBitsOfTheKernels) {
  std::mt19937 random(41);
  for (int round = 0; round < 300; ++round) {
    const bp_dtype dtype = round % 2 ? BP_FLOAT64 : BP_FLOAT32;
    const auto rows = static_cast<int64_t>(1 + random() % 5), columns = static_cast<int64_t>(1 + random() % 70);
    const size_t steps = 2 + random() % 40;
    SCOPED_TRACE(Message() << "round " << round << ", " << rows << " x " << columns << ", " << steps << " steps");
    RandomRun run(random, dtype, rows, columns);
    while (run.values.size() < 6 + steps) run.step();
    for (size_t i = 6; i < run.values.size(); ++i)
      if (random() % 4 == 0 || i + 1 == run.values.size())
        run.g.outputs.push_back(static_cast<uint32_t>(run.values[i]));
    expect_same_bytes(run.g);
    if (HasFailure()) return;
  }
  EXPECT_EQ(cpu().retained, 0);
}

// More values at once than a processor has registers, and more tensors than pointers fit into them.
TEST(CpuFuseArithmetic, WideSumsHaveTheBitsOfTheKernels) {
  std::mt19937 random(42);
  for (const int width : {9, 20, 45}) {
    RegionGraph g;
    std::vector<int64_t> products;
    for (int i = 0; i < width; ++i) {
      const int64_t x = g.input(normal_array(random, BP_FLOAT32, {7, 130}));
      products.push_back(g.map("bp::multiply", {ref(x), number(1.0 + i)}));
    }
    int64_t sum = products[0], other = products[0];
    for (const int64_t each : products) sum = g.map("bp::add", {ref(each), ref(sum)});
    for (const int64_t each : products) other = g.map("bp::subtract", {ref(other), ref(each)});
    g.outputs = {static_cast<uint32_t>(sum), static_cast<uint32_t>(other), static_cast<uint32_t>(products[width / 2])};
    SCOPED_TRACE(width);
    expect_same_bytes(g);
  }
}

}  // namespace
}  // namespace backplane::testing

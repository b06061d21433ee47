// Runs of graphs: a plan gives what a run node by node gives, to the bit, keeps nothing of a run, and reuses memory.
#include "graph/plans/executable.hpp"

#include <gtest/gtest.h>

#include <thread>

#include "backplane/autograd.hpp"
#include "graph/text/parse.hpp"
#include "graph/text/print.hpp"
#include "graph/verify.hpp"
#include "random_graph.hpp"

namespace backplane::core::graph {
namespace {

using backplane::testing::live_blocks;
using backplane::testing::values;
using namespace graph::testing;

class Executables : public ::testing::Test {
 protected:
  void SetUp() override { backplane::testing::null_backend(); }
};

std::shared_ptr<const Graph> shared(std::unique_ptr<Graph> graph) { return {std::move(graph)}; }

std::string message_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST_F(Executables, APlanGivesWhatNodesGiveOneByOne) {
  std::mt19937 random(11);
  for (int round = 0; round < 300; ++round) {
    const auto graph = shared(random_graph(random, 1 + static_cast<int>(random() % 40)));
    verify(*graph);
    Executable planned(graph), plain(graph, {{}, false});
    for (int run = 0; run < 3; ++run) {
      const std::vector<Tensor> inputs = random_inputs(random);
      ASSERT_EQ(bytes_of(planned.run(inputs)), bytes_of(plain.run(inputs))) << print(*graph);
    }
    EXPECT_EQ(planned.plan_count(), 1u);
    EXPECT_EQ(plain.plan_count(), 0u);
  }
}

TEST_F(Executables, InputsKeepTheirValuesUnlessDonated) {
  std::mt19937 random(12);
  for (int round = 0; round < 100; ++round) {
    const auto graph = shared(random_graph(random, 20));
    const std::vector<Tensor> inputs = random_inputs(random);
    const auto before = bytes_of(inputs);
    Executable kept(graph);
    const auto expected = bytes_of(kept.run(inputs));
    EXPECT_EQ(bytes_of(inputs), before);
    Executable donating(graph, {{.donated = {true, true}, .memory_budget = {}}});
    EXPECT_EQ(bytes_of(donating.run(inputs)), expected) << print(*graph);
  }
}

TEST_F(Executables, AnInputThatIsGivenTwiceIsNotOverwritten) {
  Executable executable(shared(parse(R"(graph "f" {
    input %0 "x": float64[2] "null"
    input %1 "y": float64[2] "null"
    %2: float64[2] "null" = bp::negative(%0)
    %3: float64[2] "null" = bp::add(%2, %1)
    output %2, %3 })")),
                        {{.donated = {true, true}, .memory_budget = {}}});
  const Tensor x = backplane::testing::tensor({1, 2}, {2});
  EXPECT_EQ(values(executable.run(std::vector{x, x})[1]), (std::vector<double>{0, 0}));
  const Tensor y = backplane::testing::tensor({1, 2}, {2});
  const std::vector<Tensor> out = executable.run(std::vector{x, y});
  EXPECT_EQ(out[0].get()->storage, x.get()->storage) << "given once, its memory is taken";
  EXPECT_EQ(values(out[1]), (std::vector<double>{0, 0}));
}

TEST_F(Executables, NothingOfARunStays) {
  std::mt19937 random(13);
  const int64_t before = live_blocks();
  {
    const auto graph = shared(random_graph(random, 30));
    Executable executable(graph);
    const std::vector<Tensor> inputs = {random_tensor({3, 4}, random), random_tensor({3, 4}, random)};
    executable.run(inputs);
    const int64_t between = live_blocks();
    for (int i = 0; i < 5; ++i) executable.run(inputs);
    EXPECT_EQ(live_blocks(), between);
  }
  EXPECT_EQ(live_blocks(), before);
}

TEST_F(Executables, AChainTakesTheMemoryOfOneValue) {
  std::string text = "graph \"chain\" { input %0 \"x\": float64[1000] \"null\"\n";
  for (int i = 1; i <= 100; ++i)
    text += "%" + std::to_string(i) + ": float64[1000] \"null\" = bp::multiply(%" + std::to_string(i - 1) +
            (i % 2 ? ", 2.0)\n" : ", 0.5)\n");
  Executable executable(shared(parse(text + "output %100 }")));
  const Tensor x = random_tensor({1000}, *std::make_unique<std::mt19937>(1));
  const PlanSummary summary = executable.summary(std::vector{x});
  EXPECT_EQ(summary.kernels, 100u);
  EXPECT_EQ(summary.calls, 0u);
  EXPECT_LE(summary.arena, 2 * 8192u);
  EXPECT_EQ(values(executable.run(std::vector{x})[0]), values(x));
}

TEST_F(Executables, EachSizeHasItsPlan) {
  Executable executable(shared(parse(R"(graph "f" {
    symbol n of %0 axis 0 example 4
    input %0 "x": float64[n, 2] "null"
    %1: float64[2*n] "null" = bp::reshape(%0, [2*n])
    %2: float64[] "null" = bp::sum(%1)
    constraint n <= 20 "the table has 20 rows"  # model.py:7
    output %1, %2 })")));
  std::mt19937 random(14);
  for (const int64_t n : {3, 5, 3, 0, 7, 5}) {
    const Tensor x = random_tensor({n, 2}, random);
    const std::vector<Tensor> out = executable.run(std::vector{x});
    EXPECT_EQ(values(out[0]), values(x));
    EXPECT_EQ(backplane::testing::item(out[1]), backplane::testing::item(backplane::testing::sum(x)));
  }
  EXPECT_EQ(executable.plan_count(), 4u);
  for (int64_t n = 1; n <= 20; ++n) executable.run(std::vector{random_tensor({n, 2}, random)});
  EXPECT_LE(executable.plan_count(), 8u);
  const std::string said = message_of([&] { executable.run(std::vector{random_tensor({21, 2}, random)}); });
  EXPECT_NE(said.find("the table has 20 rows"), std::string::npos) << said;
  EXPECT_NE(said.find("model.py:7"), std::string::npos) << said;
}

TEST_F(Executables, WrongInputsAreNamed) {
  Executable executable(shared(parse(R"(graph "f" {
    input %0 "x": float64[2] "null"
    %1: float64[2] "null" = bp::negative(%0)
    output %1 })")));
  const Tensor x = backplane::testing::tensor({1, 2}, {2});
  EXPECT_NE(message_of([&] { executable.run({}); }).find("takes 1 tensors, found 0"), std::string::npos);
  EXPECT_NE(message_of([&] { executable.run(std::vector{backplane::testing::tensor({1}, {1})}); }).find("size 1"),
            std::string::npos);
  const Tensor narrow = backplane::testing::op("cast", {backplane::value(x), dtype_value(BP_FLOAT32)});
  EXPECT_NE(message_of([&] { executable.run(std::vector{narrow}); }).find("found float32"), std::string::npos);
  EXPECT_NE(message_of([&] { executable.run(std::vector{Tensor()}); }).find("empty Tensor"), std::string::npos);
  EXPECT_EQ(values(executable.run(std::vector{x})[0]), (std::vector<double>{-1, -2}));
}

TEST_F(Executables, ATapeSeesTheCalls) {
  Executable executable(shared(parse(R"(graph "f" {
    input %0 "x": float64[2] "null"
    %1: float64[2] "null" = bp::multiply(%0, %0)
    %2: float64[] "null" = bp::sum(%1)
    output %2 })")));
  const Tensor x = backplane::testing::tensor({3, 4}, {2});
  set_requires_grad(x, true);
  const std::vector<Tensor> out = executable.run(std::vector{x});
  const std::vector<Tensor> one = {backplane::testing::scalar(1)};
  backward(out, one, {});
  EXPECT_EQ(values(grad_of(x)), (std::vector<double>{6, 8}));
}

TEST_F(Executables, AResultMayBeAnInputOrAConstant) {
  Executable executable(shared(parse(R"(graph "f" {
    input %0 "x": float64[2] "null"
    constant %1 "c": float64[] "null" = {5.0}
    %2: float64[1] "null" = bp::reshape(%1, [1])
    output %0, %1, %0, %2 })")));
  const Tensor x = backplane::testing::tensor({3, 4}, {2});
  const std::vector<Tensor> out = executable.run(std::vector{x});
  EXPECT_EQ(out[0].get(), x.get());
  EXPECT_EQ(out[2].get(), x.get());
  EXPECT_EQ(values(out[1]), std::vector<double>{5});
  EXPECT_EQ(values(out[3]), std::vector<double>{5});
}

TEST_F(Executables, ManyThreadsRunOne) {
  std::mt19937 random(15);
  const auto graph = shared(random_graph(random, 40));
  Executable executable(graph);
  const std::vector<Tensor> inputs = random_inputs(random);
  const auto expected = bytes_of(executable.run(inputs));
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) wrong += bytes_of(executable.run(inputs)) != expected;
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace backplane::core::graph

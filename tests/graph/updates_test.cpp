// Updates: a run leaves inputs and constants with the values that the graph says, results that are these tensors or
// views of them share their memory, and what may not be updated is refused by name.
#include <gtest/gtest.h>

#include "backplane/graph.hpp"
#include "graph/passes/dead_code.hpp"
#include "graph/text/parse.hpp"
#include "graph/text/print.hpp"
#include "graph/verify.hpp"
#include "random_graph.hpp"

namespace backplane::testing {
namespace {

class Updates : public ::testing::Test {
 protected:
  void SetUp() override { null_backend(); }
};

const std::string kText = R"(graph "f" {
  input %0 "x": float64[3] "null"
  input %1 "y": float64[3] "null"
  constant %2 "w": float64[3] "null" = {1.0, 2.0, 3.0}
  %3: float64[3] "null" = bp::add(%0, %1)
  %4: float64[3] "null" = bp::multiply(%2, %2)
  %5: float64[] "null" = bp::select(%3, 0, 1)
  update %0 = %3
  update unrecorded %2 = %4
  output %5, %3, %1
}
)";

TEST_F(Updates, TextRoundTripsAndARunCarriesThemOut) {
  const Graph graph = parse_graph(kText);
  EXPECT_EQ(graph.text(), kText);
  ASSERT_EQ(graph.outputs().size(), 3u);
  ASSERT_EQ(graph.updates().size(), 2u);
  EXPECT_EQ(graph.updates()[0].name, "x");
  const Tensor x = tensor({1, 2, 3}, {3}), y = tensor({10, 20, 30}, {3});
  const Tensor inputs[] = {x, y};
  for (int run = 1; run <= 2; ++run) {
    const std::vector<Tensor> results = graph.call(inputs);
    EXPECT_EQ(values(x), (std::vector<double>{1.0 + 10 * run, 2.0 + 20 * run, 3.0 + 30 * run}));
    EXPECT_EQ(results[1].get(), x.get());
    EXPECT_EQ(values(results[0])[0], 2.0 + 20 * run);
    EXPECT_EQ(results[0].get()->dl.data, x.get()->dl.data);
    EXPECT_EQ(results[2].get(), y.get());
  }
  EXPECT_EQ(values(graph.constants()[0]), (std::vector<double>{1, 16, 81}));
}

TEST_F(Updates, WhatSharesMemoryWithAnUpdatedTensorIsRefusedByName) {
  const Graph graph = parse_graph(kText);
  const Tensor x = tensor({1, 2, 3}, {3});
  const Tensor inputs[] = {x, x};
  EXPECT_NE(graph.shared_memory(inputs).find("its argument x in place, with which its argument y shares memory"),
            std::string::npos);
  EXPECT_THROW(graph.call(inputs), Error);
  EXPECT_EQ(values(x), (std::vector<double>{1, 2, 3}));
}

TEST_F(Updates, PassesAndClonesKeepThem) {
  const auto graph = core::graph::parse(kText);
  const auto copy = graph->clone();
  core::graph::remove_dead_code(*copy);
  copy->compact();
  core::graph::verify(*copy);
  EXPECT_EQ(core::graph::print(*copy), kText);
}

TEST_F(Updates, FaultsAreNamed) {
  const auto refusal = [](std::string from, const std::string& to) {
    std::string text = kText;
    text.replace(text.find(from), from.size(), to);
    try {
      parse_graph(text);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_NE(refusal("update %0 = %3", "update %4 = %3").find("updates %4, which is not an input or a constant"),
            std::string::npos);
  EXPECT_NE(refusal("update %0 = %3", "update %77 = %3"), "");
  EXPECT_NE(refusal("update %0 = %3", "update %0 = %99"), "");
  EXPECT_NE(refusal("unrecorded %2", "%0").find("updates %0 twice"), std::string::npos);
  EXPECT_NE(refusal("update %0 = %3", "update %0 = %5").find("which is float64[3]"), std::string::npos);
  EXPECT_NE(refusal("update %0 = %3", "update %0 %3"), "");
}

TEST_F(Updates, TracedFromCpp) {
  const Tensor example = tensor({1, 2, 3}, {3});
  const Graph graph = make_graph(
      [](std::span<const Tensor> in) {
        const bp_value args[] = {value(in[0]), value(in[0])};
        EXPECT_EQ(call_inplace(find_op("bp::add"), args, 2), BP_OK) << last_error();
        return std::vector<Tensor>{exp(in[0])};
      },
      {&example, 1});
  EXPECT_EQ(values(example), (std::vector<double>{1, 2, 3}));
  const Tensor x = tensor({0, 1, 2}, {3});
  const std::vector<Tensor> results = graph.call({&x, 1});
  EXPECT_EQ(results.size(), 1u);
  EXPECT_EQ(values(x), (std::vector<double>{0, 2, 4}));
  EXPECT_EQ(values(results[0]), values(exp(x)));
}

}  // namespace
}  // namespace backplane::testing

// Transposes before products: what only products read is computed as it lies in memory; everything else stays.
#include "graph/passes/transposes.hpp"

#include <gtest/gtest.h>

#include "graph/text/parse.hpp"
#include "graph/text/print.hpp"
#include "graph/verify.hpp"
#include "random_graph.hpp"

namespace backplane::core::graph {
namespace {

using namespace graph::testing;

class Transposes : public ::testing::Test {
 protected:
  void SetUp() override { backplane::testing::null_backend(); }
};

constexpr const char* kChain = R"(graph "f" {
  input %0 "x": float64[3, 4] "null"
  input %1 "y": float64[3, 5] "null"
  input %2 "s": float64[] "null"
  %3: float64[4, 3] "null" = bp::permute_dims(%0, [1, 0])
  %4: float64[4, 3] "null" = bp::multiply(%3, 0.5)
  %5: float64[4, 3] "null" = bp::add(%4, %3)
  %6: float64[4, 3] "null" = bp::multiply(%5, %2)
  %7: float64[4, 5] "null" = bp::matmul(%6, %1)
  output %7
}
)";

size_t turned(const std::string& text, std::string* after = nullptr) {
  const std::unique_ptr<Graph> graph = parse(text);
  const size_t count = sink_transposes(*graph);
  verify(*graph);
  if (after) *after = print(*graph);
  EXPECT_EQ(sink_transposes(*graph), 0u) << "a second time there is nothing left to do\n" << print(*graph);
  return count;
}

TEST_F(Transposes, AChainBeforeAProductRunsAsItLies) {
  std::string after;
  EXPECT_EQ(turned(kChain, &after), 3u);
  EXPECT_NE(after.find("float64[3, 4] \"null\" = bp::multiply(%0, 0.5)"), std::string::npos) << after;
  EXPECT_NE(after.find("float64[3, 4] \"null\" = bp::add("), std::string::npos) << after;
}

TEST_F(Transposes, WhatElseReadsItStays) {
  const auto with = [](const std::string& from, const std::string& to) {
    std::string text = kChain;
    text.replace(text.find(from), from.size(), to);
    return text;
  };
  EXPECT_EQ(turned(with("output %7", "output %7, %6")), 0u) << "the caller's tensor";
  EXPECT_EQ(turned(with("output %7", "output %7, %4")), 0u) << "in the middle of the chain";
  EXPECT_EQ(turned(with("bp::multiply(%5, %2)", "bp::permute_dims(%5, [0, 1])")), 0u) << "no product";
  EXPECT_EQ(turned(with("  output %7", "  %8: float64[3] \"null\" = bp::sum(%6, [0])\n  output %7, %8")), 0u);
  EXPECT_EQ(turned(R"(graph "f" {
  input %0 "x": float64[4, 3] "null"
  input %1 "y": float64[3, 4] "null"
  %2: float64[4, 3] "null" = bp::permute_dims(%1, [1, 0])
  %3: float64[4, 3] "null" = bp::add(%0, %2)
  %4: float64[4, 4] "null" = bp::matmul(%3, %1)
  output %4
}
)"),
            0u)
      << "operands that lie differently";
}

// Memory runs along an axis that no product takes: it would be copied there.
TEST_F(Transposes, OthersThanOfTheLastTwoAxesStay) {
  const auto rotated = [](const std::string& axes, const std::string& sizes) {
    return "graph \"f\" {\n  input %0 \"x\": float64[2, 3, 4] \"null\"\n  input %1 \"y\": float64[3, 5] \"null\"\n" +
           ("  %2: float64[" + sizes + "] \"null\" = bp::permute_dims(%0, [" + axes + "])\n") + "  %3: float64[" +
           sizes + "] \"null\" = bp::negative(%2)\n  %4: float64[" + sizes.substr(0, 4) +
           ", 5] \"null\" = bp::matmul(%3, %1)\n  output %4\n}\n";
  };
  EXPECT_EQ(turned(rotated("0, 2, 1", "2, 4, 3")), 1u);
  EXPECT_EQ(turned(rotated("2, 0, 1", "4, 2, 3")), 0u);
}

}  // namespace
}  // namespace backplane::core::graph

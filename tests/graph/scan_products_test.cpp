// Products out of scans: what no step needs of the step before is one product of all steps; everything else stays.
#include "graph/passes/scan_products.hpp"

#include <gtest/gtest.h>

#include "graph/text/parse.hpp"
#include "graph/text/print.hpp"
#include "graph/verify.hpp"
#include "random_graph.hpp"

namespace backplane::core::graph {
namespace {

using namespace graph::testing;

class ScanProducts : public ::testing::Test {
 protected:
  void SetUp() override { backplane::testing::null_backend(); }
};

// A recurrence: h' = x @ w + h @ u with the result y = h' @ v; and the sum of h.mT @ x over the steps.
constexpr const char* kBody = R"(
    input %0 "h": float32[3, 4] "null"
    input %1 "sum": float32[4, 5] "null"
    input %2 "x": float32[3, 5] "null"
    input %3 "w": float32[5, 4] "null"
    input %4 "u": float32[4, 4] "null"
    input %5 "v": float32[6, 4] "null"
    %6: float32[3, 4] "null" = bp::matmul(%2, %3)
    %7: float32[3, 4] "null" = bp::matmul(%0, %4)
    %8: float32[3, 4] "null" = bp::add(%6, %7)
    %9: float32[4, 6] "null" = bp::permute_dims(%5, [1, 0])
    %10: float32[3, 6] "null" = bp::matmul(%8, %9)
    %11: float32[4, 3] "null" = bp::permute_dims(%8, [1, 0])
    %12: float32[4, 5] "null" = bp::matmul(%11, %2)
    %13: float32[4, 5] "null" = bp::add(%1, %12)
)";

std::string scan_of(const std::string& body, const std::string& outputs = "%8, %13, %10", int64_t length = 7) {
  const std::string n = std::to_string(length);
  return R"(graph "f" {
  input %0 "h": float32[3, 4] "null"
  input %1 "sum": float32[4, 5] "null"
  input %2 "xs": float32[)" +
         n + R"(, 3, 5] "null"
  input %3 "w": float32[5, 4] "null"
  input %4 "u": float32[4, 4] "null"
  input %5 "v": float32[6, 4] "null"
  graph "step" {)" +
         body + "    output " + outputs + R"(
  }
  %6: float32[3, 4] "null", %7: float32[4, 5] "null", %8: float32[)" +
         n + R"(, 3, 6] "null" = bp::scan(graph(0), [%0, %1], [%2], [%3, %4, %5], length=)" + n + R"()
  output %6, %7, %8
}
)";
}

size_t moved(const std::string& text, std::string* after = nullptr) {
  const std::unique_ptr<Graph> graph = parse(text);
  const size_t count = move_products_out_of_scans(*graph);
  verify(*graph);
  if (after) *after = print(*graph);
  EXPECT_EQ(move_products_out_of_scans(*graph), 0u) << "a second time there is nothing left to do\n" << print(*graph);
  return count;
}
std::string replaced(std::string text, const std::string& from, const std::string& to) {
  return text.replace(text.find(from), from.size(), to);
}
size_t products_within(const std::string& text) {
  const std::string body =
      text.substr(text.find("graph \"step\""), text.find("bp::scan") - text.find("graph \"step\""));
  const std::string inner = body.substr(0, body.find("  }\n"));
  size_t count = 0;
  for (size_t at = 0; (at = inner.find("bp::matmul", at)) != std::string::npos; ++at) ++count;
  return count;
}

TEST_F(ScanProducts, AreOfAllStepsWhereNoStepNeedsTheOneBefore) {
  std::string after;
  EXPECT_EQ(moved(scan_of(kBody), &after), 3u);
  EXPECT_EQ(products_within(after), 1u) << after;
  EXPECT_NE(after.find("float32[7, 3, 4] \"null\" = bp::matmul(%2, %3)"), std::string::npos) << after;
  EXPECT_NE(after.find("float32[7, 3, 6] \"null\" = bp::matmul("), std::string::npos) << after;
  EXPECT_NE(after.find("float32[21, 5] \"null\" = bp::reshape(%2"), std::string::npos) << after;
}

TEST_F(ScanProducts, StayWhereSomethingElseReadsThem) {
  const auto with = [](const std::string& node, const std::string& outputs) {
    return scan_of(std::string(kBody) + "    " + node + "\n", outputs);
  };
  EXPECT_EQ(moved(with(R"(%14: float32[3, 6] "null" = bp::multiply(%10, %10))", "%8, %13, %14")), 2u);
  EXPECT_EQ(moved(with(R"(%14: float32[4, 5] "null" = bp::multiply(%1, %13))", "%8, %14, %10")), 2u);
  EXPECT_EQ(moved(with(R"(%14: float32[4, 5] "null" = bp::multiply(%1, %1))", "%8, %13, %10")), 3u)
      << "what nothing needs reads nothing";
}

TEST_F(ScanProducts, AreSumsWhicheverTermIsTheFirst) {
  EXPECT_EQ(moved(scan_of(replaced(kBody, "bp::add(%1, %12)", "bp::add(%12, %1)"))), 3u);
  EXPECT_EQ(moved(scan_of(replaced(kBody, "bp::add(%1, %12)", "bp::subtract(%1, %12)"))), 2u);
}

TEST_F(ScanProducts, StayWhereTheyAreComputedAgainOnPurpose) {
  EXPECT_EQ(moved(scan_of(replaced(kBody, "bp::matmul(%2, %3)", "recomputed bp::matmul(%2, %3)"))), 2u);
}

TEST_F(ScanProducts, StayInOneStepAndWhereAllStepsTakeTooMuch) {
  EXPECT_EQ(moved(scan_of(kBody, "%8, %13, %10", 1)), 0u);
  EXPECT_EQ(moved(scan_of(kBody, "%8, %13, %10", 3000000)), 0u);
}

}  // namespace
}  // namespace backplane::core::graph

// Sums of parts: a part is added to the sum so far, which is not zero elsewhere; sums of other things stay.
#include "graph/passes/put_sums.hpp"

#include <gtest/gtest.h>

#include "graph/text/parse.hpp"
#include "graph/text/print.hpp"
#include "graph/verify.hpp"
#include "random_graph.hpp"

namespace backplane::core::graph {
namespace {

using namespace graph::testing;

class PutSums : public ::testing::Test {
 protected:
  void SetUp() override { backplane::testing::null_backend(); }
};

constexpr const char* kSlices = R"(graph "f" {
  input %0 "sum": float32[4, 3] "null"
  input %1 "part": float32[2, 3] "null"
  %2: float32[4, 3] "null" = bp::full([4, 3], 0, float32, device=device("null"))
  %3: float32[4, 3] "null" = bp::slice_put(%2, %1, [0], values[1], values[3], [1])
  %4: float32[4, 3] "null" = bp::add(%0, %3)
  output %4
}
)";

constexpr const char* kRows = R"(graph "f" {
  input %0 "sum": float32[4, 3] "null"
  input %1 "rows": float32[2, 3] "null"
  input %2 "at": int64[2] "null"
  %3: float32[4, 3] "null" = bp::full([4, 3], 0, float32, device=device("null"))
  %4: float32[4, 3] "null" = bp::take_put(%3, %2, %1, axis=0, accumulate=true)
  %5: float32[4, 3] "null" = bp::add(%4, %0)
  output %5
}
)";

size_t joined(std::string text, const char* from = "", const char* to = "", std::string* after = nullptr) {
  text.replace(text.find(from), std::string(from).size(), to);
  const std::unique_ptr<Graph> graph = parse(text);
  const size_t count = add_parts_in_place(*graph);
  verify(*graph);
  if (after) *after = print(*graph);
  EXPECT_EQ(add_parts_in_place(*graph), 0u) << "a second time there is nothing left to do\n" << print(*graph);
  return count;
}

TEST_F(PutSums, AViewOfTheSumTakesThePart) {
  std::string after;
  EXPECT_EQ(joined(kSlices, "", "", &after), 1u);
  EXPECT_NE(after.find("bp::slice(%0, [0]"), std::string::npos) << after;
  EXPECT_NE(after.find("bp::slice_put(%0,"), std::string::npos) << after;
}

TEST_F(PutSums, AnOpThatAddsTakesTheSumInPlaceOfZeros) {
  std::string after;
  EXPECT_EQ(joined(kRows, "", "", &after), 1u);
  EXPECT_NE(after.find("bp::take_put(%0, %2, %1, accumulate=true)"), std::string::npos) << after;
}

TEST_F(PutSums, WhatIsNotZeroElsewhereStays) {
  EXPECT_EQ(joined(kSlices, "bp::full([4, 3], 0,", "bp::full([4, 3], 1,"), 0u);
  EXPECT_EQ(joined(kRows, "bp::full([4, 3], 0,", "bp::full([4, 3], 1,"), 0u);
}

TEST_F(PutSums, WhatReplacesStays) { EXPECT_EQ(joined(kRows, "accumulate=true", "accumulate=false"), 0u); }

TEST_F(PutSums, WhatOthersReadStays) {
  EXPECT_EQ(joined(kSlices, "output %4", "output %3, %4"), 0u);
  EXPECT_EQ(joined(kRows, "output %5", "output %4, %5"), 0u);
}

TEST_F(PutSums, ASumThatBroadcastsStays) {
  EXPECT_EQ(joined(kSlices, "input %0 \"sum\": float32[4, 3]", "input %0 \"sum\": float32[1, 3]"), 0u);
}

TEST_F(PutSums, APartThatBroadcastsStays) {
  EXPECT_EQ(joined(kSlices, "input %1 \"part\": float32[2, 3]", "input %1 \"part\": float32[1, 3]"), 0u);
}

}  // namespace
}  // namespace backplane::core::graph

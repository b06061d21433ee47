// Sums of slices: a sum of zero tensors with adjacent slices is a concatenation; everything else stays.
#include "graph/passes/slice_sums.hpp"

#include <gtest/gtest.h>

#include "graph/text/parse.hpp"
#include "graph/text/print.hpp"
#include "graph/verify.hpp"
#include "random_graph.hpp"

namespace backplane::core::graph {
namespace {

using namespace graph::testing;

class SliceSums : public ::testing::Test {
 protected:
  void SetUp() override { backplane::testing::null_backend(); }
};

constexpr const char* kThree = R"(graph "f" {
  input %0 "a": float32[2, 3] "null"
  input %1 "b": float32[2, 1] "null"
  input %2 "c": float32[2, 4] "null"
  %3: float32[2, 8] "null" = bp::full([2, 8], 0, float32, device=device("null"))
  %4: float32[2, 8] "null" = bp::slice_put(%3, %2, [1], values[4], values[none], [1])
  %5: float32[2, 8] "null" = bp::slice_put(%3, %0, [-1], values[none], values[3], [1])
  %6: float32[2, 8] "null" = bp::slice_put(%3, %1, [1], values[3], values[-4], [1])
  %7: float32[2, 8] "null" = bp::add(%4, %5)
  %8: float32[2, 8] "null" = bp::add(%7, %6)
  output %8
}
)";

size_t joined(const std::string& text, std::string* after = nullptr) {
  const std::unique_ptr<Graph> graph = parse(text);
  const size_t count = join_slice_sums(*graph);
  verify(*graph);
  if (after) *after = print(*graph);
  EXPECT_EQ(join_slice_sums(*graph), 0u) << "a second time there is nothing left to do\n" << print(*graph);
  return count;
}
std::string with(const std::string& from, const std::string& to) {
  std::string text = kThree;
  return text.replace(text.find(from), from.size(), to);
}

TEST_F(SliceSums, AreConcatenationsInTheOrderOfTheSlices) {
  std::string after;
  EXPECT_EQ(joined(kThree, &after), 1u);
  const auto place = [&](const char* name) {
    const size_t at = after.find(std::string("bp::add(") + name + ", 0.0)");
    EXPECT_NE(at, std::string::npos) << after;
    return at;
  };
  EXPECT_LT(place("%0"), place("%1")) << after;
  EXPECT_LT(place("%1"), place("%2")) << after;
  EXPECT_NE(after.find("bp::concat(["), std::string::npos) << after;
}

TEST_F(SliceSums, StayWhereSlicesOverlapOrLeaveSomethingOut) {
  EXPECT_EQ(joined(with("values[4], values[none]", "values[2], values[6]")), 0u) << "over another one";
  EXPECT_EQ(joined(with("output %8", "output %7")), 1u) << "the longer sum is joined, for any reader";
  EXPECT_EQ(joined(with("bp::add(%7, %6)", "bp::multiply(%7, %6)")), 0u) << "without the middle";
}

TEST_F(SliceSums, StayWhereTheRestIsNotZero) {
  EXPECT_EQ(joined(with("[2, 8], 0, float32", "[2, 8], 1, float32")), 0u);
  EXPECT_EQ(joined(with("[2, 8], 0, float32", "[2, 8], -0.0, float32")), 0u) << "-0.0 + -0.0 is no 0.0";
}

TEST_F(SliceSums, StayWhereASliceIsBroadcastOrGoesInSteps) {
  EXPECT_EQ(joined(with(R"("c": float32[2, 4])", R"("c": float32[1, 4])")), 0u);
  EXPECT_EQ(joined(with("slice_put(%3, %2, [1], values[4], values[none], [1])",
                        "slice_put(%3, %2, [1], values[none], values[none], [2])")),
            0u);
}

}  // namespace
}  // namespace backplane::core::graph

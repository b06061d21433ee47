// A graph for any size: the function at other sizes, the constraints that the search finds, and its refusals.
#include "trace/dynamic_sizes.hpp"

#include <gtest/gtest.h>

#include "null_backend.hpp"

namespace backplane::testing {
namespace {

class DynamicSizes : public ::testing::Test {
 protected:
  void SetUp() override { null_backend(); }
};

using Tensors = std::vector<Tensor>;

Tensor counted(int64_t n) {
  std::vector<double> elements;
  for (int64_t i = 0; i < n; ++i) elements.push_back(static_cast<double>(i) + 0.5);
  return tensor(elements, {n});
}

Graph traced(const Function& function, int64_t n) {
  const Tensor x = counted(n);
  const DynamicSize size{"n", {{0, 0}}};
  return make_graph(function, {&x, 1}, {&size, 1});
}

void expect_same(const Graph& graph, const Function& function, int64_t n) {
  const Tensor x = counted(n);
  EXPECT_EQ(values(graph.call({&x, 1})[0]), values(function({&x, 1})[0])) << "at " << n;
}

std::string message_of(const std::function<void()>& function) {
  try {
    function();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

TEST_F(DynamicSizes, AGraphHoldsForOtherSizes) {
  const Function function = [](std::span<const Tensor> in) { return Tensors{multiply(in[0], add(in[0], in[0]))}; };
  const Graph graph = traced(function, 4);
  EXPECT_TRUE(graph.is_dynamic());
  EXPECT_NE(graph.text().find("float64[n]"), std::string::npos) << graph.text();
  for (const int64_t n : {0, 1, 4, 9, 100}) expect_same(graph, function, n);
  const Tensor x = counted(5);
  const Graph at_five = graph.at_sizes_of({&x, 1});
  EXPECT_FALSE(at_five.is_dynamic());
  EXPECT_EQ(at_five.outputs()[0].dims, std::vector<std::string>{"5"});
}

TEST_F(DynamicSizes, ABranchBecomesAConstraint) {
  const Function function = [](std::span<const Tensor> in) {
    return Tensors{in[0].shape()[0] > 37 ? exp(in[0]) : add(in[0], in[0])};
  };
  const Graph graph = traced(function, 4);
  EXPECT_NE(graph.text().find("constraint n <= 37"), std::string::npos) << graph.text();
  expect_same(graph, function, 37);
  const Tensor x = counted(38);
  const std::string said = message_of([&] { graph.call({&x, 1}); });
  EXPECT_NE(said.find("relies on n <= 37, found 38"), std::string::npos) << said;
  EXPECT_EQ(graph.refusal_of_sizes({&x, 1}), said);
  EXPECT_NE(traced(function, 38).text().find("constraint 38 <= n"), std::string::npos) << "at the edge itself";
}

TEST_F(DynamicSizes, ASizeThatIsKnownIsRefused) {
  const std::string said =
      message_of([] { traced([](std::span<const Tensor> in) { return Tensors{add(in[0], counted(4))}; }, 4); });
  EXPECT_NE(said.find("the size \"n\" cannot be dynamic"), std::string::npos) << said;
}

TEST_F(DynamicSizes, NamesAndPlacesAreChecked) {
  const Tensor x = counted(4);
  const Function function = [](std::span<const Tensor> in) { return Tensors{exp(in[0])}; };
  for (const DynamicSize& wrong : {DynamicSize{"n", {{1, 0}}}, DynamicSize{"n", {{0, 1}}}, DynamicSize{"2n", {{0, 0}}},
                                   DynamicSize{"draw", {{0, 0}}}, DynamicSize{"n", {}}})
    EXPECT_THROW(make_graph(function, {&x, 1}, {&wrong, 1}), Error) << wrong.name;
}

}  // namespace
}  // namespace backplane::testing

// Expressions are found from their values, and mean the same at other sizes.
#include "graph/size_fit.hpp"

#include <gtest/gtest.h>

#include <functional>

#include "graph/sizes.hpp"

namespace backplane::core::graph {
namespace {

using Sizes = std::vector<int64_t>;
using Law = std::function<int64_t(const Sizes&)>;

const std::vector<Sizes> kChoices = {{4, 9}, {5, 11}, {6, 14}, {7, 10}, {264, 306}, {66004, 66046}, {66005, 66046}};

TEST(SizeFits, FindsWhatGaveTheValues) {
  const std::vector<std::pair<std::string, Law>> laws = {
      {"12", [](const Sizes&) { return 12; }},
      {"a", [](const Sizes& s) { return s[0]; }},
      {"-3*b", [](const Sizes& s) { return -3 * s[1]; }},
      {"2*a + 1", [](const Sizes& s) { return 2 * s[0] + 1; }},
      {"a*b", [](const Sizes& s) { return s[0] * s[1]; }},
      {"7*a*a", [](const Sizes& s) { return 7 * s[0] * s[0]; }},
      {"2*a + b - 5", [](const Sizes& s) { return 2 * s[0] + s[1] - 5; }},
      {"a*a - 3*b", [](const Sizes& s) { return s[0] * s[0] - 3 * s[1]; }},
      {"a*b - a - b + 1", [](const Sizes& s) { return (s[0] - 1) * (s[1] - 1); }},
      {"(a//2)", [](const Sizes& s) { return s[0] / 2; }},
      {"((a + 1)//2)", [](const Sizes& s) { return (s[0] + 1) / 2; }},
      {"((3*a + 1)//4)", [](const Sizes& s) { return (3 * s[0] + 1) / 4; }},
      {"((b - 1)//2)", [](const Sizes& s) { return (s[1] - 3) / 2 + 1; }},
  };
  for (const auto& [text, law] : laws) {
    Graph graph;
    graph.add_symbol("a", kNone, 0, 4);
    graph.add_symbol("b", kNone, 0, 9);
    SizeFit fit(graph, kChoices);
    Sizes values;
    for (const Sizes& choice : kChoices) values.push_back(law(choice));
    const std::optional<Dim> found = fit.fit(values);
    ASSERT_TRUE(found) << text;
    EXPECT_EQ(graph.text(*found), text);
    for (const Sizes& other : {Sizes{8, 8}, Sizes{3, 100}, Sizes{1000, 17}}) {
      Sizes symbols = other;
      for (SymbolId s = 2; s < graph.symbols().size(); ++s)
        symbols.push_back(
            floor_divide(graph.sizes.evaluate(graph.symbols()[s].numerator, symbols), graph.symbols()[s].divisor));
      EXPECT_EQ(graph.sizes.evaluate(*found, symbols), law(other)) << text;
    }
  }
}

TEST(SizeFits, FindsMultiplesOfQuotientsThatItKnows) {
  Graph graph;
  graph.add_symbol("a", kNone, 0, 4);
  graph.add_symbol("b", kNone, 0, 9);
  SizeFit fit(graph, kChoices);
  const auto fitted = [&](const Law& law) {
    Sizes values;
    for (const Sizes& choice : kChoices) values.push_back(law(choice));
    const std::optional<Dim> found = fit.fit(values);
    return found ? graph.text(*found) : "none";
  };
  EXPECT_EQ(fitted([](const Sizes& s) { return s[0] / 2; }), "(a//2)");
  EXPECT_EQ(fitted([](const Sizes& s) { return 5 * (s[0] / 2); }), "5*(a//2)");
}

TEST(SizeFits, FindsAQuotientOverAShortRangeFromManySizes) {
  std::vector<Sizes> choices;
  Sizes values;
  for (int64_t n = 40; n < 60; ++n) {
    choices.push_back({n});
    values.push_back((n + 3) / 5);
  }
  Graph graph;
  graph.add_symbol("a", kNone, 0, 40);
  const std::optional<Dim> found = SizeFit(graph, choices).fit(values);
  ASSERT_TRUE(found);
  EXPECT_EQ(graph.text(*found), "((a + 3)//5)");
}

TEST(SizeFits, FindsARemainderOfWhichEveryValueWasSeen) {
  std::vector<Sizes> choices;
  Sizes values, few;
  for (int64_t n = 40; n < 60; ++n) {
    choices.push_back({n});
    values.push_back(7 - 2 * ((n + 1) % 3));
    few.push_back((n + 1) % 3 == 2 ? 1 : 0);
  }
  Graph graph;
  graph.add_symbol("a", kNone, 0, 40);
  SizeFit fit(graph, choices);
  const std::optional<Dim> found = fit.fit(values);
  ASSERT_TRUE(found);
  for (const int64_t n : {0, 1, 2, 100}) {
    Sizes symbols{n};
    for (SymbolId s = 1; s < graph.symbols().size(); ++s)
      symbols.push_back(
          floor_divide(graph.sizes.evaluate(graph.symbols()[s].numerator, symbols), graph.symbols()[s].divisor));
    EXPECT_EQ(graph.sizes.evaluate(*found, symbols), 7 - 2 * ((n + 1) % 3));
  }
  EXPECT_FALSE(fit.fit(few));
}

TEST(SizeFits, FindsNothingWhereThereIsNothing) {
  Graph graph;
  graph.add_symbol("a", kNone, 0, 4);
  graph.add_symbol("b", kNone, 0, 9);
  SizeFit fit(graph, kChoices);
  EXPECT_FALSE(fit.fit({1, 0, 1, 0, 0, 1, 1}));
  EXPECT_FALSE(fit.fit({4, 5, 6, 7, 100, 100, 100}));
}

TEST(SizeFits, QuotientsRoundDown) {
  EXPECT_EQ(floor_divide(7, 2), 3);
  EXPECT_EQ(floor_divide(-7, 2), -4);
  EXPECT_EQ(floor_divide(-8, 2), -4);
}

}  // namespace
}  // namespace backplane::core::graph

// A graph's text: printed text reads back as the same graph, and invalid text is refused with line and column.
#include <gtest/gtest.h>

#include <fstream>
#include <random>

#include "graph/sizes.hpp"
#include "graph/text/parse.hpp"
#include "graph/text/print.hpp"
#include "random_graph.hpp"

namespace backplane::core::graph {
namespace {

class GraphText : public ::testing::Test {
 protected:
  void SetUp() override { backplane::testing::null_backend(); }
};

std::string refusal(std::string_view text) {
  try {
    parse(text);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

constexpr const char* kWhole = R"(graph "f" {
  symbol batch of %0 axis 0 example 4
  generator "default"
  draw 0, 12*batch + 1
  input %0 "x": float64[batch, 3] "null"
  input %1 "a \"b\"": int64[] "null"
  constant %2 "w": float64[3] "null" = {1.0, -inf, 1e-05}
  constant %3 "": bool[2] "null" = {0, 1}
  constant %4 "empty": complex64[0, 2] "null" = {}
  constant %5 "c": complex64[] "null" = {1.5, -2.0}
  graph "inner" {
    input %0 "y": float64[] "null"
    %1: float64[] "null" = bp::negative(%0)  # inner.py:3
    output %1
  }
  graph "step" {
    symbol batch example 4
    input %0 "a": float64[] "null"
    input %1 "b": float64[] "null"
    input %2 "c": float64[batch, 3] "null"
    %3: float64[] "null" = bp::add(%0, %1)
    output %3, %2
  }
  %6: float64[batch, 3] "null" = bp::add(%0, %2)  # model.py:12 in f
  %7: float64[batch, 3] "null" = recomputed bp::multiply(%6, 2.5)
  %8: float64[3, batch] "null" = bp::permute_dims(%7, [1, 0])
  %9: float64[3*batch] "null" = bp::reshape(%8, [3*batch])
  %10: float64[3] "null" = bp::sum(%7, [0])  # model.py:14 in f
  %11: float64[3, batch + 3] "null" = bp::concat([%8, %8], 1)
  %12: float64[] "null" = bp::sum(%10)
  %13: float64[] "null", %14: float64[3, batch, 3] "null" = bp::scan(graph(1), [%12], [%10], [%7], length=3)
  constraint batch <= 100 "the table has 100 rows"  # model.py:9
  constraint 3*batch divisible by 3 "reshape"
  output %9, %10, %0, %10
}
)";

// A constraint of a damaged text, whose quotient no 64 bits hold.
TEST_F(GraphText, AConstraintMayNameAnyDivisor) {
  const std::unique_ptr<Graph> graph = parse(R"(graph "f" {
  symbol n of %0 axis 0 example 2
  input %0 "x": float64[n] "null"
  constraint -4611686018427387904*n divisible by -1 "the least of all"
  output %0
}
)");
  const int64_t two[] = {2};
  EXPECT_NO_THROW(graph->check(two));
}

// Sizes that are not polynomials, and numbers that are sizes.
TEST_F(GraphText, QuotientsAndNumbersOfSizesRoundTrip) {
  const std::string text = R"(graph "f" {
  symbol n of %0 axis 0 example 5
  input %0 "x": float64[n, 2] "null"
  graph "inner" {
    symbol n example 5
    input %0 "y": float64[n] "null"
    %1: float64[n] "null" = bp::negative(%0)
    output %1
  }
  %1: float64[((n + 1)//2), 2] "null" = bp::slice(%0, [0], [0], [n], [2])
  %2: float64[2*((n + 1)//2)] "null" = bp::reshape(%1, [2*((n + 1)//2)])
  %3: float64[2*((n + 1)//2)] "null" = bp::divide(%2, n)
  %4: float64[2*((n + 1)//2)] "null" = bp::multiply(%3, float(n))
  %5: float64[2*((n + 1)//2)] "null" = bp::multiply(%4, float(3 / (n//2)))
  output %5
}
)";
  const std::unique_ptr<Graph> graph = parse(text);
  EXPECT_EQ(print(*graph), text);
  const std::vector<int64_t> shape = {7, 2};
  const std::vector<Shape> shapes = {Shape(shape)};
  const std::vector<int64_t> bound = graph->bind(shapes);
  EXPECT_EQ(bound, (std::vector<int64_t>{7, 4, 3})) << "n, then the quotients in the order in which they stand";
  const std::shared_ptr<const Graph> at_seven = specialize(*graph, bound);
  const std::string said = print(*at_seven);
  for (const char* expected : {"float64[4, 2]", "[7], [2])", "bp::divide(%2, 7)", "bp::multiply(%3, 7.0)", "%4, 1.0)",
                               "input %0 \"y\": float64[7]"})
    EXPECT_NE(said.find(expected), std::string::npos) << expected << "\n" << said;
}

TEST_F(GraphText, RoundTrips) {
  std::string text = kWhole;
  text.replace(text.find("[3, batch + 3]"), 14, "[3, 2*batch]");
  const std::unique_ptr<Graph> graph = parse(text);
  EXPECT_EQ(print(*graph), text);
  EXPECT_EQ(graph->nodes().size(), 8u);
  EXPECT_EQ(graph->locations().size(), 3u);
}

// The example of docs/reference/graph-format.md, on the device of the tests.
TEST_F(GraphText, TheReferencesExampleRoundTrips) {
  std::ifstream in(BACKPLANE_GRAPH_TESTS "/../../docs/reference/graph-format.md");
  const std::string page{std::istreambuf_iterator<char>(in), {}};
  const size_t begin = page.find("graph \"f\" {"), end = page.find("```", begin);
  ASSERT_NE(begin, std::string::npos);
  std::string text = page.substr(begin, end - begin);
  for (size_t at = 0; (at = text.find("\"cpu\"", at)) != std::string::npos;) text.replace(at, 5, "\"null\"");
  EXPECT_EQ(print(*parse(text)), text);
}

TEST_F(GraphText, ALayoutOfItsOwnReadsTheSame) {
  const auto graph = parse(R"(
    # a comment
    graph "g" { input %0 "x": float64[2] "null"   # of a line
      %1 : float64 [ 2 ] "null"
         = bp::add ( y = 1.0 , x = %0 ) output %1 })");
  EXPECT_EQ(print(*graph), R"(graph "g" {
  input %0 "x": float64[2] "null"
  %1: float64[2] "null" = bp::add(%0, 1.0)
  output %1
}
)");
}

TEST_F(GraphText, FaultsAreNamedWithTheirPlace) {
  struct Case {
    const char* text;
    const char* says;
  };
  const Case cases[] = {
      {"", "line 1, column 1: found the end of the text, expected \"graph\""},
      {"graph \"f\" {\n output %0\n}", "line 2, column 9: uses %0, which nothing before this makes"},
      {"graph \"f\" {", "found the end of the text"},
      {"graph \"f", "a string that does not end"},
      {"graph \"f\" { }", "expected \"output\""},
      {"graph \"f\" { output } x", "expected the end of the text"},
      {"graph \"f\" { input %1 \"x\": float64[] \"null\" output }", "found %1, expected %0"},
      {"graph \"f\" { input %0 \"x\": float65[] \"null\" output }", "found the unknown dtype float65"},
      {"graph \"f\" { input %0 \"x\": float64[n] \"null\" output }", "found no symbol \"n\""},
      {"graph \"f\" { input %0 \"x\": float64[] \"nowhere\" output }", "nowhere"},
      {"graph \"f\" { input %0 \"x\": float64[99999999999999999999] \"null\" output }", "does not fit 64 bits"},
      {"graph \"f\" { input %0 \"x\": float64[-2] \"null\" output }", "sizes are 0 or more"},
      {"graph \"f\" { constant %0 \"c\": float64[3] \"null\" = {1.0} output }", "expected 24"},
      {"graph \"f\" { constant %0 \"c\": float64[4611686018427387904, 4] \"null\" = {} output }", "64 bits"},
      {"graph \"f\" { constant %0 \"c\": bool[1] \"null\" = {2} output }", "not an element of bool"},
      {"graph \"f\" { constant %0 \"c\": float64[] \"null\" = digest 0x12 output }", "not in the text"},
      {"graph \"f\" { %0: float64[] \"null\" = bp::no_such_op() output }", "found no op \"bp::no_such_op\""},
      {"graph \"f\" { %0: float64[] \"null\" = bp::add(1.0) output }", "lacks its argument \"y\""},
      {"graph \"f\" { %0: float64[] \"null\" = bp::add(1.0, 2.0, 3.0) output }", "takes 2 arguments"},
      {"graph \"f\" { %0: float64[] \"null\" = bp::add(1.0, x=2.0) output }", "twice"},
      {"graph \"f\" { %0: float64[] \"null\" = bp::add(1.0, q=2.0) output }", "has no argument \"q\""},
      {"graph \"f\" { input %0 \"x\": float64[] \"null\" %1: float64[] \"null\" = bp::add(%1, 2.0) output }",
       "uses %1, which nothing before this makes"},
      {"graph \"f\" { input %0 \"x\": float64[2] \"null\" %1: float64[3] \"null\" = bp::add(%0, 2.0) output }",
       "by the op's rules"},
      {"graph \"f\" { input %0 \"x\": float64[2] \"null\" %1: int64[2] \"null\" = bp::add(%0, 2.0) output }",
       "by the op's rules"},
      {"graph \"f\" { input %0 \"x\": float64[2] \"null\" %1: float64[2] \"null\" = bp::add(%0, \"s\") output }",
       "expected Tensor"},
      {"graph \"f\" { input %0 \"x\": float64[2] \"null\" %1: float64[] \"null\" = bp::sum(%0, [3]) output }",
       "axis 3"},
      {"graph \"f\" { input %0 \"x\": float64[2] \"null\" = bp::add(%0, 2.0) output }", "has 0 results"},
      {"graph \"f\" { generator \"g\" draw 1, 5 output }", "found no generator 1"},
      {"graph \"f\" { generator \"g\" draw 0, -5 output }", "negative number of counters"},
      {"graph \"f\" { symbol n of %0 axis 1 example 2 input %0 \"x\": float64[n] \"null\" output }", "axis 1"},
      {"graph \"f\" { symbol n example 2 symbol n example 3 output }", "two symbols"},
      {"graph \"f\" { symbol n of %0 axis 0 example 2 input %0 \"x\": float64[n//2] \"null\" output }", "found //"},
      {"graph \"f\" { symbol n of %0 axis 0 example 2 input %0 \"x\": float64[(n//0)] \"null\" output }", "from 1 up"},
      {"graph \"f\" { symbol n of %0 axis 0 example 2 input %0 \"x\": float64[2*(n + 1)] \"null\" output }",
       "parentheses belong around a quotient"},
      {"graph \"f\" { symbol n of %0 axis 0 example 2 input %0 \"x\": float64[((((((((((((((((((n//2)", "deep"},
  };
  for (const Case& c : cases) {
    const std::string said = refusal(c.text);
    EXPECT_NE(said.find(c.says), std::string::npos) << c.text << "\n" << said;
  }
  std::string deep;
  for (int i = 0; i < 1000; ++i) deep += "graph \"f\" {";
  EXPECT_NE(refusal(deep).find("deep"), std::string::npos);
}

// Damage of every kind: an error or a graph, never a crash.
TEST_F(GraphText, DamagedTextIsAnErrorOrAGraph) {
  std::mt19937 random = testing::fuzz_random();
  const std::string whole = kWhole;
  for (int round = testing::fuzz_rounds(3000); round > 0; --round) {
    std::string text = whole;
    for (uint32_t edits = 1 + random() % 3; edits > 0; --edits) {
      const size_t at = random() % text.size(), length = random() % 12;
      switch (random() % 4) {
        case 0:
          text.erase(at, length);
          break;
        case 1:
          text.insert(at, whole.substr(random() % whole.size(), length));
          break;
        case 2:
          text[at] = static_cast<char>(random());
          break;
        default:
          text.insert(at, std::to_string(random()));
      }
    }
    const std::string said = refusal(text);
    if (!said.empty()) {
      EXPECT_LT(said.size(), 4000u) << said;
      continue;
    }
    const std::string again = print(*parse(text));
    EXPECT_EQ(print(*parse(again)), again);
  }
}

TEST_F(GraphText, ALargeConstantIsFoundByNameAndDigest) {
  Graph graph;
  graph.name = "g";
  std::vector<double> numbers(100);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<double>(i);
  const int64_t shape[] = {100};
  const Tensor weight = from_host(numbers.data(), shape, {}, BP_FLOAT64, backplane::testing::null_backend());
  graph.outputs = {graph.add_constant(weight, "weight")};
  const std::string text = print(graph);
  EXPECT_NE(text.find("digest 0x"), std::string::npos);
  const auto read = parse(text, [&](const WantedConstant& wanted) {
    return wanted.name == "weight" && wanted.digest == digest(weight) ? weight : Tensor();
  });
  EXPECT_EQ(print(*read), text);
  EXPECT_THROW(parse(text), Error);
}

TEST_F(GraphText, ANaNOfItsOwnIsNoNumber) {
  const uint64_t bits[] = {0x7ff8000000000001u, 0x7ff8000000000000u};
  const int64_t shape[] = {1};
  for (const bool usual : {false, true}) {
    Graph graph;
    graph.outputs = {
        graph.add_constant(from_host(&bits[usual], shape, {}, BP_FLOAT64, backplane::testing::null_backend()))};
    EXPECT_EQ(print(graph).find("{nan}") != std::string::npos, usual) << print(graph);
  }
}

}  // namespace
}  // namespace backplane::core::graph

// Nodes that take functions: a graph whose functions do not fit the node is refused where it is read, with the node and
// what does not fit.
#include <gtest/gtest.h>

#include "graph/sizes.hpp"
#include "graph/text/parse.hpp"
#include "graph/text/print.hpp"
#include "random_graph.hpp"

namespace backplane::core::graph {
namespace {

class FunctionsOfNodes : public ::testing::Test {
 protected:
  void SetUp() override { backplane::testing::null_backend(); }
};

// A graph of these lines, over x: float64[3], i: float64[] and p: bool[].
std::string graph_of(const std::string& lines) {
  return "graph \"f\" {\n  input %0 \"x\": float64[3] \"null\"\n  input %1 \"i\": float64[] \"null\"\n"
         "  input %2 \"p\": bool[] \"null\"\n" +
         lines + "\n}\n";
}

// Functions to choose from: each a graph within.
const std::string kSum = R"(  graph "sum" {
    input %0 "a": float64[] "null"
    input %1 "b": float64[] "null"
    %2: float64[] "null" = bp::add(%0, %1)
    output %2, %2
  }
)";
const std::string kCarry = R"(  graph "carry" {
    input %0 "a": float64[] "null"
    %1: float64[] "null" = bp::add(%0, 1.0)
    output %1
  }
)";
const std::string kPair = R"(  graph "pair" {
    input %0 "a": float64[] "null"
    output %0, %0
  }
)";
const std::string kLess = R"(  graph "less" {
    input %0 "a": float64[] "null"
    %1: bool[] "null" = bp::less(%0, 9.0)
    output %1
  }
)";
const std::string kInts = R"(  graph "ints" {
    input %0 "a": float64[] "null"
    %1: int64[] "null" = bp::cast(%0, int64)
    output %1
  }
)";

std::string refusal(const std::string& text) {
  try {
    parse(text);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST_F(FunctionsOfNodes, ThoseThatFitAreRead) {
  for (const std::string& lines :
       {kSum +
            "%3: float64[] \"null\", %4: float64[3] \"null\" = bp::scan(graph(0), [%1], [%0], [], length=3)\noutput %4",
        kCarry + kCarry + "%3: float64[] \"null\" = bp::cond(graph(0), graph(1), %2, [%1])\noutput %3",
        kLess + kCarry + "%3: float64[] \"null\" = bp::while_loop(graph(0), graph(1), [%1], [])\noutput %3",
        kPair + "%3: float64[] \"null\", %4: float64[] \"null\" = bp::checkpoint(graph(0), [%1])\noutput %4"}) {
    const std::string text = graph_of(lines);
    EXPECT_EQ(refusal(text), "") << text;
  }
}

TEST_F(FunctionsOfNodes, ThoseThatDoNotFitAreNamed) {
  struct Case {
    std::string lines, node, says;
  };
  const std::string scalar = "%3: float64[] \"null\" = ";
  const std::string two = "%3: float64[] \"null\", %4: float64[3] \"null\" = ";
  const Case cases[] = {
      {kSum + scalar + "bp::scan(graph(0), [%1], [%0], [], length=3)", "bp::scan",
       "has 1 results; its functions give 2"},
      {kSum + "%3: float64[] \"null\", %4: float64[4] \"null\" = bp::scan(graph(0), [%1], [%0], [], length=3)",
       "bp::scan", "result 1 is float64[4] \"null\"; by its functions it has dtype float64 and shape (3,)"},
      {kSum + two + "bp::scan(graph(0), [%1], [%0], [], length=4)", "bp::scan", "axis 0 of size 4"},
      {kSum + two + "bp::scan(graph(0), [%1], [%0], [], length=-1)", "bp::scan", "found -1, expected 0 or more"},
      {kSum + two + "bp::scan(graph(0), [%1], [%1], [], length=3)", "bp::scan", "without dimensions"},
      {kSum + two + "bp::scan(graph(0), [%1], [%0], [%1], length=3)", "bp::scan", "takes 2 tensors, is given 3"},
      {kSum + two + "bp::scan(graph(0), [%0], [%0], [], length=3)", "bp::scan",
       "graph sum: input a has 1 dimensions, expected 0"},
      {kSum + two + "bp::scan(graph(0), [%2], [%0], [], length=3)", "bp::scan", "is given bool on null"},
      {kInts + scalar + "bp::scan(graph(0), [%1], [], [], length=3)", "bp::scan", "changes the shape or the dtype"},
      {kCarry + kPair + scalar + "bp::cond(graph(0), graph(1), %2, [%1])", "bp::cond",
       "one function returns 1 tensors, the other 2"},
      {kCarry + kInts + scalar + "bp::cond(graph(0), graph(1), %2, [%1])", "bp::cond", "different shapes or dtypes"},
      {kCarry + kCarry + scalar + "bp::cond(graph(0), graph(1), %1, [%1])", "bp::cond", "expected one bool"},
      {kCarry + kCarry + scalar + "bp::cond(graph(0), graph(1), true, [%1])", "bp::cond", "expected a tensor"},
      {kCarry + kCarry + two + "bp::cond(graph(0), graph(1), %2, [%1])", "bp::cond",
       "has 2 results; its functions give 1"},
      {kLess + kPair + scalar + "bp::while_loop(graph(0), graph(1), [%1], [])", "bp::while_loop", "returns 2 tensors"},
      {kLess + kInts + scalar + "bp::while_loop(graph(0), graph(1), [%1], [])", "bp::while_loop", "comes as float64"},
      {kCarry + kCarry + scalar + "bp::while_loop(graph(0), graph(1), [%1], [])", "bp::while_loop",
       "expected one bool"},
      {kPair + kCarry + scalar + "bp::while_loop(graph(0), graph(1), [%1], [])", "bp::while_loop", "expected one bool"},
      {kPair + scalar + "bp::checkpoint(graph(0), [%1])", "bp::checkpoint", "has 1 results; its functions give 2"},
      {kPair + scalar + "bp::custom_function(graph(0), [%1])", "bp::custom_function", "its functions give 2"},
  };
  for (const Case& c : cases) {
    const std::string said = refusal(graph_of(c.lines + "\noutput %3"));
    EXPECT_NE(said.find(c.says), std::string::npos) << c.lines << "\n" << said;
    EXPECT_NE(said.find("graph f: node"), std::string::npos) << said;
    EXPECT_NE(said.find(c.node), std::string::npos) << said;
  }
}

// A call hands a function no counters.
TEST_F(FunctionsOfNodes, OnesThatDrawAreRefused) {
  const std::string draws = R"(  graph "noise" {
    generator "default"
    draw 0, 4
    input %0 "a": float64[] "null"
    output %0
  }
)";
  const std::string said =
      refusal(graph_of(draws + "%3: float64[] \"null\" = bp::scan(graph(0), [%1], [], [], length=3)\noutput %3"));
  EXPECT_NE(said.find("graph noise: draws random numbers"), std::string::npos) << said;
}

// Its sizes come from the outer graph, and not from its examples.
TEST_F(FunctionsOfNodes, SizesWithinAreThoseAround) {
  const std::string text = R"(graph "f" {
  symbol n of %0 axis 1 example 4
  input %0 "x": float64[2, n] "null"
  input %1 "i": float64[n] "null"
  graph "body" {
    symbol n example 7
    input %0 "a": float64[n] "null"
    input %1 "b": float64[n] "null"
    %2: float64[n] "null" = bp::add(%0, %1)
    output %2, %2
  }
  %2: float64[n] "null", %3: float64[2, n] "null" = bp::scan(graph(0), [%1], [%0], [], length=2)
  output %2, %3
}
)";
  ASSERT_EQ(refusal(text), "");
  const int64_t numbers[] = {9};
  EXPECT_NE(print(*specialize(*parse(text), numbers)).find("float64[2, 9] \"null\" = bp::scan"), std::string::npos);
  std::string other = text;
  other.replace(other.find("symbol n example 7"), 18, "symbol m example 7");
  for (size_t at; (at = other.find("float64[n] \"null\"\n    ")) != std::string::npos;)
    other.replace(at, 10, "float64[m]");
  other.replace(other.find("%2: float64[n]"), 14, "%2: float64[m]");
  EXPECT_NE(refusal(other).find("its size m does not exist in graph f, the outer one"), std::string::npos)
      << refusal(other);
}

}  // namespace
}  // namespace backplane::core::graph

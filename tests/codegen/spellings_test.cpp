// Spellings of entries: their forms, the tables that codegen makes of them, and the report of each mistake.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "codegen_fixture.hpp"
#include "emit/emit.hpp"

namespace backplane::codegen {
namespace {

using ::testing::HasSubstr;

// The base registry's text, with spellings for its op topk(Tensor x, Size k, *, Axis axis=-1).
Checked check_spellings(const std::string& spellings, const std::string& op = "topk") {
  std::string text = read_text(test_path("data/base.yaml"));
  const size_t entry = text.find("  - op: " + op + "(");
  text.insert(text.find("    doc:", entry), "    spellings:\n" + spellings);
  return check_file(text, true);
}

std::string table_of(const Checked& checked) {
  OutputSet out;
  emit_spellings({checked.registry, "bp", "bp"}, out);
  return out.files().at("bp_spellings.hpp");
}

TEST(Spellings, AWordIsARowWithItsArgument) {
  const Checked checked = check_spellings("      count: k\n");
  ASSERT_EQ(checked.report(), "");
  EXPECT_THAT(table_of(checked), HasSubstr("{\"bp::topk\", \"count\", 1},"));
}

TEST(Spellings, ASignatureIsACallOfNodes) {
  const Checked checked = check_spellings("      topk(Tensor x, Size k, *, Axis dim=-1): topk(x, k, axis=dim)\n");
  ASSERT_EQ(checked.report(), "");
  ASSERT_EQ(checked.registry.spellings.size(), 1u);
  const std::vector<SpellingNode>& nodes = checked.registry.spellings[0].nodes;
  ASSERT_EQ(nodes.size(), 4u);
  EXPECT_EQ(nodes[3].op->full_name, "bp::topk");
  const std::vector<std::pair<uint32_t, uint32_t>> inputs = {{0, 0}, {1, 1}, {2, 2}};
  EXPECT_EQ(nodes[3].inputs, inputs);
  EXPECT_THAT(table_of(checked), HasSubstr("\"topk(x, k, *, dim=-1)\""));
}

TEST(Spellings, OperatorsAndLiteralsAreNodes) {
  const Checked checked = check_spellings(
      "      add(Tensor x, Tensor y, *, Tensor alpha): add(x, y * alpha)\n"
      "      add(Tensor x, none y): add(x, -2)\n",
      "add");
  ASSERT_EQ(checked.report(), "");
  EXPECT_EQ(checked.registry.spellings[0].nodes.size(), 5u);
  EXPECT_EQ(checked.registry.spellings[1].nodes[1].literal.integer, -2);
}

TEST(Spellings, ARegistryWithoutAnyHasNoTable) {
  OutputSet out;
  const Checked checked = check_file(read_text(test_path("data/base.yaml")), true);
  emit_spellings({checked.registry, "bp", "bp"}, out);
  EXPECT_TRUE(out.files().empty());
}

TEST(Spellings, MistakesAreReported) {
  const std::pair<const char*, const char*> cases[] = {
      {"size: count", "'count' is not an argument of 'topk'"},
      {"k: axis", "'k' is an argument of 'topk'; remove the word"},
      {"a b: k", "'a b' is not a word and not a signature"},
      {"other(Tensor x): topk(x, 1)", "found a spelling of 'other', expected 'topk' or one of its aliases"},
      {"topk(Tensor x, Size n): topk(x)", "'topk' is called without its argument 'k'"},
      {"topk(Tensor x, Size n): topk(x, 1)", "the call does not use 'n'"},
      {"topk(Tensor x, str n): topk(x, n)", "parameter 'n' does not fit argument 'k', a Size"},
      {"topk(Tensor x, Size n): topk(x, n, 0)", "'topk' takes fewer arguments by position"},
      {"topk(Tensor x, Size n): topk(x, n, along=0)", "'topk' has no argument 'along'"},
      {"topk(Tensor x, Size n): other(x, n)", "no op 'other' is in the registry"},
      {"topk(Tensor x, Size n): x", "a spelling means a call"},
      {"topk(Tensor x, Size n): topk(x, k=n if n else 1)", "a spelling's call takes its parameters"},
      {"topk(Tensor(mut) x, Size n): topk(x, n)", "a spelling changes no argument"},
      {"topk(Tensor x, Size n) -> Tensor: topk(x, n)", "after the arguments; remove it"},
  };
  for (const auto& [spelling, message] : cases) {
    EXPECT_THAT(check_spellings("      " + std::string(spelling) + "\n").report(), HasSubstr(message)) << spelling;
  }
}

TEST(Spellings, StandInBackplanesRegistryOnly) {
  const Checked checked =
      check_file(in_file("  - op: twice(Tensor x) -> Tensor\n"
                         "    doc: x + x.\n"
                         "    spellings: {number: x}\n"
                         "    dtypes: any\n"
                         "    shape: broadcast(x)\n"
                         "    vjp: decompose\n"
                         "    jvp: decompose\n"
                         "    decompose: x + x\n"
                         "    samples: [{x: [2]}]\n"));
  EXPECT_THAT(checked.report(), HasSubstr("t.yaml:5:17: error: 'spellings' stand in Backplane's own registry"));
}

}  // namespace
}  // namespace backplane::codegen

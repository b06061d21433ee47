// Rules of graphs: what a rule may say, and that each mistake is reported at its place.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "cli/run.hpp"
#include "codegen_fixture.hpp"
#include "emit/emit.hpp"

namespace backplane::codegen::rewrites_test {
namespace {

using ::testing::HasSubstr;

// The base registry's text with rules of its own, as a file of namespace bp.
Checked check_rules(const std::string& rules) {
  return check_file(read_text(test_path("data/base.yaml")) + "\nrewrites:\n" + rules, true);
}

TEST(Rewrites, BecomeATable) {
  const Checked checked = check_rules(
      "  - {from: conj(conj(x)), to: x}\n"
      "  - {from: 'cast(cast(x, middle), float64)', to: 'cast(x, dtype=float64)', when: 'exact(x, middle)'}\n");
  ASSERT_EQ(checked.report(), "");
  ASSERT_EQ(checked.registry.rewrites.size(), 2u);
  OutputSet out;
  emit_rewrites({checked.registry, "bp", "bp"}, out);
  const std::string& text = out.files().at("bp_rewrites.hpp");
  EXPECT_THAT(text, HasSubstr("\"conj(conj(x)) -> x\""));
  EXPECT_THAT(text, HasSubstr("RewriteWord::kExact"));
  EXPECT_THAT(text, HasSubstr("\"bp::cast\""));
}

TEST(Rewrites, ARegistryWithoutAnyHasNoTable) {
  OutputSet out;
  const Checked checked = check_file(read_text(test_path("data/base.yaml")), true);
  emit_rewrites({checked.registry, "bp", "bp"}, out);
  EXPECT_TRUE(out.files().empty());
}

TEST(Rewrites, AnOperatorIsACallOfItsOp) {
  const std::pair<const char*, const char*> forms[] = {
      {"{from: x + -0.0, to: x}", "{from: 'add(x, -0.0)', to: x}"},
      {"{from: 2 * --x, to: x * 2}", "{from: 'multiply(2, negative(negative(x)))', to: 'multiply(x, 2)'}"},
      {"{from: x / c, to: x * reciprocal(c)}", "{from: 'divide(x, c)', to: 'multiply(x, reciprocal(c))'}"},
  };
  for (const auto& [operators, calls] : forms) {
    const Checked a = check_rules(std::string("  - ") + operators + "\n"),
                  b = check_rules(std::string("  - ") + calls + "\n");
    ASSERT_EQ(a.report() + b.report(), "");
    const std::vector<PatternNode>&of = a.registry.rewrites[0].nodes, &like = b.registry.rewrites[0].nodes;
    ASSERT_EQ(of.size(), like.size()) << operators;
    for (size_t i = 0; i < of.size(); ++i) {
      EXPECT_EQ(of[i].kind, like[i].kind) << operators;
      EXPECT_EQ(of[i].op, like[i].op) << operators;
      EXPECT_EQ(of[i].inputs, like[i].inputs) << operators;
      EXPECT_EQ(of[i].number, like[i].number) << operators;
    }
  }
}

struct Mistake {
  const char *rule, *words;
};
class RewriteMistakes : public testing::TestWithParam<Mistake> {};

TEST_P(RewriteMistakes, AreReported) {
  const Checked checked = check_rules(std::string("  - ") + GetParam().rule + "\n");
  EXPECT_THAT(checked.report(), HasSubstr(GetParam().words));
}

INSTANTIATE_TEST_SUITE_P(
    All, RewriteMistakes,
    testing::Values(Mistake{"{from: conj(conj(x))}", "a rewrite needs 'to'"},
                    Mistake{"{from: x, to: x}", "begins from a call of an op"},
                    Mistake{"{from: conj(conj(x)), to: y}", "'y' does not stand in 'from'"},
                    Mistake{"{from: conjj(x), to: x}", "unknown op 'conjj'; did you mean 'conj'"},
                    Mistake{"{from: add(x), to: x}", "argument 'y' of 'add' is missing"},
                    Mistake{"{from: 'add(x, y, z)', to: x}", "has no such argument"},
                    Mistake{"{from: not x, to: x}", "calls and operators of ops, names, numbers and dtypes alone"},
                    Mistake{"{from: x & y, to: x}", "'&' is not an operator"},
                    Mistake{"{from: x + y, to: x * z}", "'z' does not stand in 'from'"},
                    Mistake{"{from: 'add(x, 0)', to: x, when: integral(x)}", "a condition is one of"},
                    Mistake{"{from: 'add(x, 0)', to: x, when: 'integer(x, x)'}", "takes 1 names"},
                    Mistake{"{from: conj(x), to: conj(conj(x))}", "leads to a name of its 'from', or to one call"},
                    Mistake{"{from: conj(x), to: conj(x)}", "leads back to 'bp::conj'"},
                    Mistake{"{from: conj(x), to: 'cast(x, composed(x))'}", "takes 2 names"},
                    Mistake{"{form: conj(x), to: x}", "unknown key 'form'"}));

TEST(Rewrites, OfAnotherRegistryAreRefused) {
  const Checked checked = check_file("namespace: t\nrewrites:\n  - {from: conj(conj(x)), to: x}\n");
  EXPECT_THAT(checked.report(), HasSubstr("rewrites are read from backplane's own registry alone"));
}

}  // namespace
}  // namespace backplane::codegen::rewrites_test

// What follows from an entry: derivatives from `partial`, `linear` and `put`, flags, batch rules, and shared nodes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "backplane/abi/vocabulary.h"
#include "codegen_fixture.hpp"

namespace backplane::codegen::derived_rules_test {
namespace {

std::string entry(const std::string& signature, const std::string& lines, const std::string& more = {}) {
  return "  - op: " + signature + "\n    doc: F.\n    samples: [{x: [2]" + more + "}]\n" + lines;
}

// The formula of `rule` for the op's argument `target`, as an expression.
std::string formula(const Checked& checked, uint16_t rule, uint32_t target = 0, size_t root = 0) {
  const CompiledOp& op = checked.registry.ops.front();
  const CompiledFormula* found = rule == BP_RULE_VJP || rule == BP_RULE_JVP ? op.find(rule, target) : op.find(rule);
  if (!found || root >= found->roots.size()) return "";
  return render(op, found->roots[root]);
}

class Derived : public testing::Test {
 protected:
  const Checked& check(const std::string& text) {
    checked_ = std::make_unique<Checked>(check_file(in_file(text)));
    EXPECT_EQ("", checked_->report());
    return *checked_;
  }
  std::unique_ptr<Checked> checked_;
};

const std::string kUnary = "    primitive: unary\n    dtypes: floating\n    shape: broadcast(x)\n";

TEST_F(Derived, PartialGivesVjpAndJvp) {
  const Checked& c = check(entry("f(Tensor x) -> Tensor", kUnary + "    partial: {x: multiply(out, 2)}\n"));
  EXPECT_EQ("FIT x (bp::multiply(g, bp::multiply(out, 2)))", formula(c, BP_RULE_VJP));
  EXPECT_EQ("bp::multiply(t.x, bp::multiply(out, 2))", formula(c, BP_RULE_JVP));
}

TEST_F(Derived, PartialOfOneMultipliesNothing) {
  const Checked& c = check(entry("f(Tensor x) -> Tensor", kUnary + "    partial: {x: 1}\n"));
  EXPECT_EQ("FIT x (g)", formula(c, BP_RULE_VJP));
  EXPECT_EQ("t.x", formula(c, BP_RULE_JVP));
}

TEST_F(Derived, PartialIsConjugatedOnlyWhereComplexIsAccepted) {
  const Checked& c =
      check(entry("f(Tensor x) -> Tensor",
                  "    primitive: unary\n    dtypes: inexact\n    shape: broadcast(x)\n    partial: {x: out}\n"));
  EXPECT_EQ("FIT x (bp::multiply(g, (bp::conj(out) if is_complex(out.dtype) else out)))", formula(c, BP_RULE_VJP));
  EXPECT_EQ("bp::multiply(t.x, out)", formula(c, BP_RULE_JVP));
}

TEST_F(Derived, LinearCallsTheOpOnTheTangents) {
  const Checked& c = check(entry("f(Tensor x, Tensor index, Scalar a=1) -> Tensor",
                                 "    primitive: p\n    dtypes: {accept: floating, index: integer}\n    shape: "
                                 "same(x)\n    vjp: {x: g}\n    jvp: linear\n    batch: loop\n",
                                 ", index: [2]"));
  EXPECT_EQ("t::f(t.x, index, a)", formula(c, BP_RULE_JVP));
  EXPECT_TRUE(c.registry.ops[0].flags & BP_OP_LINEAR);
}

TEST_F(Derived, AViewDifferentiatesThroughPut) {
  const Checked& c = check(entry("f(Tensor x, Axes axes) -> Tensor",
                                 "    alias: x\n    put: add(multiply(x, x.ndim), f(v, axes))\n    dtypes: floating\n"
                                 "    shape: view.permute(x, axes)\n",
                                 ", axes: [0]"));
  EXPECT_EQ("FIT x (bp::add(bp::multiply(bp::full(x.shape, 0, x.dtype, x.device), x.ndim), t::f(g, axes)))",
            formula(c, BP_RULE_VJP));
  EXPECT_EQ("t::f(t.x, axes)", formula(c, BP_RULE_JVP));
  EXPECT_EQ("bp::add(bp::multiply(x, x.ndim), t::f(g, axes))", formula(c, BP_RULE_PUT));
}

TEST_F(Derived, OneFormulaMayServeAGroup) {
  const Checked& c =
      check(entry("f(Tensor x, Tensor y) -> Tensor",
                  "    primitive: p\n    dtypes: floating\n    shape: broadcast(x, y)\n"
                  "    vjp: {\"(x, y)\": \"let a = multiply(g, x); [a, multiply(a, y)]\"}\n    jvp: linear\n",
                  ", y: [2]"));
  EXPECT_EQ("FIT x (bp::multiply(g, x))", formula(c, BP_RULE_VJP, 0, 0));
  EXPECT_EQ("FIT y (bp::multiply(bp::multiply(g, x), y))", formula(c, BP_RULE_VJP, 1, 1));
}

TEST_F(Derived, SharedValuesAreOneNode) {
  const Checked& c =
      check(entry("f(Tensor x) -> Tensor",
                  kUnary + "    vjp: {x: g}\n    jvp: linear\n    decompose: add(multiply(x, x), multiply(x, x))\n"));
  const auto nodes = c.registry.ops[0].program.nodes();
  const auto squares = std::count_if(nodes.begin(), nodes.end(), [&](const Node& n) {
    return n.kind == BP_NODE_CALL && n.inputs.size() == 2 && nodes[n.inputs[0]].kind == BP_NODE_ARG;
  });
  EXPECT_EQ(1, squares);
}

TEST_F(Derived, NodesStandAfterWhatTheyRead) {
  const Checked base = check_file(read_text(test_path("data/base.yaml")), true);
  EXPECT_EQ("", base.report());
  for (const CompiledOp& op : base.registry.ops)
    for (size_t i = 0; i < op.program.nodes().size(); ++i)
      for (const uint32_t input : op.program.nodes()[i].inputs) EXPECT_LT(input, i) << op.entry->full_name;
}

TEST_F(Derived, FormulasThatRoundMoreThanOnceAreWideOnHalfFloats) {
  const auto wide = [&](const std::string& dtypes, const std::string& formula, const std::string& more = {}) {
    const Checked& c =
        check(entry("f(Tensor x) -> Tensor", "    kind: composite\n    dtypes: " + dtypes +
                                                 "\n    shape: same(x)\n    decompose: " + formula + "\n" + more));
    return (c.registry.ops.front().find(BP_RULE_DECOMPOSE)->flags & BP_FORMULA_WIDE) != 0;
  };
  EXPECT_FALSE(wide("floating", "add(x, x)"));
  EXPECT_TRUE(wide("floating", "add(add(x, x), x)"));
  EXPECT_FALSE(wide("floating", "add(add(x, x), x)", "    compare: exact\n"));
  EXPECT_FALSE(wide("[float32, float64]", "add(add(x, x), x)"));
  EXPECT_FALSE(wide("{accept: floating, compute: own}", "add(add(x, x), x)"));
  EXPECT_TRUE(wide("{accept: floating, compute: accumulate}", "add(x, x)"));
  EXPECT_TRUE(wide("floating", "'add(x, x) if x.ndim > 0 else add(x, add(x, x))'"));
  EXPECT_TRUE(wide("floating", "'fold(s = x, y in [x, x]: add(s, y))'"));
}

TEST_F(Derived, PresentNarrowsWhatMayBeAbsent) {
  const Checked& c = check(
      entry("f(Tensor x, Tensor? y) -> Tensor",
            "    dtypes: bool\n    shape: same(x)\n    decompose: 'add(x, y) if present(y) and x.ndim > 0 else x'\n"));
  EXPECT_EQ("(bp::add(x, y) if and(present(y), gt(x.ndim, 0)) else x)", formula(c, BP_RULE_DECOMPOSE));
}

TEST_F(Derived, MapAndFoldHaveSlotsOfTheirOwn) {
  const Checked& c = check(entry("f(Tensor x) -> Tensor",
                                 "    dtypes: bool\n    shape: 'map(n in x.shape: fold(s = n, m in x.shape: s + m))'\n "
                                 "   primitive: p\n    batch: loop\n"));
  EXPECT_EQ("map(#0 in x.shape: fold(#1 = #0, #2 in x.shape: add(#1, #2)))", formula(c, BP_RULE_SHAPE));
}

TEST_F(Derived, SkippedKeywordsTakeTheirDefaults) {
  const Checked& c = check(
      entry("f(Tensor x, Size n=2, Size m=3) -> Tensor", kUnary + "    vjp: {x: g}\n    jvp: {x: 'f(t, m=5)'}\n"));
  EXPECT_EQ("t::f(t.x, 2, 5)", formula(c, BP_RULE_JVP));
}

TEST(DerivedCycle, AnOpThatDecomposesIntoItselfIsACycle) {
  const Checked checked = check_file(
      in_file(entry("f(Tensor x) -> Tensor", "    dtypes: bool\n    shape: same(x)\n    decompose: f(x)\n")));
  EXPECT_THAT(checked.report(), testing::HasSubstr("t::f -> t::f"));
}

TEST_F(Derived, FlagsFollowTheShapeClass) {
  EXPECT_TRUE(
      check(entry("f(Tensor x) -> Tensor", kUnary + "    vjp: {x: g}\n    jvp: linear\n")).registry.ops[0].flags &
      BP_OP_ELEMENTWISE);
  const Checked& sum = check(entry("f(Tensor x, Axes? axes) -> Tensor",
                                   "    primitive: reduce\n    dtypes: bool\n    shape: reduce(x, axes, none)\n"));
  EXPECT_TRUE(sum.registry.ops[0].flags & BP_OP_REDUCTION);
  EXPECT_FALSE(sum.registry.ops[0].flags & BP_OP_ELEMENTWISE);
  const Checked& made = check(
      "  - op: f(Shape s) -> Tensor\n    doc: F.\n    primitive: fill\n    dtypes: bool\n    shape: arg(s)\n    "
      "samples: [{s: [2]}]\n");
  EXPECT_TRUE(made.registry.ops[0].flags & BP_OP_CREATION);
  const Checked& dynamic =
      check(entry("f(Tensor x) -> Tensor", "    host: true\n    dtypes: bool\n    shape: dynamic\n"));
  EXPECT_TRUE(dynamic.registry.ops[0].flags & BP_OP_DYNAMIC);
  EXPECT_TRUE(dynamic.registry.ops[0].find(BP_RULE_BATCH)->flags & BP_FORMULA_REFUSED);
}

TEST_F(Derived, IntegerResultsNeedNoDerivative) {
  const Checked& c =
      check(entry("f(Tensor x) -> Tensor",
                  "    primitive: p\n    dtypes: {accept: floating, out: int64}\n    shape: broadcast(x)\n"));
  EXPECT_EQ(nullptr, c.registry.ops[0].find(BP_RULE_VJP));
}

}  // namespace
}  // namespace backplane::codegen::derived_rules_test

// What an entry states once: `let` for all rules, `jvp: like vjp`, tables of coefficients, `polynomial`. The law of
// each is that the record equals the record of the entry in which everything is written out.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "codegen_fixture.hpp"

namespace backplane::codegen::sharing_test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

std::string entry(const std::string& lines) {
  return "  - op: f(Tensor x, Tensor y, Scalar a=1) -> Tensor\n    doc: F.\n    dtypes: numeric\n    samples: [{x: "
         "[2], "
         "y: [2]}]\n" +
         lines;
}

// The nodes, constants and roots of the first op: all that the core computes by.
std::string program(const std::string& text) {
  const Checked checked = check_file(text);
  if (!checked.report().empty()) return checked.report();
  const CompiledOp& op = checked.registry.ops[0];
  std::string all;
  for (const Node& node : op.program.nodes()) {
    all += std::to_string(node.kind) + " " + std::to_string(node.imm) + ":";
    for (const uint32_t input : node.inputs) all += " " + std::to_string(input);
    all += "\n";
  }
  for (const CompiledFormula& formula : op.formulas) {
    all += "rule " + std::to_string(formula.rule) + " " + std::to_string(formula.flags);
    for (const uint32_t target : formula.targets) all += " of " + std::to_string(target);
    for (const uint32_t root : formula.roots) all += " = " + render(op, root);
    all += "\n";
  }
  return all;
}

struct Pair {
  const char* name;
  std::string shared, written_out;
};
void PrintTo(const Pair& pair, std::ostream* out) { *out << pair.name; }

class Sharing : public testing::TestWithParam<Pair> {};

TEST_P(Sharing, IsWhatIsWrittenOut) {
  const std::string expected = program(GetParam().written_out);
  ASSERT_THAT(expected, HasSubstr("rule 3")) << "the entry written out is sound";
  EXPECT_EQ(expected, program(GetParam().shared));
}

const char* kSum = "    shape: broadcast(x, y)\n    vjp: {x: g, y: g}\n    jvp: linear\n";

INSTANTIATE_TEST_SUITE_P(
    All, Sharing,
    testing::Values(
        Pair{
            "let",
            in_file(
                entry("    let: {s: x * y, u: s + a}\n    shape: broadcast(x, y)\n    vjp: {x: g * u, y: g * s}\n    "
                      "jvp: {x: t * u, y: t * s}\n    decompose: u * s\n")),
            in_file(entry("    shape: broadcast(x, y)\n    vjp: {x: 'let s = x * y; u = s + a; g * u', y: 'let s = x * "
                          "y; g * s'}\n    jvp: {x: 'let s = x * y; u = s + a; t * u', y: 'let s = x * y; t * s'}\n    "
                          "decompose: let s = x * y; u = s + a; u * s\n"))},
        Pair{"let_in_shapes_and_lists",
             in_file(
                 entry("    let: {n: 'x.shape[0:x.ndim - 1]', h: g * y}\n    shape: n + [2]\n    batch: loop\n    "
                       "vjp: {\"(x, y)\": '[h, h]'}\n    jvp: {\"(x, y)\": ['broadcast(t.x, n) * a']}\n    decompose: "
                       "broadcast(x * y, n) * a\n") +
                 "  - op: broadcast(Tensor x, Shape shape) -> Tensor\n    doc: B.\n    primitive: b\n    dtypes: "
                 "any\n    vjp: zero\n    jvp: zero\n    batch: loop\n    shape: arg(shape)\n    samples: [{x: [2], "
                 "shape: [2]}]\n"),
             in_file(
                 entry("    shape: 'let n = x.shape[0:x.ndim - 1]; n + [2]'\n    batch: loop\n    vjp: {\"(x, y)\": "
                       "'let h = g * y; [h, h]'}\n    jvp: {\"(x, y)\": ['let n = x.shape[0:x.ndim - 1]; "
                       "broadcast(t.x, n) * a']}\n    decompose: 'let n = x.shape[0:x.ndim - 1]; broadcast(x * y, n) "
                       "* a'\n") +
                 "  - op: broadcast(Tensor x, Shape shape) -> Tensor\n    doc: B.\n    primitive: b\n    dtypes: "
                 "any\n    vjp: zero\n    jvp: zero\n    batch: loop\n    shape: arg(shape)\n    samples: [{x: [2], "
                 "shape: [2]}]\n")},
        // what a formula binds itself is its own
        Pair{"let_hidden",
             in_file(
                 entry("    shape: broadcast(x, y)\n    let: {s: x * 2, i: x * 3}\n    vjp: {x: s * g, y: i * g}\n    "
                       "jvp: linear\n    decompose: |\n      let s = y * 5; fold(r = s, i in [1, 2]: r + i) * fold(s = "
                       "x, k in [3]: s * k) * a\n")),
             in_file(
                 entry("    shape: broadcast(x, y)\n    vjp: {x: x * 2 * g, y: x * 3 * g}\n    jvp: linear\n    "
                       "decompose: |\n      let s = y * 5; fold(r = s, i in [1, 2]: r + i) * fold(s = x, k in [3]: s * "
                       "k) * a\n"))},
        Pair{"let_list_and_alias",
             in_file(
                 entry(std::string(kSum) + "    let: [&both {s: x * y}, {u: s * s}]\n    decompose: u * a\n") +
                 "  - op: h(Tensor x, Tensor y) -> Tensor\n    doc: H.\n    kind: composite\n    dtypes: any\n    "
                 "shape: same(x)\n    samples: [{x: [2], y: [2]}]\n    let: [*both, {w: s + s}]\n    decompose: w\n"),
             in_file(entry(std::string(kSum) + "    decompose: let s = x * y; u = s * s; u * a\n"))},
        Pair{"like_vjp",
             in_file(entry("    shape: broadcast(x, y)\n    vjp: {x: g * y * a, y: x * g.ndim * g}\n    "
                           "jvp: like vjp\n    decompose: x * y * a\n")),
             in_file(entry("    shape: broadcast(x, y)\n    vjp: {x: g * y * a, y: x * g.ndim * g}\n    jvp: {x: t * "
                           "y * a, y: x * t.ndim * t}\n    decompose: x * y * a\n"))},
        Pair{"like_vjp_of_one",
             in_file(entry("    shape: broadcast(x, y)\n    vjp: {x: g * y, y: zero}\n    jvp: {x: like "
                           "vjp, y: {none: no}}\n    decompose: x * y * a\n")),
             in_file(entry("    shape: broadcast(x, y)\n    vjp: {x: g * y, y: zero}\n    jvp: {x: t * y, y: {none: "
                           "no}}\n    decompose: x * y * a\n"))},
        Pair{"table",
             "tables: {c: [1, -2.5, 1e-3]}\n" +
                 in_file(entry(std::string(kSum) + "    decompose: 'fold(s = x, k in c: s * k) * y * a'\n")),
             in_file(entry(std::string(kSum) + "    decompose: 'fold(s = x, k in [1, -2.5, 1e-3]: s * k) * y * a'\n"))},
        Pair{"polynomial",
             "tables: {c: [1, -2.5, 1e-3]}\n" +
                 in_file(entry(std::string(kSum) + "    decompose: polynomial(x * y, c) * a\n")),
             in_file(entry(std::string(kSum) +
                           "    decompose: 'let z = x * y; fold(s = z * 0, k in [1, -2.5, 1e-3]: s * z "
                           "+ k) * a'\n"))},
        Pair{"polynomial_of_a_number",
             in_file(entry(std::string(kSum) + "    decompose: 'x * y * polynomial(a, [3, 0, 1])'\n")),
             in_file(entry(std::string(kSum) +
                           "    decompose: 'x * y * fold(s = a * 0, k in [3, 0, 1]: s * a + k)'\n"))},
        Pair{"define",
             "define: {twice(p): p * 2, \"mixed(x, p)\": \"twice(x) + p * c[0] if present(p) else x\"}\ntables: {c: "
             "[3]}\n" +
                 in_file(entry(std::string(kSum) + "    let: {y2: twice(y)}\n    decompose: mixed(x, y2) * a\n")),
             in_file(entry(std::string(kSum) +
                           "    decompose: 'let y2 = y * 2; (x * 2 + y2 * [3][0] if present(y2) else x) "
                           "* a'\n"))},
        // an argument that is not a name is computed first
        Pair{"define_of_a_call",
             "define: {\"chosen(n, x)\": \"x * 2 if n > 1 else x\"}\n" +
                 in_file(entry(std::string(kSum) + "    decompose: chosen(a, conj(x * y))\n")),
             in_file(entry(std::string(kSum) + "    decompose: let z = conj(x * y); z * 2 if a > 1 else z\n"))},
        Pair{"define_of_attributes",
             "define: {\"rows(x, on)\": \"x.shape[0] if on else 1\"}\n" +
                 in_file(
                     entry("    shape: broadcast(x, y)\n    vjp: zero\n    jvp: zero\n    batch: f(x, y, rows(x, b.x) "
                           "+ rows(y, b.y))\n    decompose: x * y * a\n")),
             in_file(
                 entry("    shape: broadcast(x, y)\n    vjp: zero\n    jvp: zero\n    batch: 'f(x, y, (x.shape[0] if "
                       "b.x else 1) + (y.shape[0] if b.y else 1))'\n    decompose: x * y * a\n"))},
        Pair{
            "define_of_what_may_be_absent",
            "define: {\"plus(x, p)\": \"x + p if present(p) else x\", \"outer(p, x)\": plus(x, p)}\n" +
                in_file(
                    "  - op: f(Tensor x, Tensor? y) -> Tensor\n    doc: F.\n    dtypes: numeric\n    shape: same(x)\n "
                    "   samples: [{x: [2], y: [2]}]\n    kind: composite\n    decompose: let p = x * x; outer(y, p)\n"),
            in_file(
                "  - op: f(Tensor x, Tensor? y) -> Tensor\n    doc: F.\n    dtypes: numeric\n    shape: same(x)\n    "
                "samples: [{x: [2], y: [2]}]\n    kind: composite\n    decompose: let p = x * x; p + y if present(y) "
                "else p\n")},
        Pair{"define_of_a_shape",
             "define: {rows(x): \"[x.shape[0]]\"}\n" +
                 in_file(
                     entry("    shape: rows(x)\n    batch: loop\n    vjp: zero\n    jvp: zero\n    decompose: x * y * "
                           "a\n")),
             in_file(
                 entry("    shape: '[x.shape[0]]'\n    batch: loop\n    vjp: zero\n    jvp: zero\n    decompose: x * "
                       "y * a\n"))},
        Pair{"text_in_pieces",
             in_file(entry("    shape: \"require(x.shape, x.ndim > 0, 'a vector ' 'or '\\n      'more')\"\n    batch: "
                           "loop\n    vjp: zero\n    jvp: zero\n    decompose: x * y * a\n")),
             in_file(entry("    shape: \"require(x.shape, x.ndim > 0, 'a vector or more')\"\n    batch: loop\n    vjp: "
                           "zero\n    jvp: zero\n    decompose: x * y * a\n"))}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(SharingText, IsShownWhole) {
  const Checked checked =
      check_file(in_file(entry("    shape: broadcast(x, y)\n    let:\n      s: x * y\n      unread: x + y\n      u: "
                               "|\n        s +\n        a\n    "
                               "vjp: {x: g * u, y: g}\n    jvp: like vjp\n    decompose: unread * a\n")));
  ASSERT_EQ("", checked.report());
  EXPECT_EQ("let s = x * y; let u = s +\na; g * u", checked.registry.ops[0].find(BP_RULE_VJP, 0)->text);
  EXPECT_EQ("let s = x * y; let u = s +\na; t * u", checked.registry.ops[0].find(BP_RULE_JVP, 0)->text);
}

TEST(SharingText, NamesItsDefinitions) {
  const Checked checked = check_file("define: {four(q): twice(twice(q)), twice(p): p * 2}\n" +
                                     in_file(entry(std::string(kSum) + "    decompose: four(x) * y * a\n")));
  ASSERT_EQ("", checked.report());
  EXPECT_EQ("four(x) * y * a\nwhere four(q) = twice(twice(q))\nwhere twice(p) = p * 2",
            checked.registry.ops[0].find(BP_RULE_DECOMPOSE)->text);
}

TEST(SharingText, ThatDoublesAtEachStepEnds) {
  std::string define = "define:\n  d0(p): p * 2\n";
  for (int i = 1; i < 15; ++i) {
    const std::string before = "d" + std::to_string(i - 1);
    define += "  d" + std::to_string(i) + "(p): " + before + "(" + before + "(p)) + " + before + "(p)\n";
  }
  EXPECT_THAT(check_file(define + in_file(entry(std::string(kSum) + "    decompose: d14(x) * y * a\n"))).report(),
              HasSubstr("expands definitions more than 1000 times"));
}

TEST(SharingText, ThatGoesDeepEnds) {
  std::string define = "define:\n  d0(p): p * 2\n";
  for (int i = 1; i < 100; ++i) define += "  d" + std::to_string(i) + "(p): d" + std::to_string(i - 1) + "(p)\n";
  EXPECT_THAT(check_file(define + in_file(entry(std::string(kSum) + "    decompose: d99(x) * y * a\n"))).report(),
              HasSubstr("16 deep"));
}

struct Mistake {
  const char* name;
  std::string text;
  const char* report;
};
void PrintTo(const Mistake& mistake, std::ostream* out) { *out << mistake.name; }

class SharingMistakes : public testing::TestWithParam<Mistake> {};

TEST_P(SharingMistakes, AreReportedAtTheirPlace) {
  const std::string report = program(GetParam().text);
  EXPECT_THAT(report, StartsWith("t.yaml:" + std::string(GetParam().report)));
  EXPECT_EQ(report.find('\n'), report.size() - 1) << report;
}

std::string summed(const std::string& lines) { return in_file(entry(kSum + lines)); }

INSTANTIATE_TEST_SUITE_P(
    All, SharingMistakes,
    testing::Values(
        Mistake{"let_form", summed("    decompose: x * y * a\n    let: s\n"), "11:10: error: 'let' must be a map"},
        Mistake{"let_unused", summed("    decompose: x * y * a\n    let: {s: x * y}\n"),
                "11:11: error: 's' is used by no rule; remove the let"},
        Mistake{"let_unused_but_hidden", summed("    decompose: let s = x * y; s * a\n    let: {s: x * y}\n"),
                "11:11: error: 's' is used by no rule"},
        Mistake{"let_argument", summed("    decompose: x * y * a\n    let: {y: x}\n"),
                "11:11: error: 'y' is an argument of 'f'"},
        Mistake{"let_reserved", summed("    decompose: x * y * a\n    let: {g: x}\n"),
                "11:11: error: 'g' has a meaning of its own"},
        Mistake{"let_batched", summed("    decompose: x * y * a\n    let: {b: x}\n"),
                "11:11: error: 'b' has a meaning of its own"},
        Mistake{"let_dtype", summed("    decompose: x * y * a\n    let: {int32: x}\n"),
                "11:11: error: 'int32' has a meaning of its own"},
        Mistake{"let_name", summed("    decompose: x * y * a\n    let: {s-t: x}\n"),
                "11:11: error: let 's-t' is not a name"},
        Mistake{"let_twice", summed("    decompose: s * y * a\n    let: [{s: x}, {s: y}]\n"),
                "11:20: error: let 's' stands twice"},
        Mistake{"let_later", summed("    decompose: u * y * a\n    let: {u: s * x, s: y}\n"),
                "11:14: error: 's' is bound further on; put its let before what reads it"},
        Mistake{"let_formula", summed("    decompose: u * y * a\n    let: {u: x +}\n"),
                "11:17: error: found the end; expected a value"},
        Mistake{"let_in_the_wrong_rule", summed("    decompose: u * y * a\n    let: {u: out * x}\n"),
                "11:14: error: 'out' has no meaning in 'decompose'"},
        Mistake{"let_type", summed("    decompose: u * y * a\n    let:\n      u: x * x.shape\n"),
                "12:16: error: 'y' of 'multiply' is a Tensor, but this is a list of ints"},
        Mistake{
            "like_without_vjp",
            in_file(entry("    shape: broadcast(x, y)\n    jvp: like vjp\n    decompose: x * y * a\n    partial: {x: "
                          "y, y: x}\n")),
            "8:10: error: 'like vjp' finds no rule in 'vjp'"},
        Mistake{"like_group",
                in_file(entry("    shape: broadcast(x, y)\n    jvp: like vjp\n    decompose: x * y * a\n    "
                              "vjp: {\"(x, y)\": '[g, g]'}\n")),
                "8:10: error: 'like vjp' takes the formula of one argument"},
        Mistake{"like_in_vjp",
                in_file(entry("    shape: broadcast(x, y)\n    vjp: like vjp\n    decompose: x * y * a\n    "
                              "jvp: linear\n")),
                "8:10: error: 'vjp' must be zero, decompose, {none: REASON} or a map"},
        Mistake{
            "like_results",
            in_file("  - op: f(Tensor x) -> (Tensor p, Tensor q)\n    doc: F.\n    dtypes: numeric\n    samples: [{x: "
                    "[2]}]\n    shape: broadcast(x)\n    vjp: {x: g.p}\n    jvp: like vjp\n    host: true\n    batch: "
                    "loop\n"),
            "9:10: error: 'like vjp' is for ops with one result"},
        Mistake{"table_form", "tables: {c: 3}\n" + summed("    decompose: x * y * a\n"),
                "1:13: error: table 'c' must be a list of numbers"},
        Mistake{"table_element", "tables: {c: [1, x]}\n" + summed("    decompose: x * y * polynomial(a, c)\n"),
                "1:17: error: table 'c' holds something that is not a number"},
        Mistake{"table_unused", "tables: {c: [1]}\n" + summed("    decompose: x * y * a\n"),
                "1:10: error: table 'c' is never used"},
        Mistake{"table_reserved", "tables: {out: [1]}\n" + summed("    decompose: x * y * a\n"),
                "1:10: error: 'out' has a meaning of its own"},
        Mistake{"define_form", "define: [x]\n" + summed("    decompose: x * y * a\n"),
                "1:9: error: 'define' must be a map"},
        Mistake{"define_head", "define: {twice: 3}\n" + summed("    decompose: x * y * a\n"),
                "1:15: error: found the end; expected '(' before the parameters"},
        Mistake{"define_param", "define: {twice(out): out}\n" + summed("    decompose: x * y * a\n"),
                "1:16: error: 'out' has a meaning of its own"},
        Mistake{"define_param_twice", "define: {\"twice(p, p)\": p}\n" + summed("    decompose: x * y * a\n"),
                "1:20: error: parameter 'p' stands twice"},
        Mistake{"define_twice", "define: {d(p): p, d(q): q}\n" + summed("    decompose: d(x) * y * a\n"),
                "1:19: error: 'd' is defined twice, first at t.yaml:1"},
        Mistake{"define_unused", "define: {d(p): p}\n" + summed("    decompose: x * y * a\n"),
                "1:10: error: definition 'd' is never used"},
        Mistake{"define_unused_param", "define: {\"d(p, q)\": p}\n" + summed("    decompose: d(x, y) * y * a\n"),
                "1:11: error: parameter 'q' is never used"},
        Mistake{"define_op", "define: {add(p): p}\n" + summed("    decompose: add(x) * y * a\n"),
                "1:10: error: 'add' is an op already"},
        Mistake{"define_builtin", "define: {len(p): p}\n" + summed("    decompose: len(x) * y * a\n"),
                "1:10: error: 'len' is a builtin already"},
        Mistake{"define_itself", "define: {d(p): d(p)}\n" + summed("    decompose: d(x) * y * a\n"),
                "1:16: error: the definition of 'd' leads back to itself"},
        Mistake{"define_cycle", "define: {d(p): e(p), e(p): d(p)}\n" + summed("    decompose: d(x) * y * a\n"),
                "1:28: error: the definition of 'd' leads back to itself"},
        Mistake{"define_sees_no_argument", "define: {d(p): p * a}\n" + summed("    decompose: d(x) * y * a\n"),
                "1:20: error: unknown name 'a'; a definition knows its parameters alone, p"},
        Mistake{"define_sees_no_let", "define: {d(p): p * s}\n" + summed("    decompose: let s = x * y; d(s) * a\n"),
                "1:20: error: unknown name 's'"},
        Mistake{"define_count", "define: {\"d(p, q)\": p * q}\n" + summed("    decompose: d(x) * y * a\n"),
                "11:16: error: 'd' takes 2 values in order; it is defined as d(p, q)"},
        Mistake{"polynomial_arity", summed("    decompose: x * y * polynomial(a)\n"),
                "10:37: error: 'polynomial' takes a value and a list of coefficients"},
        Mistake{"polynomial_list", summed("    decompose: x * y * polynomial(a, 3)\n"),
                "10:38: error: an int is not a list"}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace backplane::codegen::sharing_test

// One case per diagnostic: a file with one mistake gives one report, at its place, that says what would be right.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "codegen_fixture.hpp"

namespace backplane::codegen::diagnostics_test {
namespace {

struct Mistake {
  const char* name;
  std::string entry;  // line 3 is its first
  const char* place;  // "line:column"
  const char* words;
};

void PrintTo(const Mistake& mistake, std::ostream* out) { *out << mistake.name; }

// A sound elementwise entry with `lines` in place of its decomposition.
std::string unary(const std::string& lines) {
  return "  - op: f(Tensor x, Scalar a=1) -> Tensor\n    doc: F.\n    primitive: unary\n    dtypes: floating\n    "
         "shape: broadcast(x)\n"
         "    samples: [{x: [2]}]\n" +
         lines;
}
const std::string kDerivatives = "    vjp: {x: g}\n    jvp: linear\n";

const Mistake kMistakes[] = {
    // ---- form ----
    {"unknown_key", unary(kDerivatives + "    decompse: add(x, a)\n"), "11:5",
     "unknown key 'decompse'; did you mean 'decompose'?"},
    {"duplicate_key", unary(kDerivatives + "    doc: again\n"), "11:5",
     "key 'doc' stands twice; the first is on line 4"},
    {"no_op", "  - doc: F.\n", "3:5", "the entry has no 'op'"},
    {"entry_no_map", "  - just text\n", "3:5", "an entry must be a map"},
    {"doc_missing",
     "  - op: f(Tensor x) -> Tensor\n    primitive: unary\n    dtypes: bool\n    shape: same(x)\n    samples: [{x: "
     "[2]}]\n",
     "3:9", "has no 'doc'"},
    {"samples_missing",
     "  - op: f(Tensor x) -> Tensor\n    doc: F.\n    primitive: unary\n    dtypes: bool\n    shape: same(x)\n", "3:9",
     "has no samples"},
    {"dtypes_missing",
     "  - op: f(Size n) -> Tensor\n    doc: F.\n    primitive: unary\n    shape: '[n]'\n    samples: [{n: 2}]\n", "3:9",
     "has no 'dtypes'"},
    {"shape_missing",
     "  - op: f(Tensor x) -> Tensor\n    doc: F.\n    primitive: unary\n    dtypes: bool\n    samples: [{x: [2]}]\n",
     "3:9", "has no 'shape'"},
    {"bool_expected", unary(kDerivatives + "    host: yes please\n"), "11:11", "'host' must be true or false"},
    {"kind", unary(kDerivatives + "    kind: special\n"), "11:11",
     "unknown kind 'special'; the only one is 'composite'"},
    {"variant", unary(kDerivatives + "    variants: [inplac]\n"), "11:16", "unknown variant 'inplac'"},
    {"zeros", unary(kDerivatives + "    zeros: keep\n"), "11:12", "the only value is 'pass'"},
    {"tolerance", unary(kDerivatives + "    tolerance: -1\n"), "11:16", "write a number above 0"},
    {"compare", unary(kDerivatives + "    compare: exactly\n"), "11:14",
     "unknown comparison 'exactly'; did you mean 'exact'?"},
    {"law", unary(kDerivatives + "    except: {gradients: no}\n"), "11:14",
     "unknown law 'gradients'; did you mean 'gradient'?"},
    {"error_name", unary(kDerivatives + "    errors: {ShapError: no}\n"), "11:14", "did you mean 'ShapeError'?"},
    {"primitive_family",
     unary(kDerivatives) + "  - op: h(Tensor x) -> Tensor\n    doc: H.\n    primitive: two words\n    dtypes: bool\n   "
                           " shape: broadcast(x)\n    samples: [{x: [2]}]\n",
     "13:16", "names no family"},
    // ---- signature ----
    {"type", "  - op: f(Tensr x) -> Tensor\n", "3:11", "unknown type 'Tensr'; did you mean 'Tensor'?"},
    {"arrow", "  - op: f(Tensor x) Tensor\n", "3:21", "expected '->'"},
    {"argument_twice", "  - op: f(Tensor x, Tensor x) -> Tensor\n", "3:28", "argument 'x' stands twice"},
    {"change_name", "  - op: f(Tensor(mut) x)\n", "3:11", "ends in '_'; call it f_"},
    {"change_results", "  - op: f_(Tensor(mut) x) -> Tensor\n", "3:27", "remove '->' and what follows"},
    {"change_place", "  - op: f_(Tensor x, Tensor(mut) y)\n", "3:22", "stands first; move it to the front"},
    {"change_optional", "  - op: f_(Tensor(mut)? x)\n", "3:12", "only a Tensor can be changed"},
    {"change_number", "  - op: f_(Scalar(mut) x)\n", "3:12", "only a Tensor can be changed"},
    {"change_word", "  - op: f_(Tensor(out) x)\n", "3:19", "expected mut, as in Tensor(mut) x"},
    {"several_in_place",
     "  - op: f(Tensor x) -> (Tensor a, Tensor b)\n    doc: F.\n    dtypes: floating\n    shape: broadcast(x)\n    "
     "variants: [inplace]\n    decompose: '[x, x]'\n    vjp: decompose\n    jvp: decompose\n    samples: [{x: [2]}]\n",
     "3:9", "mark the arguments that it changes: f_(Tensor(mut) x, ...)"},
    {"reserved_name", "  - op: f(Tensor needs) -> Tensor\n", "3:18", "'needs' has a meaning of its own"},
    {"default_type", "  - op: f(Tensor x, Axis a=1.5) -> Tensor\n", "3:28", "does not fit its type Axis"},
    {"default_none", "  - op: f(Tensor x, Axis a=none) -> Tensor\n", "3:28", "cannot be none; write its type as Axis?"},
    {"default_order", "  - op: f(Size n=1, Tensor x) -> Tensor\n", "3:21", "follows one with a default"},
    {"result_type", "  - op: f(Tensor x) -> Scalar\n", "3:24", "a result is a Tensor or Tensor[]"},
    {"slash_first", "  - op: f(/, Tensor x) -> Tensor\n", "3:11", "'/' stands once, after an argument"},
    {"slash_after_star", "  - op: f(Tensor x, *, Size n=1, /) -> Tensor\n", "3:34",
     "'/' stands once, after an argument"},
    {"star_twice", "  - op: f(Tensor x, *, Size n=1, *) -> Tensor\n", "3:34", "'*' stands twice"},
    // ---- dtypes ----
    {"dtype_class",
     "  - op: f(Tensor x) -> Tensor\n    doc: F.\n    primitive: unary\n    dtypes: floatin\n    shape: same(x)\n    "
     "samples: [{x: [2]}]\n",
     "6:13", "unknown dtype class 'floatin'; did you mean 'floating'?"},
    {"dtypes_key",
     "  - op: f(Tensor x) -> Tensor\n    doc: F.\n    primitive: unary\n    dtypes: {acept: bool}\n    shape: "
     "same(x)\n    samples: [{x: [2]}]\n    vjp: zero\n    jvp: zero\n",
     "6:14", "did you mean 'accept'?"},
    {"result_dtype",
     "  - op: f(Tensor x) -> Tensor\n    doc: F.\n    primitive: unary\n    dtypes: {accept: bool, out: fast}\n    "
     "shape: same(x)\n    samples: [{x: [2]}]\n",
     "6:33", "'fast' gives no dtype"},
    {"absent_dtype",
     "  - op: f(Tensor x, Dtype? dtype=none) -> Tensor\n    doc: F.\n    primitive: unary\n    dtypes: {accept: bool, "
     "out: dtype}\n    shape: same(x)\n    samples: [{x: [2]}]\n",
     "6:33", "may be absent"},
    // ---- shapes ----
    {"shape_word",
     "  - op: f(Tensor x) -> Tensor\n    doc: F.\n    primitive: unary\n    dtypes: bool\n    shape: bradcast(x)\n    "
     "samples: [{x: [2]}]\n",
     "7:12", "unknown shape word 'bradcast'; did you mean 'broadcast'?"},
    {"shape_arity",
     "  - op: f(Tensor x) -> Tensor\n    doc: F.\n    primitive: unary\n    dtypes: bool\n    shape: matmul(x)\n    "
     "samples: [{x: [2]}]\n",
     "7:12", "takes 2 arguments, not 1"},
    {"shape_argument",
     "  - op: f(Tensor x, Size n) -> Tensor\n    doc: F.\n    primitive: unary\n    dtypes: bool\n    shape: "
     "broadcast(x, n)\n    samples: [{x: [2], n: 1}]\n",
     "7:25", "takes a Tensor argument"},
    {"shape_type",
     "  - op: f(Tensor x) -> Tensor\n    doc: F.\n    primitive: unary\n    dtypes: bool\n    shape: x.ndim\n    "
     "batch: loop\n    samples: [{x: [2]}]\n",
     "7:14", "it must be a list of ints"},
    {"shape_calls_op",
     "  - op: f(Tensor x) -> Tensor\n    doc: F.\n    primitive: unary\n    dtypes: bool\n    shape: 'let y = add(x, "
     "x); y.shape'\n    batch: loop\n    samples: [{x: [2]}]\n",
     "7:13", "the shape calls an op"},
    {"shape_asks_device",
     "  - op: f(Tensor x) -> Tensor\n    doc: F.\n    primitive: unary\n    dtypes: bool\n    shape: "
     "'x.shape if device_computes(x.dtype) else []'\n    batch: loop\n    samples: [{x: [2]}]\n",
     "7:13", "the shape asks for the device"},
    {"shape_count",
     "  - op: f(Tensor x) -> (Tensor a, Tensor b)\n    doc: F.\n    primitive: unary\n    dtypes: bool\n    shape: "
     "['same(x)', 'same(x)', 'same(x)']\n    samples: [{x: [2]}]\n",
     "7:12", "2 results but 3 shape rules"},
    {"view_shape",
     "  - op: f(Tensor x) -> Tensor\n    doc: F.\n    alias: x\n    put: {none: no}\n    dtypes: bool\n    shape: "
     "same(x)\n    samples: [{x: [2]}]\n",
     "3:9", "its shape must be one of the view.* words"},
    {"view_alias",
     "  - op: f(Tensor x) -> Tensor\n    doc: F.\n    primitive: unary\n    dtypes: bool\n    shape: view.real(x)\n    "
     "samples: [{x: [2]}]\n",
     "7:12", "makes a view of 'x'; write alias: x"},
    // ---- views, variants, randomness ----
    {"alias", unary(kDerivatives + "    alias: q\n"), "11:12", "is not a Tensor argument"},
    {"put_missing",
     "  - op: f(Tensor x) -> Tensor\n    doc: F.\n    alias: x\n    dtypes: bool\n    shape: view.real(x)\n    "
     "samples: [{x: [2]}]\n",
     "3:9", "has no 'put'"},
    {"put_without_piece",
     "  - op: f(Tensor x) -> Tensor\n    doc: F.\n    alias: x\n    put: add(x, x)\n    dtypes: bool\n    shape: "
     "view.real(x)\n    samples: [{x: [2]}]\n",
     "6:10", "never uses the piece 'v'"},
    {"put_elsewhere", unary(kDerivatives + "    put: add(x, v)\n"), "11:10", "'put' stands only on views"},
    {"inplace_first",
     "  - op: f(Size n) -> Tensor\n    doc: F.\n    primitive: fill\n    dtypes: bool\n    shape: '[n]'\n    variants: "
     "[inplace]\n    samples: [{n: 2}]\n",
     "3:9", "cannot have an in-place variant"},
    {"random_unsaid",
     "  - op: f(Shape s, Generator r) -> Tensor\n    doc: F.\n    primitive: bits\n    dtypes: bool\n    shape: "
     "arg(s)\n    samples: [{s: [2], r: {key: 1}}]\n",
     "3:9", "write random: true"},
    {"random_without", unary(kDerivatives + "    random: true\n"), "3:9", "takes no Generator"},
    {"composite_primitive",
     "  - op: f(Tensor x) -> Tensor\n    doc: F.\n    kind: composite\n    primitive: unary\n    dtypes: bool\n    "
     "shape: same(x)\n    decompose: add(x, x)\n    samples: [{x: [2]}]\n",
     "3:9", "both composite and primitive"},
    // ---- names and calls in formulas ----
    {"unknown_op", unary(kDerivatives + "    decompose: ad(x, a)\n"), "11:16", "unknown op 'ad'; did you mean 'add'?"},
    {"unknown_name", unary(kDerivatives + "    decompose: add(x, b)\n"), "11:23", "unknown name 'b'"},
    {"too_many", unary(kDerivatives + "    decompose: add(x, a, x)\n"), "11:26",
     "takes at most 2 positional arguments, not 3"},
    {"too_few", unary(kDerivatives + "    decompose: add(multiply(x), a)\n"), "11:20", "lacks its argument 'y'"},
    {"keyword", unary(kDerivatives + "    decompose: add(x, z=a)\n"), "11:23",
     "has no argument 'z'; did you mean 'x'?"},
    {"keyword_twice", unary(kDerivatives + "    decompose: add(x, a, x=x)\n"), "11:26", "'x' of 'add' is given twice"},
    {"wrong_type", unary(kDerivatives + "    decompose: add(x, multiply(x.shape, a))\n"), "11:34",
     "'x' of 'multiply' is a Tensor, but this is a list of ints"},
    {"scalar_tensor",
     "  - op: h(Tensor x, Scalar a) -> Tensor\n    doc: H.\n    primitive: unary\n    dtypes: bool\n    shape: "
     "same(x)\n    decompose: h(x, x)\n    samples: [{x: [2], a: 1}]\n",
     "8:21", "a Scalar is static"},
    {"builtin_arity", unary(kDerivatives + "    decompose: add(x, multiply(a, len(x.shape, 1)))\n"), "11:35",
     "the builtin 'len' takes 1 arguments, not 2"},
    {"builtin_type", unary(kDerivatives + "    decompose: add(x, multiply(a, len(x)))\n"), "11:39",
     "the builtin 'len' takes a list here, not a Tensor"},
    {"operator", unary(kDerivatives + "    decompose: x + a.shape\n"), "11:22", "a number has no attribute 'shape'"},
    {"attribute", unary(kDerivatives + "    decompose: add(x, multiply(a, x.rank))\n"), "11:37",
     "a Tensor has no attribute 'rank'"},
    {"condition", unary(kDerivatives + "    decompose: 'add(x, a) if x else x'\n"), "11:30",
     "choose values by where(cond, x, y)"},
    {"branches", unary(kDerivatives + "    decompose: 'add(x, a) if a > 0 else x.shape'\n"), "11:27",
     "both must give the same type"},
    {"mixed_list", unary(kDerivatives + "    decompose: add(x, multiply(a, [x, 1][0]))\n"), "11:39",
     "the list's elements are of different types"},
    {"unused_let", unary(kDerivatives + "    decompose: 'let b = add(x, a); add(x, a)'\n"), "11:21",
     "'b' is never used"},
    {"unused_input", unary(kDerivatives + "    decompose: add(x, x)\n"), "11:16", "never uses its input 'a'"},
    {"gives_number", unary(kDerivatives + "    decompose: a * x.ndim\n"), "11:18",
     "the formula gives a number; it must give a Tensor"},
    {"results_count",
     "  - op: f(Tensor x) -> (Tensor a, Tensor b)\n    doc: F.\n    dtypes: bool\n    shape: same(x)\n    decompose: "
     "add(x, x)\n    samples: [{x: [2]}]\n",
     "7:16", "gives 1 value for 2 results"},
    {"syntax", unary(kDerivatives + "    decompose: add(x, a\n"), "11:24", "expected ')' to close the call of 'add'"},
    {"after_end", unary(kDerivatives + "    decompose: add(x, a) x\n"), "11:26", "after the end of the formula"},
    {"maybe_none",
     "  - op: f(Tensor x, Tensor? y) -> Tensor\n    doc: F.\n    dtypes: bool\n    shape: same(x)\n    decompose: "
     "add(x, y)\n    samples: [{x: [2]}]\n",
     "7:23", "cannot be none, and this value may be"},
    {"tuple_member", unary(kDerivatives + "    decompose: add(topk(x, 1).value, a)\n"), "11:31",
     "'value' is not a result of 'topk'"},
    {"cotangent_elsewhere", unary(kDerivatives + "    decompose: add(g, a)\n"), "11:20",
     "'g' has no meaning in 'decompose'"},
    {"cycle",
     unary(kDerivatives + "    decompose: h(x, a)\n") +
         "  - op: h(Tensor x, Scalar a) -> Tensor\n    doc: H.\n    dtypes: bool\n    shape: same(x)\n    decompose: "
         "f(x, a)\n    samples: [{x: [2], a: 1}]\n",
     "11:16", "t::f -> t::h -> t::f"},
    {"choices_twice",
     "  - op: f(Tensor x, *, str mode) -> Tensor\n    doc: F.\n    primitive: p\n    dtypes: bool\n    shape: same(x)\n"
     "    batch: loop\n    choices: {mode: [u, v, u]}\n    samples: [{x: [2], mode: u}]\n",
     "9:21", "'u' stands twice among the choices of 'mode'; keep one"},
    {"yaml_tab", "\t- op: f(Tensor x) -> Tensor\n", "3:2", "YAML is indented by spaces"},
    // ---- derivatives ----
    {"vjp_hole", unary("    jvp: linear\n"), "3:9",
     "has no vjp for 'x'; write partial: {x: FORMULA} for an elementwise op, vjp: {x: FORMULA}, vjp: decompose"},
    {"jvp_hole", unary("    vjp: {x: g}\n"), "3:9",
     "has no jvp for 'x'; write jvp: linear, jvp: {x: FORMULA}, jvp: like vjp, jvp: decompose, zero, or {none: "
     "REASON}"},
    {"vjp_target", unary("    vjp: {z: g}\n    jvp: linear\n    decompose: add(x, a)\n"), "9:11",
     "'z' is not an argument of 'f'"},
    {"vjp_of_scalar", unary("    vjp: {x: g, a: g}\n    jvp: linear\n"), "9:17",
     "is not a Tensor and has no derivative"},
    {"vjp_constant", unary("    vjp: {x: x}\n    jvp: linear\n"), "9:14", "never uses the cotangent 'g'"},
    {"jvp_constant", unary("    vjp: {x: g}\n    jvp: {x: x}\n"), "10:14", "never uses the tangent 't'"},
    {"refusal_reason", unary("    vjp: {x: {none: }}\n    jvp: linear\n"), "9:14", "the refusal has no reason"},
    {"partial_shape",
     "  - op: f(Tensor x) -> Tensor\n    doc: F.\n    primitive: unary\n    dtypes: floating\n    shape: same(x)\n    "
     "partial: {x: x}\n    samples: [{x: [2]}]\n",
     "8:18", "'partial' is for elementwise ops"},
    {"partial_cotangent", unary("    partial: {x: multiply(g, x)}\n"), "9:27", "'g' has no meaning in 'partial'"},
    {"jvp_cotangent", unary("    vjp: {x: g}\n    jvp: {x: g}\n"), "10:14",
     "'g' has no meaning in 'jvp'; write t, the tangent"},
    {"vjp_tangent", unary("    vjp: {x: t}\n    jvp: linear\n"), "9:14",
     "'t' has no meaning in 'vjp'; write g, the cotangent"},
    {"vjp_of_argument_g",
     "  - op: f(Tensor x, Tensor g) -> Tensor\n    doc: F.\n    primitive: binary\n    dtypes: floating\n    shape: "
     "broadcast(x, g)\n    vjp: {x: g, g: cotangent}\n    jvp: linear\n    samples: [{x: [2], g: [2]}]\n",
     "8:14", "the vjp never uses the cotangent; here 'g' is the argument, so write cotangent"},
    {"result_without_out",
     "  - op: f(Tensor x) -> (Tensor at, Tensor other)\n    doc: F.\n    primitive: unary\n    dtypes: floating\n    "
     "shape: [same(x), same(x)]\n    vjp: {x: g.at * at}\n    jvp: zero\n    samples: [{x: [2]}]\n",
     "8:21", "'at' is a result; write out.at"},
    {"partial_and_vjp", unary("    partial: {x: x}\n    vjp: {x: g}\n"), "10:14",
     "has rules in 'partial' and in 'vjp'"},
    {"partial_and_jvp", unary("    partial: {x: x}\n    jvp: linear\n"), "10:10",
     "has rules in 'partial' and in 'jvp'"},
    {"composite_rule",
     "  - op: f(Tensor x) -> Tensor\n    doc: F.\n    kind: composite\n    dtypes: floating\n    shape: same(x)\n    "
     "decompose: add(x, x)\n    vjp: {x: g}\n    samples: [{x: [2]}]\n",
     "9:14", "differentiates through its decomposition"},
    {"decompose_missing",
     "  - op: f(Tensor x) -> Tensor\n    doc: F.\n    dtypes: bool\n    shape: same(x)\n    samples: [{x: [2]}]\n",
     "3:9", "has no 'decompose'"},
    {"batch_hole",
     "  - op: f(Tensor x) -> Tensor\n    doc: F.\n    primitive: unary\n    dtypes: bool\n    shape: x.shape\n    "
     "samples: [{x: [2]}]\n",
     "3:9", "no batch rule follows"},
    // ---- samples ----
    {"sample_argument",
     unary(kDerivatives) + "  - op: h(Tensor x) -> Tensor\n    doc: H.\n    primitive: unary\n    dtypes: bool\n    "
                           "shape: same(x)\n    samples: [{x: [2], y: 1}]\n",
     "16:24", "'y' is not an argument of 'h'"},
    {"sample_missing",
     "  - op: h(Tensor x, Size n) -> Tensor\n    doc: H.\n    primitive: unary\n    dtypes: bool\n    shape: same(x)\n "
     "   samples: [{x: [2]}]\n",
     "8:15", "leaves out 'n', which has no default"},
    {"sample_type",
     "  - op: h(Tensor x, Size n) -> Tensor\n    doc: H.\n    primitive: unary\n    dtypes: bool\n    shape: same(x)\n "
     "   samples: [{x: [2], n: 1.5}]\n",
     "8:27", "the sample of 'n' must be a Size"},
    {"sample_key",
     "  - op: h(Tensor x) -> Tensor\n    doc: H.\n    primitive: unary\n    dtypes: bool\n    shape: same(x)\n    "
     "samples: [{x: {shape: [2], layuot: offset}}]\n",
     "8:32", "did you mean 'layout'?"},
    {"sample_generator",
     "  - op: h(Tensor x) -> Tensor\n    doc: H.\n    primitive: unary\n    dtypes: bool\n    shape: same(x)\n    "
     "samples: [{x: {shape: [2], gen: unifrom(0, 1)}}]\n",
     "8:37", "did you mean 'uniform'?"},
};

class OneMistake : public testing::TestWithParam<Mistake> {};

TEST_P(OneMistake, IsReportedOnceAtItsPlace) {
  const Mistake& mistake = GetParam();
  const Checked checked = check_file(in_file(mistake.entry));
  const std::string report = checked.report();
  EXPECT_EQ(1, std::count(report.begin(), report.end(), '\n')) << report;
  EXPECT_THAT(report, testing::StartsWith("t.yaml:" + std::string(mistake.place) + ": error: "));
  EXPECT_THAT(report, testing::HasSubstr(mistake.words));
}

INSTANTIATE_TEST_SUITE_P(Diagnostics, OneMistake, testing::ValuesIn(kMistakes),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(Diagnostics, TwoDefinitionsNameTheFirst) {
  const std::string f = unary(kDerivatives);
  const Checked checked = check_file(in_file(f + f));
  EXPECT_THAT(checked.report(),
              testing::StartsWith("t.yaml:11:9: error: op 't::f' is defined twice, first at t.yaml:3"));
}

TEST(Diagnostics, AnAliasIsANameOfItsOwn) {
  const std::string known = unary(std::string(kDerivatives) + "    aliases: [f]\n");
  EXPECT_THAT(check_file(in_file(known)).report(), testing::HasSubstr("alias 'f' of 'f' is a name of 'f' already"));
  const std::string twice = unary(std::string(kDerivatives) + "    aliases: [g, g]\n");
  EXPECT_THAT(check_file(in_file(twice)).report(), testing::HasSubstr("alias 'g' of 'f' is a name of 'f' already"));
  const std::string wrong = unary(std::string(kDerivatives) + "    aliases: [a-b]\n");
  EXPECT_THAT(check_file(in_file(wrong)).report(), testing::HasSubstr("alias 'a-b' is not a name"));
}

TEST(Diagnostics, MapsWithinMapsAreCounted) {
  std::string list = "x.shape";
  for (int i = 0; i < 8; ++i) list = "map(i" + std::to_string(i) + " in " + list + ": i" + std::to_string(i) + " + 1)";
  const auto report = [](const std::string& shape) {
    return check_file(in_file(unary(kDerivatives + "    decompose: |\n      sum_to(multiply(x, a), " + shape + ")\n")))
        .report();
  };
  EXPECT_EQ(report(list), "");
  EXPECT_THAT(report("map(j in " + list + ": j + 1)"),
              testing::AllOf(testing::StartsWith("t.yaml:11:"), testing::HasSubstr("9 deep within each other"),
                             testing::HasSubstr("expected at most 8")));
}

TEST(Diagnostics, EveryMistakeOfAFileInOneRunInOrder) {
  const Checked checked = check_file(
      in_file(unary("    vjp: {x: nope(g)}\n    jvp: {x: multiply(t)}\n    decompose: add(x, q)\n    tags: {}\n")));
  const auto found = checked.diagnostics.sorted();
  ASSERT_EQ(4u, found.size()) << checked.report();
  EXPECT_EQ(9u, found[0].where.line);
  EXPECT_EQ(10u, found[1].where.line);
  EXPECT_EQ(11u, found[2].where.line);
  EXPECT_EQ(12u, found[3].where.line);
}

TEST(Diagnostics, ColumnsAreThoseOfTheFileInsideQuotesAndBlocks) {
  const Checked quoted = check_file(in_file(unary(kDerivatives + "    decompose: 'add(x, ''q'')'\n")));
  EXPECT_THAT(quoted.report(), testing::StartsWith("t.yaml:11:24: error: "));
  const Checked block =
      check_file(in_file(unary(kDerivatives + "    decompose: |\n      let b = add(x, a);\n      add(b, qq)\n")));
  EXPECT_THAT(block.report(), testing::StartsWith("t.yaml:13:14: error: unknown name 'qq'"));
  const Checked folded = check_file(in_file(unary(kDerivatives + "    decompose: >-\n      add(x,\n          qq)\n")));
  EXPECT_THAT(folded.report(), testing::StartsWith("t.yaml:13:11: error: unknown name 'qq'"));
}

TEST(Diagnostics, WithoutTheOpsOfFitOneErrorSaysSo) {
  const Checked checked = check_file(in_file(unary(kDerivatives)), true);
  EXPECT_THAT(checked.report(), testing::HasSubstr("bp::sum_to, bp::cast and bp::real"));
  EXPECT_EQ(1u, checked.diagnostics.sorted().size());
}

}  // namespace
}  // namespace backplane::codegen::diagnostics_test

// Operators on Tensors: the op of each, how they bind, and the error for an unknown one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "codegen_fixture.hpp"

namespace backplane::codegen::operators_test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

std::string file_with(const std::string& formula, const std::string& more = "") {
  return in_file(
      "  - op: f(Tensor x, Tensor y, Scalar a=1, Size n=2) -> Tensor\n    doc: F.\n    dtypes: numeric\n    shape: "
      "same(x)\n    samples: [{x: [2], y: [2]}]\n    kind: composite\n    decompose: |\n      let unused = present(x) "
      "and "
      "present(y) and a > n;\n      (" +
      formula + ") if unused else x\n" + more);
}

// The formula as nodes, without the condition around it.
std::string rendered(const std::string& formula, const std::string& more = "") {
  const Checked checked = check_file(file_with(formula, more));
  if (!checked.report().empty()) return checked.report();
  const CompiledOp& op = checked.registry.ops[0];
  return render(op, op.program.nodes()[op.find(BP_RULE_DECOMPOSE)->roots[0]].inputs[1]);
}

struct Pair {
  const char* formula;
  const char* calls;
};

void PrintTo(const Pair& pair, std::ostream* out) { *out << pair.formula; }

class Operators : public testing::TestWithParam<Pair> {};

// The law: a formula of operators is the formula of calls.
TEST_P(Operators, MeanTheirCalls) {
  const std::string calls = rendered(GetParam().calls);
  EXPECT_THAT(calls, HasSubstr("bp::"));
  EXPECT_EQ(calls, rendered(GetParam().formula)) << GetParam().formula;
}

INSTANTIATE_TEST_SUITE_P(
    All, Operators,
    testing::Values(
        Pair{"x + y", "add(x, y)"}, Pair{"x - y", "subtract(x, y)"}, Pair{"x * y", "multiply(x, y)"},
        Pair{"x / y", "divide(x, y)"}, Pair{"x // y", "floor_divide(x, y)"}, Pair{"x % y", "remainder(x, y)"},
        Pair{"x @ y", "matmul(x, y)"}, Pair{"x ** y", "pow(x, y)"}, Pair{"x == y", "equal(x, y)"},
        Pair{"x != y", "not_equal(x, y)"}, Pair{"x < y", "less(x, y)"}, Pair{"x <= y", "less_equal(x, y)"},
        Pair{"x > y", "greater(x, y)"}, Pair{"x >= y", "greater_equal(x, y)"}, Pair{"-x", "negative(x)"},
        Pair{"x.mT", "matrix_transpose(x)"}, Pair{"x.mH", "matrix_transpose(conj(x))"},
        // numbers beside Tensors stay numbers, and are computed where both sides are numbers
        Pair{"x * 2", "multiply(x, 2)"}, Pair{"2 * x", "multiply(2, x)"}, Pair{"x * -0.5", "multiply(x, -0.5)"},
        Pair{"x * (2 * a)", "multiply(x, 2 * a)"}, Pair{"2 * a * x", "multiply(2 * a, x)"},
        Pair{"x * 2 * 3", "multiply(multiply(x, 2), 3)"}, Pair{"x + n", "add(x, n)"}, Pair{"x ** 2", "pow(x, 2)"},
        Pair{"2 ** x", "pow(2, x)"}, Pair{"x / n ** 2", "divide(x, n ** 2)"},
        // precedence and grouping are Python's
        Pair{"x + y * x", "add(x, multiply(y, x))"}, Pair{"(x + y) * x", "multiply(add(x, y), x)"},
        Pair{"x - y - x", "subtract(subtract(x, y), x)"}, Pair{"x - (y - x)", "subtract(x, subtract(y, x))"},
        Pair{"x * y / x @ y", "matmul(divide(multiply(x, y), x), y)"}, Pair{"-x ** 2", "negative(pow(x, 2))"},
        Pair{"x ** -y", "pow(x, negative(y))"}, Pair{"x ** y ** x", "pow(x, pow(y, x))"},
        Pair{"-x * y", "multiply(negative(x), y)"}, Pair{"--x", "negative(negative(x))"},
        Pair{"x + y < x * 2", "less(add(x, y), multiply(x, 2))"}, Pair{"-x.mT", "negative(matrix_transpose(x))"},
        Pair{"x @ y.mT", "matmul(x, matrix_transpose(y))"}, Pair{"(x + y).mH", "matrix_transpose(conj(add(x, y)))"},
        Pair{"x.mT.mT", "matrix_transpose(matrix_transpose(x))"},
        Pair{"x * y if n > 2 else x", "multiply(x, y) if n > 2 else x"},
        Pair{"where(x < 0, -y, y)", "where(less(x, 0), negative(y), y)"}));

TEST(OperatorTable, NumbersAndListsKeepTheirMeaning) {
  const Checked checked = check_file(in_file(
      "  - op: f(Tensor x, Size n) -> Tensor\n    doc: F.\n    primitive: fill\n    dtypes: bool\n    batch: loop\n    "
      "shape: '[n * 2 + 1, -n // 2, n % 3, n ** 2] + x.shape'\n    samples: [{x: [2], n: 2}]\n"));
  ASSERT_EQ("", checked.report());
  const CompiledOp& op = checked.registry.ops[0];
  EXPECT_EQ("concat([add(mul(n, 2), 1), floordiv(neg(n), 2), mod(n, 3), pow(n, 2)], x.shape)",
            render(op, op.find(BP_RULE_SHAPE)->roots[0]));
}

// Another registry's own op comes before bp's: the table is the registry's, not codegen's.
TEST(OperatorTable, ANamespaceMayStateItsOwn) {
  const std::string own =
      "  - op: times(Tensor x, Tensor y, Scalar c=3) -> Tensor\n    doc: T.\n    operator: '*'\n    primitive: "
      "binary\n  "
      "  dtypes: bool\n    shape: broadcast(x, y)\n    samples: [{x: [2], y: [2]}]\n";
  EXPECT_EQ("t::times(x, y)", rendered("x * y", own));
  EXPECT_EQ("bp::add(x, y)", rendered("x + y", own));
}

struct Mistake {
  const char* name;
  std::string formula;
  std::string more;
  const char* words;
};
void PrintTo(const Mistake& mistake, std::ostream* out) { *out << mistake.name; }

std::string stating(const std::string& signature, const std::string& symbol) {
  const bool two = signature.find("Tensor y") != std::string::npos;
  return "  - op: " + signature + "\n    doc: H.\n    operator: " + symbol +
         "\n    primitive: binary\n    dtypes: bool\n    batch: loop\n    shape: " +
         (two ? "broadcast(x, y)\n    samples: [{x: [2], y: [2]}]\n" : "broadcast(x)\n    samples: [{x: [2]}]\n");
}

class OperatorMistakes : public testing::TestWithParam<Mistake> {};

TEST_P(OperatorMistakes, AreReportedAtTheirPlace) {
  EXPECT_THAT(rendered(GetParam().formula, GetParam().more), StartsWith("t.yaml:" + std::string(GetParam().words)));
}

INSTANTIATE_TEST_SUITE_P(
    All, OperatorMistakes,
    testing::Values(
        Mistake{"list", "x * x.shape", "", "11:14: error: 'y' of 'multiply' is a Tensor, but this is a list of ints"},
        Mistake{"text", "x + 'a'", "", "11:12: error: 'y' of 'add' is a Tensor, but this is a text"},
        Mistake{"chain", "x < y < x", "",
                "11:14: error: comparisons do not chain; write a < b and b < c of numbers, logical_and(a < b, b < c) "
                "of Tensors"},
        Mistake{"and", "x and y", "",
                "11:10: error: 'and' takes bools, not a Tensor; write logical_and(x, y) of Tensors"},
        Mistake{"or", "x or y", "", "11:10: error: 'or' takes bools, not a Tensor; write logical_or(x, y) of Tensors"},
        Mistake{"not", "not x", "", "11:8: error: 'not' takes a bool, not a Tensor; write logical_not(x) of Tensors"},
        Mistake{"and_of_ints", "x if n and a > 1 else y", "",
                "11:15: error: 'and' takes bools, not an int; compare it with something, as in n != 0"},
        Mistake{"chain_of_numbers", "x if 0 < n <= 2 else y", "", "11:19: error: comparisons do not chain"},
        Mistake{"chain_of_equals", "x == y == x", "", "11:15: error: comparisons do not chain"},
        Mistake{
            "caret", "x ^ y", "",
            "11:10: error: '^' is not an operator; write x ** y for a power, logical_xor(x, y) or bitwise_xor(x, y)"},
        Mistake{
            "ampersand", "x & y", "",
            "11:10: error: '&' is not an operator; write 'and' between bools, logical_and(x, y) or bitwise_and(x, y)"},
        Mistake{"bar", "x | y", "",
                "11:10: error: '|' is not an operator; write 'or' between bools, logical_or(x, y) or bitwise_or(x, y)"},
        Mistake{
            "tilde", "~x", "",
            "11:8: error: '~' and '!' are no operators; write 'not' of a bool, logical_not(x) or bitwise_invert(x)"},
        Mistake{"is", "x if a is none else y", "", "11:15: error: 'is' is not an operator; write present(x)"},
        Mistake{"in", "x if n in [1, 2] else y", "", "11:15: error: 'in' is not an operator; write a == 1 or a == 2"},
        Mistake{"method", "x * x.matmul(y)", "",
                "11:12: error: 'x.matmul' is not an op, and values have no methods; write matmul(x, ...)"},
        Mistake{"numpy", "np.matmul(x, y)", "",
                "11:8: error: 'np.matmul' is not an op, and values have no methods; write matmul(...)"},
        Mistake{"index_of_tensor", "x[0]", "",
                "11:8: error: a Tensor is not a list; write select(x, axis, index), slice or take of a Tensor"},
        Mistake{"later_let", "let p = q * 2; q = x + 1; p + q", "",
                "11:16: error: 'q' is bound further on; put its let before what reads it"},
        Mistake{"own_let", "let p = p * 2; p", "", "11:16: error: unknown name 'p'"},
        Mistake{"inner_let", "(let p = x + y; p) + p", "", "11:29: error: unknown name 'p'"},
        Mistake{"condition", "x if x < y else y", "", "11:15: error: a condition looks at attributes"},
        Mistake{"numbers_matmul", "x * (a @ n)", "",
                "11:15: error: this operator does not take a number and an int; it works on two Tensors"},
        Mistake{"of_list", "sum_to(x, x.shape.mT)", "", "11:26: error: a list of ints has no attribute 'mT'"},
        Mistake{"member", "x.mt", "", "11:10: error: a Tensor has no attribute 'mt'; did you mean 'mT'?"},
        Mistake{"twice", "x",
                stating("h(Tensor x, Tensor y) -> Tensor", "'*'") + stating("k(Tensor x, Tensor y) -> Tensor", "'*'"),
                "22:16: error: operator '*' means 'h' already"},
        Mistake{"arity", "x", stating("h(Tensor x) -> Tensor", "'*'"),
                "14:15: error: '*' is not an operator of 1 Tensor; operators are -, mT"},
        Mistake{"unknown", "x", stating("h(Tensor x, Tensor y) -> Tensor", "'&'"),
                "14:15: error: '&' is not an operator of 2 Tensors"},
        Mistake{"list_argument", "x", stating("h(Tensor[] x) -> Tensor", "'*'"),
                "14:15: error: 'h' is not an operator; one takes one or two Tensors"},
        Mistake{"results", "x", stating("h(Tensor x, Tensor y) -> Tensor[]", "'*'"),
                "14:15: error: 'h' is not an operator"}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(OperatorTable, WithoutARegistryItIsEmpty) {
  const Checked checked = check_file(file_with("x * y"), true);
  EXPECT_THAT(checked.report(), StartsWith("t.yaml:11:10: error: no op states `operator: '*'`"));
  EXPECT_THAT(check_file(file_with("x.mH"), true).report(), HasSubstr("mH needs bp::conj"));
}

}  // namespace
}  // namespace backplane::codegen::operators_test

// Ints that are the same in every call: what no call survives is refused with its place, and ints go to the end of
// uint64.
#include "check/known_ints.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "codegen_fixture.hpp"

namespace backplane::codegen {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

std::string file_of(const std::string& shape, const std::string& more = "    batch: loop\n") {
  return in_file(
      "  - op: f(Tensor x, Size n, Scalar a=1) -> Tensor\n    doc: F.\n    primitive: fill\n    dtypes: "
      "bool\n    shape: |\n      " +
      shape + "\n    samples: [{x: [2], n: 2}]\n" + more);
}

// The shape as nodes, or the mistakes.
std::string shape_of(const std::string& shape) {
  const Checked checked = check_file(file_of(shape));
  if (!checked.report().empty()) return checked.report();
  return render(checked.registry.ops[0], checked.registry.ops[0].find(BP_RULE_SHAPE)->roots[0]);
}

struct Case {
  const char* formula;
  const char* words;  // after t.yaml:8:
};
void PrintTo(const Case& value, std::ostream* out) { *out << value.formula; }

class Refused : public testing::TestWithParam<Case> {};

TEST_P(Refused, AtItsPlace) {
  EXPECT_THAT(shape_of(GetParam().formula), StartsWith("t.yaml:8:" + std::string(GetParam().words)));
}

const char* kRange = "exceeds the ints of formulas, which go from -2**63 to 2**64 - 1; write a float";

INSTANTIATE_TEST_SUITE_P(
    Constants, Refused,
    testing::Values(
        Case{"[1 // 0]", "10: error: '//' divides by 0"}, Case{"[1 % 0]", "10: error: '%' divides by 0"},
        Case{"[n // 0]", "10: error: '//' divides by 0"}, Case{"[n % (2 - 2)]", "10: error: '%' divides by 0"},
        Case{"[x.ndim // -0]", "15: error: '//' divides by 0"},
        Case{"let z = 3 - 3; [n // z]", "25: error: '//' divides by 0"},
        Case{"[1 if n > 1 else 1 // 0]", "26: error: '//' divides by 0"}, Case{"[2 ** 64]", "10: error: "},
        Case{"[9223372036854775807 * 3]", "28: error: "}, Case{"[18446744073709551615 + 1]", "29: error: "},
        Case{"[-9223372036854775808 - 1]", "29: error: "}, Case{"[-(2 ** 63 + 1)]", "8: error: "},
        Case{"[9 ** 9 ** 9]", "10: error: "},
        Case{"[18446744073709551616]", "8: error: an int of a formula is from -2**63 to 2**64 - 1; write a float"},
        Case{"[-9223372036854775809]", "8: error: an int of a formula is from -2**63 to 2**64 - 1; write a float"},
        Case{"[n] if 1e999 > a else [1]",
             "14: error: this number does not fit in 64 bits of floating point; write inf"}));

INSTANTIATE_TEST_SUITE_P(
    Indexes, Refused,
    testing::Values(
        Case{"[x.shape[99]]", "16: error: this index is outside of the list, which has at most 64 elements"},
        Case{"[x.shape[-65]]", "16: error: this index is outside of the list"},
        Case{"[[1, n][2]]", "15: error: this index is outside of the list, which has 2 elements"},
        Case{"[[n][-2]]", "12: error: this index is outside of the list, which has 1 element"},
        Case{"[[n][3 - 2]]", "14: error: this index is outside of the list"},
        Case{"[(x.shape + [n])[65]]", "24: error: this index is outside of the list, which has at most 65 elements"}));

INSTANTIATE_TEST_SUITE_P(
    Sizes, Refused,
    testing::Values(Case{"[n, -1]", "11: error: a size is -1 in every call; it has to be from 0 to 2**63 - 1"},
                    Case{"[2 - 3]", "10: error: a size is -1 in every call"},
                    Case{"[18446744073709551615]", "8: error: a size is 18446744073709551615 in every call"},
                    Case{"x.shape + [2 - 4]", "20: error: a size is -2 in every call"}));

TEST(KnownInts, TheRangeIsNamed) { EXPECT_THAT(shape_of("[2 ** 64]"), HasSubstr(kRange)); }

// What may work in some call is left to it.
TEST(KnownInts, WhatDependsOnTheCallStays) {
  for (const char* formula : {"[n // (n - n)]", "[x.shape[63]]", "[x.shape[n]]", "[n - 5]", "[0 // 5 + n]", "[n % 3]",
                              "[n] if a // 0 > 1 else [n]", "[n] if a / 0 > 1 else [n]", "[2 ** 62]"})
    EXPECT_THAT(shape_of(formula), Not(HasSubstr("error"))) << formula;
}

TEST(KnownInts, GoFromTheLeastOfInt64ToTheLastOfUint64) {
  for (const char* number :
       {"18446744073709551615", "9223372036854775808", "-9223372036854775808", "2 ** 64 - 1 - 0"}) {
    const bool power = std::string(number).find("**") != std::string::npos;
    const std::string made =
        shape_of("[n] if a == " + std::string(power ? "2 ** 63 + (2 ** 63 - 1)" : number) + " else [1]");
    EXPECT_THAT(made, HasSubstr(power ? "add(pow(2, 63), sub(pow(2, 63), 1))" : number)) << number;
  }
  EXPECT_THAT(shape_of("[n] if a == -(-9223372036854775808) else [1]"), HasSubstr("eq(a, 9223372036854775808)"));
}

TEST(KnownInts, EndWhereAnArgumentEnds) {
  const std::string more =
      "    batch: loop\n    decompose: topk(x, n).values if a > 2 ** 63 else topk(x, 2 ** 63).values\n";
  EXPECT_THAT(check_file(file_of("x.shape", more)).report(),
              HasSubstr("11:64: error: 'k' of 'topk' is a Size, which ends at 2**63 - 1"));
}

// As the core computes them; a law of it holds the arithmetic itself.
TEST(KnownInts, DivisionRoundsDownAsInPython) {
  for (const auto& [op, a, b, expected] : {std::tuple{"floordiv", -7, 2, -4},
                                           {"floordiv", 7, -2, -4},
                                           {"mod", -7, 2, 1},
                                           {"mod", 7, -2, -1},
                                           {"pow", -2, 3, -8}})
    EXPECT_EQ(std::optional<WideInt>(expected), compute(op, a, b).value) << op << a << b;
  EXPECT_FALSE(compute("pow", 2, -1).value);
}

}  // namespace
}  // namespace backplane::codegen

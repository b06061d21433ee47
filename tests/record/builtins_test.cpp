// The builtins of formulas: values against Python's, and refusals instead of overflow.
#include "record/builtins.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "record/builtin_numbers.hpp"
#include "record/toy_record.hpp"

namespace backplane::core {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class Builtins : public testing::Test {
 protected:
  bp_value run(const char* name, const std::vector<bp_value>& in) {
    const Builtin* builtin = find_builtin(name);
    if (!builtin) throw Error(BP_ERROR_INTERNAL, std::string("no builtin ") + name);
    return builtin->fn({"t::op", name, in, arena_});
  }
  int64_t as_int(const char* name, const std::vector<bp_value>& in) {
    const bp_value v = run(name, in);
    EXPECT_EQ(v.tag, BP_TAG_INT) << name;
    return v.u.i;
  }
  bool as_bool(const char* name, const std::vector<bp_value>& in) {
    const bp_value v = run(name, in);
    EXPECT_EQ(v.tag, BP_TAG_BOOL) << name;
    return v.u.i != 0;
  }
  double as_float(const char* name, const std::vector<bp_value>& in) {
    const bp_value v = run(name, in);
    EXPECT_EQ(v.tag, BP_TAG_FLOAT) << name;
    return v.u.f;
  }
  Ints as_ints(const char* name, const std::vector<bp_value>& in) {
    const bp_value v = run(name, in);
    EXPECT_EQ(v.tag, BP_TAG_INT_LIST) << name;
    return {v.u.ints, v.u.ints + v.count};
  }
  bp_dtype as_dtype(const char* name, const std::vector<bp_value>& in) {
    const bp_value v = run(name, in);
    EXPECT_EQ(v.tag, BP_TAG_DTYPE) << name;
    return static_cast<bp_dtype>(v.u.i);
  }
  std::string refusal(const char* name, const std::vector<bp_value>& in) {
    return error_of([&] { run(name, in); });
  }
  static bp_value i(int64_t v) { return int_value(v); }
  static bp_value u(uint64_t v) {
    bp_value large = int_value(static_cast<int64_t>(v));
    large.flags = BP_VALUE_UINT64;
    return large;
  }
  static bp_value f(double v) { return float_value(v); }
  bp_value list(Ints ints) { return ints_value(kept_.emplace_back(std::move(ints))); }

  ValueArena arena_;
  std::deque<Ints> kept_;
  static constexpr int64_t kLeast = std::numeric_limits<int64_t>::min(), kMost = std::numeric_limits<int64_t>::max();
  static constexpr uint64_t kTop = std::numeric_limits<uint64_t>::max();
};

TEST_F(Builtins, EveryNameOfTheReferenceIsThere) {
  for (const char* name : {"len",
                           "prod",
                           "min",
                           "max",
                           "range",
                           "repeat",
                           "reverse",
                           "contains",
                           "insert",
                           "replace",
                           "require",
                           "require_value",
                           "without",
                           "broadcast_shapes",
                           "normalize_axis",
                           "normalize_axes",
                           "reduced_shape",
                           "count",
                           "inverse_permutation",
                           "shift_axis",
                           "shift_axes",
                           "present",
                           "default",
                           "is_floating",
                           "is_complex",
                           "is_integer",
                           "is_bool",
                           "real_dtype",
                           "complex_dtype",
                           "promote",
                           "finfo_min",
                           "finfo_max",
                           "finfo_eps",
                           "device_computes",
                           "number_dtype",
                           "float",
                           "int",
                           "math_sqrt",
                           "math_log",
                           "math_exp",
                           "conj_of_number",
                           "add",
                           "sub",
                           "mul",
                           "truediv",
                           "floordiv",
                           "mod",
                           "pow",
                           "neg",
                           "eq",
                           "ne",
                           "lt",
                           "le",
                           "gt",
                           "ge",
                           "and",
                           "or",
                           "not",
                           "concat",
                           "getitem",
                           "getslice"})
    EXPECT_NE(find_builtin(name), nullptr) << name;
  EXPECT_EQ(find_builtin("aaa"), nullptr);
  EXPECT_EQ(find_builtin("zzz"), nullptr);
  EXPECT_EQ(find_builtin(""), nullptr);
}

TEST_F(Builtins, IntegersFollowPython) {
  for (int64_t a : {-7, -1, 0, 1, 6, 7})
    for (int64_t b : {-3, -1, 1, 2, 7}) {
      const int64_t quotient = as_int("floordiv", {i(a), i(b)}), rest = as_int("mod", {i(a), i(b)});
      EXPECT_EQ(quotient * b + rest, a);
      EXPECT_TRUE(rest == 0 || (rest < 0) == (b < 0));
      EXPECT_LT(std::abs(rest), std::abs(b));
      EXPECT_EQ(as_float("truediv", {i(a), i(b)}), static_cast<double>(a) / static_cast<double>(b));
      EXPECT_EQ(as_int("add", {i(a), i(b)}), a + b);
      EXPECT_EQ(as_int("sub", {i(a), i(b)}), a - b);
      EXPECT_EQ(as_int("mul", {i(a), i(b)}), a * b);
    }
  EXPECT_EQ(as_int("pow", {i(-3), i(3)}), -27);
  EXPECT_EQ(as_int("pow", {i(0), i(0)}), 1);
  EXPECT_EQ(as_int("pow", {i(2), i(62)}), int64_t{1} << 62);
  EXPECT_EQ(as_int("pow", {i(-2), i(63)}), kLeast);
  EXPECT_EQ(as_float("pow", {i(2), i(-1)}), 0.5);
  EXPECT_EQ(as_int("add", {bool_value(true), i(1)}), 2);
  EXPECT_EQ(as_int("mod", {i(kLeast), i(-1)}), 0);
}

TEST_F(Builtins, OverflowIsAnErrorAndNotAWrap) {
  EXPECT_THAT(refusal("add", {u(kTop), i(1)}), HasSubstr("t::op: add in its formula exceeds 64 bits"));
  EXPECT_NE(refusal("sub", {i(kLeast), i(1)}), "");
  EXPECT_NE(refusal("mul", {i(kMost), i(3)}), "");
  EXPECT_NE(refusal("mul", {u(kTop), u(kTop)}), "");
  EXPECT_NE(refusal("neg", {u(kTop)}), "");
  EXPECT_NE(refusal("pow", {i(2), i(64)}), "");
  EXPECT_NE(refusal("pow", {i(10), i(kMost)}), "");
  EXPECT_NE(refusal("floordiv", {u(kTop), i(-1)}), "");
  EXPECT_NE(refusal("prod", {list({kMost, 2})}), "");
  EXPECT_THAT(refusal("floordiv", {i(1), i(0)}), HasSubstr("divides 1 by 0"));
  EXPECT_NE(refusal("mod", {i(1), i(0)}), "");
  EXPECT_NE(refusal("int", {f(1e19)}), "");
  EXPECT_NE(refusal("int", {f(std::nan(""))}), "");
  EXPECT_NE(refusal("repeat", {i(1), i(kMost)}), "");
  EXPECT_NE(refusal("range", {i(kLeast), i(kMost)}), "");
  EXPECT_NE(refusal("shift_axis", {i(kMost), i(1)}), "");
}

TEST_F(Builtins, NumbersGoOnToTheEndOfUint64AndListsDoNot) {
  const auto same = [&](const bp_value& found, uint64_t expected) {
    EXPECT_EQ(found.tag, BP_TAG_INT);
    EXPECT_EQ(static_cast<uint64_t>(found.u.i), expected);
    EXPECT_EQ((found.flags & BP_VALUE_UINT64) != 0, expected > static_cast<uint64_t>(kMost));
  };
  const uint64_t half = uint64_t{1} << 63;
  same(run("add", {i(kMost), i(1)}), half);
  same(run("sub", {u(half), i(1)}), half - 1);
  same(run("mul", {i(kMost), i(2)}), kTop - 1);
  same(run("neg", {i(kLeast)}), half);
  same(run("pow", {i(2), i(63)}), half);
  same(run("floordiv", {i(kLeast), i(-1)}), half);
  same(run("floordiv", {u(kTop), i(2)}), kTop / 2);
  same(run("mod", {u(kTop), i(10)}), kTop % 10);
  same(run("max", {u(half), i(-1), u(kTop)}), kTop);
  EXPECT_TRUE(as_bool("lt", {i(-1), u(half)}));
  EXPECT_FALSE(as_bool("eq", {i(-1), u(kTop)}));
  EXPECT_EQ(as_float("float", {u(half)}), 0x1p63);
  EXPECT_NE(refusal("repeat", {i(1), u(half)}), "");
  const std::vector<bp_value> beyond = {i(1), u(half)};
  EXPECT_NE(error_of([&] { make_list(arena_, beyond); }), "");
}

TEST_F(Builtins, ANumberInRangeIsHandedOnAndAnotherRefused) {
  const auto in_range = [&](const bp_value& number, bp_dtype dtype) {
    return refusal("in_range", {number, dtype_of(dtype)});
  };
  EXPECT_EQ(as_int("in_range", {i(255), dtype_of(BP_UINT8)}), 255);
  EXPECT_THAT(in_range(i(256), BP_UINT8),
              HasSubstr("the integer 256 is out of bounds for uint8, which holds 0 to 255"));
  EXPECT_THAT(in_range(i(-129), BP_INT8), HasSubstr("-128 to 127"));
  EXPECT_THAT(in_range(u(kTop), BP_INT64), HasSubstr("18446744073709551615 is out of bounds for int64"));
  EXPECT_EQ(in_range(u(kTop), BP_UINT64) + in_range(u(kTop), BP_FLOAT32) + in_range(i(-1), BP_BOOL), "");
}

TEST_F(Builtins, FloatsAndComplexNumbers) {
  const double c[2] = {1, 2};
  EXPECT_EQ(as_float("add", {i(1), f(0.5)}), 1.5);
  EXPECT_EQ(as_float("floordiv", {f(-7), i(2)}), -4);
  EXPECT_EQ(as_float("mod", {f(-7), f(2)}), 1);
  EXPECT_EQ(as_float("pow", {f(2), i(3)}), 8);
  EXPECT_TRUE(std::isinf(as_float("truediv", {i(1), i(0)})));
  EXPECT_TRUE(std::isnan(as_float("truediv", {f(0), i(0)})));
  const bp_value product = run("mul", {complex_value(c), complex_value(c)});
  ASSERT_EQ(product.tag, BP_TAG_COMPLEX);
  EXPECT_EQ(product.u.c[0], -3);
  EXPECT_EQ(product.u.c[1], 4);
  EXPECT_TRUE(as_bool("eq", {complex_value(c), complex_value(c)}));
  EXPECT_NE(refusal("lt", {complex_value(c), i(1)}), "");
  EXPECT_EQ(as_float("math_sqrt", {i(4)}), 2);
  EXPECT_EQ(as_float("math_exp", {i(0)}), 1);
  EXPECT_EQ(as_float("math_log", {i(1)}), 0);
  EXPECT_EQ(as_int("int", {f(-2.7)}), -2);
  EXPECT_EQ(as_float("float", {i(2)}), 2);
  EXPECT_EQ(as_int("max", {i(1), i(3), i(2)}), 3);
  EXPECT_EQ(as_int("min", {list({4, -1, 2})}), -1);
  EXPECT_EQ(as_float("max", {i(1), f(1.5)}), 1.5);
  EXPECT_NE(refusal("max", {list({})}), "");
}

TEST_F(Builtins, ComparisonsAndLogic) {
  EXPECT_TRUE(as_bool("lt", {i(1), f(1.5)}));
  EXPECT_FALSE(as_bool("lt", {i(kMost), i(kMost)}));
  EXPECT_TRUE(as_bool("le", {i(2), i(2)}));
  EXPECT_TRUE(as_bool("gt", {i(kMost), i(kMost - 1)}));  // as doubles they would be equal
  EXPECT_TRUE(as_bool("ge", {i(2), i(2)}));
  EXPECT_TRUE(as_bool("eq", {list({1, 2}), list({1, 2})}));
  EXPECT_FALSE(as_bool("eq", {list({1, 2}), list({1})}));
  EXPECT_TRUE(as_bool("ne", {list({1, 2}), list({1, 3})}));
  EXPECT_TRUE(as_bool("eq", {string_value("a"), string_value("a")}));
  EXPECT_FALSE(as_bool("eq", {string_value("a"), string_value("b")}));
  EXPECT_TRUE(as_bool("eq", {dtype_of(BP_INT8), dtype_of(BP_INT8)}));
  EXPECT_FALSE(as_bool("eq", {bp_value{}, i(0)}));
  EXPECT_TRUE(as_bool("eq", {bp_value{}, bp_value{}}));
  EXPECT_TRUE(as_bool("and", {bool_value(1), i(2)}));
  EXPECT_TRUE(as_bool("or", {bool_value(0), i(2)}));
  EXPECT_TRUE(as_bool("not", {i(0)}));
  ToyTensor x({1});
  EXPECT_NE(refusal("not", {x.value()}), "");
  EXPECT_NE(refusal("eq", {x.value(), x.value()}), "");
}

TEST_F(Builtins, Lists) {
  EXPECT_EQ(as_int("len", {list({4, 5})}), 2);
  EXPECT_EQ(as_int("prod", {list({})}), 1);
  EXPECT_EQ(as_int("prod", {list({2, 3, 4})}), 24);
  EXPECT_THAT(as_ints("range", {i(2), i(5)}), ElementsAre(2, 3, 4));
  EXPECT_THAT(as_ints("range", {i(5), i(2)}), ElementsAre());
  EXPECT_THAT(as_ints("repeat", {i(7), i(3)}), ElementsAre(7, 7, 7));
  EXPECT_THAT(as_ints("reverse", {list({1, 2, 3})}), ElementsAre(3, 2, 1));
  EXPECT_TRUE(as_bool("contains", {list({1, 2}), i(2)}));
  EXPECT_FALSE(as_bool("contains", {list({1, 2}), i(3)}));
  EXPECT_THAT(as_ints("insert", {list({1, 2}), i(0), i(9)}), ElementsAre(9, 1, 2));
  EXPECT_THAT(as_ints("insert", {list({1, 2}), i(2), i(9)}), ElementsAre(1, 2, 9));
  EXPECT_THAT(as_ints("insert", {list({1, 2}), i(-1), i(9)}), ElementsAre(1, 2, 9));
  EXPECT_NE(refusal("insert", {list({1, 2}), i(3), i(9)}), "");
  EXPECT_THAT(as_ints("replace", {list({1, 2}), i(-1), i(9)}), ElementsAre(1, 9));
  EXPECT_THAT(as_ints("without", {list({1, 2, 3}), list({0, -1})}), ElementsAre(2));
  EXPECT_THAT(as_ints("without", {list({1, 2, 3}), i(1)}), ElementsAre(1, 3));
  EXPECT_THAT(as_ints("concat", {list({1}), list({2, 3})}), ElementsAre(1, 2, 3));
  EXPECT_THAT(as_ints("add", {list({1}), list({2})}), ElementsAre(1, 2));
  EXPECT_EQ(as_int("getitem", {list({4, 5}), i(-1)}), 5);
  EXPECT_NE(refusal("getitem", {list({4, 5}), i(2)}), "");
  EXPECT_THAT(as_ints("getslice", {list({1, 2, 3, 4}), i(1), i(-1)}), ElementsAre(2, 3));
  EXPECT_THAT(as_ints("getslice", {list({1, 2, 3, 4}), bp_value{}, i(2)}), ElementsAre(1, 2));
  EXPECT_THAT(as_ints("getslice", {list({1, 2, 3, 4}), i(-2), bp_value{}}), ElementsAre(3, 4));
  EXPECT_THAT(as_ints("getslice", {list({1, 2, 3, 4}), i(3), i(1)}), ElementsAre());
  EXPECT_THAT(as_ints("getslice", {list({1, 2}), i(-9), i(9)}), ElementsAre(1, 2));
  EXPECT_NE(refusal("len", {i(1)}), "");
}

TEST_F(Builtins, ListsOfOtherThings) {
  ToyTensor x({1}), y({2});
  const std::vector<bp_tensor*> tensors = {&x.handle, nullptr, &y.handle};
  EXPECT_EQ(run("getitem", {tensors_value(tensors), i(1)}).tag, BP_TAG_ABSENT);
  EXPECT_EQ(run("getslice", {tensors_value(tensors), i(2), bp_value{}}).u.tensors[0], &y.handle);
  const bp_value both = run("concat", {tensors_value(tensors), tensors_value(tensors)});
  EXPECT_EQ(both.tag, BP_TAG_TENSOR_LIST);
  EXPECT_EQ(both.count, 6u);
  EXPECT_EQ(both.u.tensors[5], &y.handle);
  const std::vector<bp_value> mixed = {i(1), bp_value{}, f(2)};
  EXPECT_EQ(make_list(arena_, mixed).tag, BP_TAG_VALUE_LIST);
  const std::vector<bp_value> floats = {f(1), f(2)};
  EXPECT_EQ(make_list(arena_, floats).tag, BP_TAG_FLOAT_LIST);
  const std::vector<bp_value> bools = {bool_value(1), bool_value(0)};
  EXPECT_EQ(list_element(make_list(arena_, bools), 1).u.i, 0);
  EXPECT_EQ(make_list(arena_, {}, BP_TAG_TENSOR_LIST).tag, BP_TAG_TENSOR_LIST);
  EXPECT_EQ(run("repeat", {x.value(), i(2)}).tag, BP_TAG_TENSOR_LIST);
}

TEST_F(Builtins, ShapesAndAxes) {
  EXPECT_THAT(as_ints("broadcast_shapes", {list({3, 1}), list({4})}), ElementsAre(3, 4));
  EXPECT_THAT(as_ints("broadcast_shapes", {list({}), list({0})}), ElementsAre(0));
  EXPECT_NE(refusal("broadcast_shapes", {list({3}), list({4})}), "");
  EXPECT_THAT(as_ints("expanded_axes", {list({1, 3}), list({2, 5, 3})}), ElementsAre(0, 1));
  EXPECT_NE(refusal("expanded_axes", {list({2}), list({3})}), "");
  EXPECT_NE(refusal("expanded_axes", {list({1, 1}), list({1})}), "");
  EXPECT_EQ(as_int("normalize_axis", {i(-1), i(3)}), 2);
  EXPECT_NE(refusal("normalize_axis", {i(3), i(3)}), "");
  EXPECT_THAT(as_ints("normalize_axes", {bp_value{}, i(3)}), ElementsAre(0, 1, 2));
  EXPECT_THAT(as_ints("normalize_axes", {i(-1), i(3)}), ElementsAre(2));
  EXPECT_THAT(as_ints("normalize_axes", {list({-1, 0}), i(3)}), ElementsAre(2, 0));
  EXPECT_NE(refusal("normalize_axes", {list({-1, 2}), i(3)}), "");
  EXPECT_NE(refusal("normalize_axes", {bp_value{}, i(-1)}), "");
  EXPECT_THAT(as_ints("reduced_shape", {list({2, 3, 4}), i(1), bool_value(false)}), ElementsAre(2, 4));
  EXPECT_THAT(as_ints("reduced_shape", {list({2, 3, 4}), bp_value{}, bool_value(true)}), ElementsAre(1, 1, 1));
  EXPECT_EQ(as_int("count", {list({2, 3, 4}), list({0, -1})}), 8);
  EXPECT_EQ(as_int("count", {list({2, 3, 4}), bp_value{}}), 24);
  EXPECT_THAT(as_ints("inverse_permutation", {list({2, 0, 1})}), ElementsAre(1, 2, 0));
  EXPECT_THAT(as_ints("inverse_permutation", {list({-1, 0, 1})}), ElementsAre(1, 2, 0));
  EXPECT_NE(refusal("inverse_permutation", {list({0, 0})}), "");
  EXPECT_EQ(as_int("shift_axis", {i(1), i(1)}), 2);
  EXPECT_EQ(as_int("shift_axis", {i(-1), i(1)}), -1);
  EXPECT_THAT(as_ints("shift_axes", {list({0, -1}), i(2)}), ElementsAre(2, -1));
  EXPECT_EQ(run("shift_axes", {bp_value{}, i(2)}).tag, BP_TAG_ABSENT);
  EXPECT_TRUE(as_bool("present", {i(0)}));
  EXPECT_FALSE(as_bool("present", {bp_value{}}));
  EXPECT_EQ(as_int("default", {bp_value{}, i(3)}), 3);
  EXPECT_EQ(as_int("default", {i(4), i(3)}), 4);
}

TEST_F(Builtins, Dtypes) {
  EXPECT_TRUE(as_bool("is_floating", {dtype_of(BP_BFLOAT16)}));
  EXPECT_FALSE(as_bool("is_floating", {dtype_of(BP_COMPLEX64)}));
  EXPECT_TRUE(as_bool("is_complex", {dtype_of(BP_COMPLEX64)}));
  EXPECT_TRUE(as_bool("is_integer", {dtype_of(BP_UINT8)}));
  EXPECT_FALSE(as_bool("is_integer", {dtype_of(BP_BOOL)}));
  EXPECT_TRUE(as_bool("is_bool", {dtype_of(BP_BOOL)}));
  EXPECT_EQ(as_dtype("real_dtype", {dtype_of(BP_COMPLEX128)}), BP_FLOAT64);
  EXPECT_EQ(as_dtype("complex_dtype", {dtype_of(BP_FLOAT32)}), BP_COMPLEX64);
  EXPECT_EQ(as_dtype("promote", {dtype_of(BP_INT8), dtype_of(BP_UINT8)}), BP_INT16);
  EXPECT_NE(refusal("promote", {dtype_of(BP_INT8), dtype_of(BP_UINT64)}), "");
  EXPECT_EQ(as_dtype("number_dtype", {f(1)}), kDefaultFloat);
  EXPECT_EQ(as_dtype("number_dtype", {bool_value(1)}), BP_BOOL);
  EXPECT_EQ(as_float("finfo_max", {dtype_of(BP_FLOAT32)}), double{std::numeric_limits<float>::max()});
  EXPECT_EQ(as_float("finfo_min", {dtype_of(BP_FLOAT64)}), std::numeric_limits<double>::lowest());
  EXPECT_EQ(as_float("finfo_max", {dtype_of(BP_FLOAT16)}), 65504);
  EXPECT_EQ(as_float("finfo_eps", {dtype_of(BP_BFLOAT16)}), 1.0 / 128);
  EXPECT_EQ(as_float("finfo_eps", {dtype_of(BP_COMPLEX64)}), double{std::numeric_limits<float>::epsilon()});
  EXPECT_NE(refusal("finfo_max", {dtype_of(BP_INT32)}), "");
  EXPECT_NE(refusal("is_bool", {i(1)}), "");
}

TEST_F(Builtins, RequireGivesItsValueOrAnErrorOfItsKind) {
  bp_value text{};
  text.tag = BP_TAG_STRING;
  text.u.s = "k at most 5";
  text.count = 11;
  EXPECT_EQ(as_int("require", {i(3), bool_value(1), text}), 3);
  EXPECT_THAT(refusal("require", {i(7), bool_value(0), text}), HasSubstr("t::op: found 7, expected k at most 5"));
  EXPECT_THAT(refusal("require_value", {f(0.5), bool_value(0), text}),
              HasSubstr("t::op: found 0.5, expected k at most 5"));
  bp_status code = BP_OK;
  error_of([&] { run("require", {i(7), bool_value(0), text}); }, &code);
  EXPECT_EQ(code, BP_ERROR_SHAPE);
  error_of([&] { run("require_value", {i(7), bool_value(0), text}); }, &code);
  EXPECT_EQ(code, BP_ERROR_VALUE);
  EXPECT_THAT(refusal("require", {list({1}), bool_value(0), text}), HasSubstr("t::op: expected k at most 5"));
  EXPECT_THAT(refusal("require", {i(3), bool_value(1), i(1)}), HasSubstr("expected a text"));
}

TEST(ValueArena, HandsOutMemoryBeyondItsOwn) {
  ValueArena arena;
  std::vector<int64_t*> blocks;
  for (int n = 0; n < 200; ++n) {
    blocks.push_back(arena.array<int64_t>(static_cast<size_t>(n)));
    std::fill_n(blocks.back(), n, n);
  }
  for (int n = 0; n < 200; ++n)
    for (int k = 0; k < n; ++k) ASSERT_EQ(blocks[static_cast<size_t>(n)][k], n);
}

}  // namespace
}  // namespace backplane::core

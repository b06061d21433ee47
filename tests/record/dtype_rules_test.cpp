// Laws of promotion, and the dtypes of calls by their records' rules.
#include "record/dtype_rules.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "record/toy_record.hpp"

namespace backplane::core {
namespace {

using testing::HasSubstr;

bool in(bp_dtype dtype, bp_dtype_mask mask) { return (BP_DTYPE_BIT(dtype) & mask) != 0; }

TEST(Promotion, CommutesAndIsIdempotent) {
  for (bp_dtype a = 0; a < BP_DTYPE_COUNT; ++a) {
    EXPECT_EQ(kPromotion[a][a], a);
    for (bp_dtype b = 0; b < BP_DTYPE_COUNT; ++b) EXPECT_EQ(kPromotion[a][b], kPromotion[b][a]);
  }
}

TEST(Promotion, AResultAbsorbsItsOperands) {
  for (bp_dtype a = 0; a < BP_DTYPE_COUNT; ++a)
    for (bp_dtype b = 0; b < BP_DTYPE_COUNT; ++b) {
      const bp_dtype both = kPromotion[a][b];
      if (both == BP_DTYPE_NONE) continue;
      EXPECT_EQ(kPromotion[both][a], both) << kDtypeNames[a] << " " << kDtypeNames[b];
    }
}

TEST(Promotion, IsAssociativeWithinAKind) {
  for (bp_dtype_mask kind : {BP_MASK_SIGNED, BP_MASK_UNSIGNED, BP_MASK_FLOATING, BP_MASK_COMPLEX})
    for (bp_dtype a = 0; a < BP_DTYPE_COUNT; ++a)
      for (bp_dtype b = 0; b < BP_DTYPE_COUNT; ++b)
        for (bp_dtype c = 0; c < BP_DTYPE_COUNT; ++c) {
          if (!in(a, kind) || !in(b, kind) || !in(c, kind)) continue;
          EXPECT_EQ(kPromotion[kPromotion[a][b]][c], kPromotion[a][kPromotion[b][c]]);
        }
}

TEST(Promotion, FollowsTheStandardAndCompletesIt) {
  EXPECT_EQ(kPromotion[BP_INT8][BP_INT32], BP_INT32);
  EXPECT_EQ(kPromotion[BP_INT8][BP_UINT8], BP_INT16);
  EXPECT_EQ(kPromotion[BP_INT64][BP_UINT8], BP_INT64);
  EXPECT_EQ(kPromotion[BP_INT16][BP_UINT32], BP_INT64);
  EXPECT_EQ(kPromotion[BP_INT8][BP_UINT64], BP_DTYPE_NONE);
  EXPECT_EQ(kPromotion[BP_INT64][BP_UINT64], BP_DTYPE_NONE);
  EXPECT_EQ(kPromotion[BP_FLOAT32][BP_FLOAT64], BP_FLOAT64);
  EXPECT_EQ(kPromotion[BP_FLOAT32][BP_COMPLEX64], BP_COMPLEX64);
  EXPECT_EQ(kPromotion[BP_FLOAT64][BP_COMPLEX64], BP_COMPLEX128);
  EXPECT_EQ(kPromotion[BP_FLOAT16][BP_BFLOAT16], BP_FLOAT32);
  EXPECT_EQ(kPromotion[BP_FLOAT16][BP_FLOAT32], BP_FLOAT32);
  EXPECT_EQ(kPromotion[BP_INT64][BP_FLOAT16], BP_FLOAT16);
  EXPECT_EQ(kPromotion[BP_BOOL][BP_UINT64], BP_UINT64);
  EXPECT_EQ(kPromotion[BP_UINT64][BP_COMPLEX64], BP_COMPLEX64);
}

TEST(Promotion, ANumberIsWeak) {
  EXPECT_EQ(promote_number(BP_INT8, BP_TAG_INT), BP_INT8);
  EXPECT_EQ(promote_number(BP_FLOAT16, BP_TAG_FLOAT), BP_FLOAT16);
  EXPECT_EQ(promote_number(BP_INT8, BP_TAG_FLOAT), kDefaultFloat);
  EXPECT_EQ(promote_number(BP_BOOL, BP_TAG_INT), BP_INT64);
  EXPECT_EQ(promote_number(BP_BOOL, BP_TAG_BOOL), BP_BOOL);
  EXPECT_EQ(promote_number(BP_FLOAT64, BP_TAG_COMPLEX), BP_COMPLEX128);
  EXPECT_EQ(promote_number(BP_BFLOAT16, BP_TAG_COMPLEX), BP_COMPLEX64);
}

TEST(DtypeTables, AgreeWithEachOther) {
  for (bp_dtype d = 0; d < BP_DTYPE_COUNT; ++d) {
    EXPECT_EQ(dtype_from_dlpack(kDLDtypes[d]), d);
    EXPECT_EQ(kItemSize[d] * 8, kDLDtypes[d].bits);
    EXPECT_EQ(complex_dtype(real_dtype(d)), complex_dtype(d));
    EXPECT_FALSE(in(real_dtype(d), BP_MASK_COMPLEX));
    EXPECT_TRUE(in(complex_dtype(d), BP_MASK_COMPLEX));
  }
  EXPECT_EQ(dtype_from_dlpack({kDLInt, 4, 1}), BP_DTYPE_NONE);
  EXPECT_EQ(dtype_from_dlpack({kDLFloat, 32, 2}), BP_DTYPE_NONE);
  EXPECT_EQ(accumulate_dtype(BP_INT8), BP_INT64);
  EXPECT_EQ(accumulate_dtype(BP_UINT16), BP_UINT64);
  EXPECT_EQ(accumulate_dtype(BP_FLOAT16), BP_FLOAT16);
}

bp_dtype compute(const OpRecord& op, const std::vector<bp_value>& args) {
  return compute_dtype(op, args.data(), static_cast<int32_t>(args.size()));
}

class ComputeDtype : public testing::Test {
 protected:
  std::unique_ptr<OpRecord> add_ = ToyRecord("t::add").tensors({"x", "y"}).record();
  ToyTensor f32_{{2}}, f64_{{2}, BP_FLOAT64}, i32_{{2}, BP_INT32}, u64_{{2}, BP_UINT64}, i8_{{2}, BP_INT8};
};

TEST_F(ComputeDtype, PromotesTensors) {
  EXPECT_EQ(compute(*add_, {f32_.value(), f32_.value()}), BP_FLOAT32);
  EXPECT_EQ(compute(*add_, {f32_.value(), f64_.value()}), BP_FLOAT64);
  EXPECT_EQ(compute(*add_, {i32_.value(), f32_.value()}), BP_FLOAT32);
  EXPECT_EQ(compute(*add_, {f32_.value(), bp_value{}}), BP_FLOAT32);
}

TEST_F(ComputeDtype, TakesNumbersWeakly) {
  const double c[2] = {0, 1};
  EXPECT_EQ(compute(*add_, {i8_.value(), int_value(1000, BP_VALUE_NUMBER)}), BP_INT8);
  EXPECT_EQ(compute(*add_, {float_value(1, BP_VALUE_NUMBER), f64_.value()}), BP_FLOAT64);
  EXPECT_EQ(compute(*add_, {i8_.value(), float_value(1, BP_VALUE_NUMBER)}), kDefaultFloat);
  EXPECT_EQ(compute(*add_, {f64_.value(), complex_value(c, BP_VALUE_NUMBER)}), BP_COMPLEX128);
  EXPECT_EQ(compute(*add_, {int_value(1, BP_VALUE_NUMBER), int_value(2, BP_VALUE_NUMBER)}), BP_INT64);
  EXPECT_EQ(compute(*add_, {bool_value(1, BP_VALUE_NUMBER), float_value(2, BP_VALUE_NUMBER)}), kDefaultFloat);
}

TEST_F(ComputeDtype, ATensorMadeFromANumberIsWeakToo) {
  ToyTensor weak({}, BP_FLOAT64);
  weak.handle.flags |= BP_TENSOR_NUMBER;
  EXPECT_EQ(compute(*add_, {f32_.value(), weak.value()}), BP_FLOAT32);
  EXPECT_EQ(compute(*add_, {weak.value(), i8_.value()}), kDefaultFloat);
  EXPECT_EQ(compute(*add_, {weak.value(), weak.value()}), BP_FLOAT64);
}

TEST_F(ComputeDtype, RefusesWhatHasNoCommonDtype) {
  bp_status code = 0;
  const std::string text = error_of([&] { compute(*add_, {u64_.value(), i8_.value()}); }, &code);
  EXPECT_EQ(code, BP_ERROR_DTYPE);
  EXPECT_THAT(text, HasSubstr("t::add: argument 'y' is int8"));
  EXPECT_THAT(text, HasSubstr("uint64"));
}

TEST_F(ComputeDtype, ChecksWhatIsAccepted) {
  ToyRecord toy("t::sin");
  toy.tensors({"x"});
  toy.accepts[0] = BP_MASK_FLOATING;
  const auto strict = toy.record();
  EXPECT_EQ(compute(*strict, {f32_.value()}), BP_FLOAT32);
  const std::string text = error_of([&] { compute(*strict, {i32_.value()}); });
  EXPECT_THAT(text, HasSubstr("argument 'x'"));
  EXPECT_THAT(text, HasSubstr("int32; accepted: float16, bfloat16, float32, float64. Fix: cast it, to float32 for"));
  toy.dtype_flags = BP_DTYPE_TO_FLOATING;
  EXPECT_EQ(compute(*toy.record(), {i32_.value()}), kDefaultFloat);
  EXPECT_EQ(compute(*toy.record(), {f64_.value()}), BP_FLOAT64);
}

TEST_F(ComputeDtype, AnArgumentOutsideOfPromotionIsCheckedAsGiven) {
  ToyRecord toy("t::take");
  toy.tensors({"x", "index"});
  toy.promote = 1;
  toy.accepts[1] = BP_MASK_INTEGER;
  const auto take = toy.record();
  EXPECT_EQ(compute(*take, {f32_.value(), i32_.value()}), BP_FLOAT32);
  EXPECT_EQ(compute(*take, {f32_.value(), int_value(1, BP_VALUE_NUMBER)}), BP_FLOAT32);
  EXPECT_THAT(error_of([&] { compute(*take, {f32_.value(), f64_.value()}); }), HasSubstr("'index' is float64"));
  EXPECT_THAT(error_of([&] { compute(*take, {f32_.value(), float_value(1, BP_VALUE_NUMBER)}); }), HasSubstr("'index'"));
}

TEST_F(ComputeDtype, WithBitsAllMustAgree) {
  ToyRecord toy("t::matmul");
  toy.tensors({"x", "y"});
  toy.dtype_flags = BP_DTYPE_BITS;
  const auto op = toy.record();
  EXPECT_EQ(compute(*op, {f32_.value(), f32_.value()}), BP_FLOAT32);
  EXPECT_EQ(compute(*op, {f32_.value(), int_value(1, BP_VALUE_NUMBER)}), BP_FLOAT32);
  EXPECT_NE(error_of([&] { compute(*op, {f32_.value(), f64_.value()}); }), "");
  EXPECT_NE(error_of([&] { compute(*op, {i32_.value(), float_value(1, BP_VALUE_NUMBER)}); }), "");
}

TEST_F(ComputeDtype, AListPromotesItsElements) {
  ToyRecord toy("t::concat");
  toy.arg("xs", BP_TYPE_TENSOR, BP_ARG_LIST);
  toy.result("out", "concat", {0});
  const auto concat = toy.record();
  const std::vector<bp_tensor*> both = {&f32_.handle, nullptr, &f64_.handle};
  EXPECT_EQ(compute(*concat, {tensors_value(both)}), BP_FLOAT64);
}

TEST_F(ComputeDtype, WithoutPromotionTheFirstTensorDecides) {
  ToyRecord toy("t::copy");
  toy.tensors({"x", "y"});
  toy.promote = 0;
  EXPECT_EQ(compute(*toy.record(), {i8_.value(), f64_.value()}), BP_INT8);
}

TEST(ResultDtype, FollowsEachKindOfRule) {
  ToyRecord toy("t::op");
  toy.tensors({"x"});
  const uint32_t dtype = toy.arg("dtype", BP_TYPE_DTYPE, BP_ARG_OPTIONAL);
  toy.result("a", "same", {0});
  toy.result("b", "same", {0}, {BP_RESULT_DTYPE_FIXED, 0, BP_BOOL, 0, 0});
  toy.result("c", "same", {0}, {BP_RESULT_DTYPE_OF_ARG, 0, 0, 0, 0});
  toy.result("d", "same", {0}, {BP_RESULT_DTYPE_FROM_ARG, BP_RESULT_DTYPE_ACCUMULATE, dtype, 0, 0});
  toy.result("e", "same", {0}, {BP_RESULT_DTYPE_REAL, 0, 0, 0, 0});
  toy.result("f", "same", {0}, {BP_RESULT_DTYPE_COMPLEX, 0, 0, 0, 0});
  toy.result("g", "same", {0}, {BP_RESULT_DTYPE_FROM_ARG, BP_RESULT_DTYPE_FIXED, dtype, BP_INT16, 0});
  const auto op = toy.record();
  ToyTensor x({}, BP_INT8);
  const bp_value plain[2] = {x.value(), bp_value{}};
  const bp_value stated[2] = {x.value(), dtype_of(BP_FLOAT64)};
  const bp_dtype expected[] = {BP_COMPLEX128, BP_BOOL, BP_INT8, BP_COMPLEX128, BP_FLOAT64, BP_COMPLEX128, BP_INT16};
  for (int32_t i = 0; i < 7; ++i) EXPECT_EQ(result_dtype(*op, plain, 2, i, BP_COMPLEX128), expected[i]) << i;
  EXPECT_EQ(result_dtype(*op, plain, 2, 3, BP_INT8), BP_INT64);
  EXPECT_EQ(result_dtype(*op, stated, 2, 3, BP_INT8), BP_FLOAT64);
  EXPECT_EQ(result_dtype(*op, stated, 2, 6, BP_INT8), BP_FLOAT64);
}

TEST(ResultDtype, ACreationOpComputesInTheDtypeItIsAskedFor) {
  ToyRecord toy("t::full");
  toy.arg("shape", BP_TYPE_SHAPE);
  const uint32_t value = toy.arg("value", BP_TYPE_SCALAR);
  const uint32_t dtype = toy.arg("dtype", BP_TYPE_DTYPE, BP_ARG_OPTIONAL);
  toy.promote = 1u << value;
  toy.result("out", "arg", {0}, {BP_RESULT_DTYPE_FROM_ARG, BP_RESULT_DTYPE_COMPUTE, dtype, 0, 0});
  const auto full = toy.record();
  const Ints shape = {2};
  EXPECT_EQ(compute(*full, {ints_value(shape), int_value(1), bp_value{}}), BP_INT64);
  EXPECT_EQ(compute(*full, {ints_value(shape), int_value(1), dtype_of(BP_FLOAT16)}), BP_FLOAT16);
}

}  // namespace
}  // namespace backplane::core

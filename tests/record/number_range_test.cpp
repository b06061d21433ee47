// The numbers that a dtype holds, and the replacement of an int beyond them in a comparison.
#include "record/number_range.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "backplane/operand.hpp"
#include "record/toy_record.hpp"

namespace backplane::core {
namespace {

bp_value number_of(auto x) { return Operand(x).borrowed; }

template <class T>
void check_limits(bp_dtype dtype) {
  const T least = std::numeric_limits<T>::min(), most = std::numeric_limits<T>::max();
  for (const bp_value& inside : {number_of(least), number_of(most), number_of(T{0}), number_of(true)})
    EXPECT_TRUE(holds_number(dtype, inside)) << dtype;
  const double below = std::nextafter(static_cast<double>(least) - 1, -INFINITY);
  const double above = std::ldexp(1.0, std::numeric_limits<T>::digits);
  for (const double outside : {below, above, static_cast<double>(NAN), static_cast<double>(INFINITY)})
    EXPECT_FALSE(holds_number(dtype, number_of(outside))) << dtype << " " << outside;
  EXPECT_TRUE(holds_number(dtype, number_of(-0.5))) << dtype;
  if (sizeof(T) < 8) {
    EXPECT_FALSE(holds_number(dtype, number_of(int64_t{least} - 1))) << dtype;
    EXPECT_FALSE(holds_number(dtype, number_of(static_cast<int64_t>(most) + 1))) << dtype;
  }
  EXPECT_EQ(holds_number(dtype, number_of(uint64_t{1} << 63)), dtype == BP_UINT64);
  EXPECT_EQ(holds_number(dtype, number_of(int64_t{-1})), std::is_signed_v<T>);
}

TEST(NumberRange, AnIntegerDtypeHoldsWhatItsTypeDoes) {
  check_limits<int8_t>(BP_INT8);
  check_limits<int16_t>(BP_INT16);
  check_limits<int32_t>(BP_INT32);
  check_limits<int64_t>(BP_INT64);
  check_limits<uint8_t>(BP_UINT8);
  check_limits<uint16_t>(BP_UINT16);
  check_limits<uint32_t>(BP_UINT32);
  check_limits<uint64_t>(BP_UINT64);
}

TEST(NumberRange, FloatsHoldAllRealNumbersAndComplexDtypesAll) {
  const double pair[2] = {1, 2};
  for (bp_dtype dtype : {BP_FLOAT16, BP_BFLOAT16, BP_FLOAT32, BP_FLOAT64, BP_COMPLEX64, BP_COMPLEX128}) {
    for (const bp_value& number : {number_of(std::numeric_limits<uint64_t>::max()), number_of(-1), number_of(1e300)})
      EXPECT_TRUE(holds_number(dtype, number));
    EXPECT_EQ(holds_number(dtype, complex_value(pair)), dtype >= BP_COMPLEX64);
  }
}

TEST(NumberRange, AnIntOfCppKeepsItsSize) {
  const bp_value top = number_of(std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(top.tag, BP_TAG_INT);
  EXPECT_TRUE(top.flags & BP_VALUE_UINT64);
  EXPECT_TRUE(top.flags & BP_VALUE_NUMBER);
  EXPECT_EQ(real_of_number(top), 0x1p64);
  EXPECT_EQ(Scalar(uint64_t{5}).borrowed.flags & BP_VALUE_UINT64, 0);
  EXPECT_EQ(real_of_number(number_of(-3)), -3);
}

}  // namespace
}  // namespace backplane::core

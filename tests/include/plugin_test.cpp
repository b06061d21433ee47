// The header for plugin authors: half floats, typed kernels, the guard at the edge, and the query.
#include "backplane/plugin.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace {

using namespace backplane::plugin;
using ::testing::HasSubstr;

// ---- half floats: every value, and every boundary between two of them
// --------------------------------------------------

double half_value(uint32_t magnitude, int exponent_bits, int mantissa_bits) {
  const uint32_t exponent = magnitude >> mantissa_bits, mantissa = magnitude & ((1u << mantissa_bits) - 1);
  const int bias = (1 << (exponent_bits - 1)) - 1;
  if (exponent == 0) return std::ldexp(mantissa, 1 - bias - mantissa_bits);
  return std::ldexp(mantissa + (1u << mantissa_bits), static_cast<int>(exponent) - bias - mantissa_bits);
}

template <class Half>
void check_every_value(int exponent_bits, int mantissa_bits) {
  const uint32_t infinity = ((1u << exponent_bits) - 1) << mantissa_bits;
  const auto bits_of = [](double value) { return Half(static_cast<float>(value)).bits; };
  for (uint32_t m = 0; m < infinity; ++m) {
    Half half;
    half.bits = static_cast<uint16_t>(m);
    const double value = half_value(m, exponent_bits, mantissa_bits),
                 next = half_value(m + 1, exponent_bits, mantissa_bits);
    ASSERT_EQ(static_cast<double>(static_cast<float>(half)), value);
    ASSERT_EQ(bits_of(value), m);
    ASSERT_EQ(bits_of(-value), m | 0x8000u);
    const auto middle = static_cast<float>((value + next) / 2);
    if (static_cast<double>(middle) != (value + next) / 2) continue;  // the boundary is no float32
    ASSERT_EQ(Half(middle).bits, m + (m & 1)) << "ties go to even, at " << middle;
    ASSERT_EQ(Half(std::nextafter(middle, 0.0f)).bits, m);
    ASSERT_EQ(Half(std::nextafter(middle, std::numeric_limits<float>::infinity())).bits, m + 1);
  }
  EXPECT_EQ(bits_of(std::numeric_limits<double>::infinity()), infinity);
  EXPECT_TRUE(std::isnan(static_cast<float>(Half(std::numeric_limits<float>::quiet_NaN()))));
  EXPECT_TRUE(std::isnan(static_cast<float>(Half(std::bit_cast<float>(0x7f800001u)))));
}

TEST(Float16, EveryValueAndBoundary) { check_every_value<float16>(5, 10); }
TEST(Bfloat16, EveryValueAndBoundary) { check_every_value<bfloat16>(8, 7); }

// ---- kernels
// -----------------------------------------------------------------------------------------------------------

std::string message;

bp_host make_host() {
  bp_host host{};
  host.header = BP_HEADER(bp_host);
  host.set_error = [](bp_status, const char* text) { message = text; };
  host.parallel_for = [](int64_t begin, int64_t end, int64_t, bp_parallel_body body, void* context) {
    for (int64_t i = begin; i < end; ++i)
      if (const bp_status status = body(context, i, i + 1, 0); status != BP_OK) return status;
    return bp_status{BP_OK};
  };
  return host;
}
const bp_host host = make_host();

struct Vector {
  explicit Vector(std::vector<float> elements) : data(std::move(elements)), size(static_cast<int64_t>(data.size())) {
    tensor.dl.data = data.data();
    tensor.dl.ndim = 1;
    tensor.dl.shape = &size;
    tensor.dl.strides = &step;
    tensor.dtype = BP_FLOAT32;
    tensor.nbytes = data.size() * sizeof(float);
  }
  bp_value value() {
    bp_value v{};
    v.tag = BP_TAG_TENSOR;
    v.u.t = &tensor;
    return v;
  }
  std::vector<float> data;
  int64_t size, step = 1;
  bp_tensor tensor{};
};
bp_value real(double x) {
  bp_value v{};
  v.tag = BP_TAG_FLOAT;
  v.u.f = x;
  return v;
}

bp_status call(bp_kernel_fn fn, std::vector<bp_value> args, std::vector<bp_value> outs) {
  const bp_op_info op{BP_HEADER(bp_op_info), "acme::op", 0, 0, nullptr};
  bp_frame frame{};
  frame.header = BP_HEADER(bp_frame);
  frame.host = &host;
  frame.op = &op;
  frame.compute = BP_FLOAT32;
  message.clear();
  return fn(&frame, args.data(), static_cast<int32_t>(args.size()), outs.data(), static_cast<int32_t>(outs.size()));
}

void axpby(Context, ConstTensor<float> x, ConstTensor<float> y, double alpha, double beta, MutTensor<float> out) {
  for (int64_t i = 0; i < out.size(); ++i) out(i) = static_cast<float>(alpha * x(i) + beta * y(i));
}

TEST(Kernel, UnpacksArgumentsInOrder) {
  Vector x({1, 2}), y({10, 20}), out({0, 0});
  ASSERT_EQ(call(kernel<axpby>, {x.value(), y.value(), real(2), real(0.5)}, {out.value()}), BP_OK);
  EXPECT_THAT(out.data, ::testing::ElementsAre(7, 14));
}

TEST(Kernel, NamesTheArgumentThatDoesNotFit) {
  Vector x({1}), out({0});
  EXPECT_EQ(call(kernel<axpby>, {x.value(), real(1), real(2), real(3)}, {out.value()}), BP_ERROR_TYPE);
  EXPECT_THAT(message, HasSubstr("acme::op: argument 1"));
  x.tensor.dtype = BP_INT32;
  EXPECT_EQ(call(kernel<axpby>, {x.value(), x.value(), real(2), real(3)}, {out.value()}), BP_ERROR_DTYPE);
  EXPECT_THAT(message, HasSubstr("int32"));
  EXPECT_EQ(call(kernel<axpby>, {x.value()}, {out.value()}), BP_ERROR_INTERNAL);
}

TEST(Kernel, HasAParameterForEachArgumentAndResult) {
  Vector x({1}), out({5});
  EXPECT_EQ(call(kernel<axpby>, {x.value(), x.value(), real(1), real(2), real(3)}, {out.value()}), BP_ERROR_INTERNAL);
  EXPECT_THAT(message,
              HasSubstr("acme::op: the kernel has parameters for 4 arguments and 1 results, the op has 5 and 1"));
  EXPECT_EQ(call(kernel<axpby>, {x.value(), x.value(), real(1), real(2)}, {out.value(), x.value()}), BP_ERROR_INTERNAL);
  EXPECT_EQ(out.data[0], 5);
}

void optional_parts(ConstTensor<float> x, std::optional<ConstTensor<float>> bias, std::optional<MutTensor<float>> sum,
                    std::optional<MutTensor<float>> copy) {
  if (sum) (*sum)(0) = x(0) + (bias ? (*bias)(0) : 0.0f);
  if (copy) (*copy)(0) = x(0);
}

TEST(Kernel, AbsentAndUnwantedAreEmptyOptionals) {
  Vector x({3}), sum({0}), copy({0});
  bp_value unwanted{};
  unwanted.flags = BP_VALUE_NOT_WANTED;
  ASSERT_EQ(call(kernel<optional_parts>, {x.value(), bp_value{}}, {sum.value(), unwanted}), BP_OK);
  EXPECT_EQ(sum.data[0], 3);
  ASSERT_EQ(call(kernel<optional_parts>, {x.value(), x.value()}, {unwanted, copy.value()}), BP_OK);
  EXPECT_EQ(copy.data[0], 3);
}

struct Scale {
  template <class T>
  static void run(ConstTensor<T> x, double by, MutTensor<T> out) {
    out(0) = T(static_cast<Compute<T>>(x(0) * by));
  }
};

TEST(Kernel, ByDtypeTakesTheMaskAlone) {
  Vector x({3}), out({0});
  constexpr auto floating = kernel_by_dtype<Scale, BP_MASK_FLOATING>;
  constexpr auto halves = kernel_by_dtype<Scale, BP_DTYPE_BIT(BP_FLOAT16)>;
  ASSERT_EQ(call(floating, {x.value(), real(2)}, {out.value()}), BP_OK);
  EXPECT_EQ(out.data[0], 6);
  EXPECT_EQ(call(halves, {x.value(), real(2)}, {out.value()}), BP_ERROR_DTYPE);
}

// ---- the guard
// ---------------------------------------------------------------------------------------------------------

TEST(Guard, TurnsEveryExceptionIntoAStatus) {
  EXPECT_EQ(guard(&host, [] {}), BP_OK);
  EXPECT_EQ(guard(&host, [] { BP_CHECK(1 > 2, SHAPE, "k=", 3); }), BP_ERROR_SHAPE);
  EXPECT_EQ(message, "k=3");
  EXPECT_EQ(guard(&host, [] { throw std::bad_alloc(); }), BP_ERROR_MEMORY);
  EXPECT_EQ(guard(&host, [] { throw std::runtime_error("broken"); }), BP_ERROR_INTERNAL);
  EXPECT_EQ(message, "broken");
  EXPECT_EQ(guard(&host, [] { throw 7; }), BP_ERROR_INTERNAL);
}

TEST(Guard, CarriesAFailureOutOfAParallelForWithItsMessage) {
  int ran = 0;
  const bp_status status = guard(&host, [&] {
    parallel_for(&host, 0, 10, 1, [&](int64_t begin, int64_t) {
      ++ran;
      BP_CHECK(begin < 3, DATA, "row ", begin, " is bad");
    });
  });
  EXPECT_EQ(status, BP_ERROR_DATA);
  EXPECT_EQ(message, "row 3 is bad");
  EXPECT_EQ(ran, 4);
}

// ---- the query
// ---------------------------------------------------------------------------------------------------------

void register_nothing(Registrar&) {}

}  // namespace

BP_DEFINE_PLUGIN("acme", "1.2", register_nothing, .flags = BP_PLUGIN_UNLOADABLE)

namespace {

TEST(Query, WritesNoFurtherThanTheHostKnows) {
  bp_plugin answer;
  std::memset(static_cast<void*>(&answer), 0x5a, sizeof(answer));
  answer.header.struct_size = offsetof(bp_plugin, stop);
  ASSERT_EQ(bp_plugin_query(BP_ABI_MAJOR, BP_ABI_MINOR, &answer), BP_OK);
  EXPECT_EQ(answer.header.struct_size, offsetof(bp_plugin, stop));
  EXPECT_STREQ(answer.name, "acme");
  EXPECT_EQ(answer.flags, uint32_t{BP_PLUGIN_UNLOADABLE});
  EXPECT_EQ(answer.register_all(answer.context, &host, nullptr), BP_OK);
  uint64_t beyond;
  std::memcpy(&beyond, reinterpret_cast<const char*>(&answer) + offsetof(bp_plugin, stop), sizeof(beyond));
  EXPECT_EQ(beyond, 0x5a5a5a5a5a5a5a5aull);
  EXPECT_EQ(bp_plugin_query(BP_ABI_MAJOR + 1, 0, &answer), BP_ERROR_VERSION);
}

}  // namespace

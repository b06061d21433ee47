// Elementwise kernels: loops over the scalar functions that codegen makes of the registry, and what an integer divisor
// or exponent must be.
#include "kernels.hpp"
#include "loops.hpp"

namespace sim {
namespace {

namespace scalar = backplane::scalar;
using backplane::plugin::accepted;
using backplane::plugin::apply;
using backplane::plugin::ResultOf;

// What a kernel refuses where the function over elements has some value.
struct Nothing {
  template <class T>
  static void refuse(T) {}
};
template <class Op>
struct DivisorZero {
  template <class T>
  static void refuse(T y) {
    if constexpr (std::is_integral_v<T>)
      BP_CHECK(y != 0, DATA, Op::kName, ": an integer divisor is 0; expected every divisor to differ from 0");
  }
};
struct NegativeExponent {
  template <class T>
  static void refuse(T y) {
    if constexpr (std::is_integral_v<T>)
      BP_CHECK(y >= 0, DATA, "pow: an integer exponent is ", +y, "; expected 0 or more, or a floating dtype");
  }
};
struct FloorDivide {
  static constexpr const char* kName = "floor_divide";
};
struct Remainder {
  static constexpr const char* kName = "remainder";
};

template <class Op>
void unary(const Call& call) {
  call.record([loop = call.loop(), dtype = call.compute()] {
    dispatch_dtype<accepted<Op, 1>>(
        dtype, [&]<class T>() { map_one<ResultOf<Op, T, 1>, T>(loop, [](T x) { return apply<Op>(x); }); });
  });
}

template <class Op, class Refused>
void binary(const Call& call) {
  call.record([loop = call.loop(), dtype = call.compute()] {
    dispatch_dtype<accepted<Op, 2>>(dtype, [&]<class T>() {
      map_two<ResultOf<Op, T, 2>, T>(loop, [](T x, T y) {
        Refused::refuse(y);
        return apply<Op>(x, y);
      });
    });
  });
}

void where(const Call& call) {
  dispatch_width(call.compute(), [&]<class T>() {
    call.record([loop = call.loop(BP_BOOL)] {
      for_each_run<4>(loop, [](const auto& at, const auto& step, int64_t n) {
        for (int64_t i = 0; i < n; ++i) {
          const bool holds = *reinterpret_cast<const bool*>(at[1] + i * step[1]);
          const char* chosen = holds ? at[2] + i * step[2] : at[3] + i * step[3];
          *reinterpret_cast<T*>(at[0] + i * step[0]) = *reinterpret_cast<const T*>(chosen);
        }
      });
    });
  });
}

void copy(const Call& call) {
  dispatch_width(call.compute(),
                 [&]<class T>() { call.record([loop = call.loop()] { map_one<T, T>(loop, [](T x) { return x; }); }); });
}

// A result of another dtype does not fit into an operand's memory.
constexpr uint32_t kOtherResult = BP_KERNEL_LOOP | BP_KERNEL_IMMEDIATES;

template <class Op>
constexpr Row one(const char* op, uint32_t flags = kLoopFlags, uint32_t line = __builtin_LINE()) {
  return {op, kernel<unary<Op>>, accepted<Op, 1>, flags, line};
}
template <class Op, class Refused = Nothing>
constexpr Row two(const char* op, uint32_t flags = kLoopFlags, uint32_t line = __builtin_LINE()) {
  return {op, kernel<binary<Op, Refused>>, accepted<Op, 2>, flags, line};
}

constexpr Row kRows[] = {
    {"bp::copy", kernel<copy>, BP_MASK_ANY, BP_KERNEL_LOOP},
    {"bp::where", kernel<where>, kAll, kLoopFlags},
    one<scalar::negative>("bp::negative"),
    one<scalar::abs>("bp::abs", kOtherResult),
    one<scalar::sign>("bp::sign"),
    one<scalar::conj>("bp::conj"),
    one<scalar::bitwise_invert>("bp::bitwise_invert"),
    one<scalar::sqrt>("bp::sqrt"),
    one<scalar::exp>("bp::exp"),
    one<scalar::expm1>("bp::expm1"),
    one<scalar::log>("bp::log"),
    one<scalar::log1p>("bp::log1p"),
    one<scalar::sin>("bp::sin"),
    one<scalar::cos>("bp::cos"),
    one<scalar::atan>("bp::atan"),
    one<scalar::tanh>("bp::tanh"),
    one<scalar::erf>("bp::erf"),
    one<scalar::floor>("bp::floor"),
    one<scalar::ceil>("bp::ceil"),
    one<scalar::trunc>("bp::trunc"),
    one<scalar::round>("bp::round"),
    two<scalar::add>("bp::add"),
    two<scalar::subtract>("bp::subtract"),
    two<scalar::multiply>("bp::multiply"),
    two<scalar::divide>("bp::divide"),
    two<scalar::floor_divide, DivisorZero<FloorDivide>>("bp::floor_divide"),
    two<scalar::remainder, DivisorZero<Remainder>>("bp::remainder"),
    two<scalar::pow, NegativeExponent>("bp::pow"),
    two<scalar::maximum>("bp::maximum"),
    two<scalar::minimum>("bp::minimum"),
    two<scalar::atan2>("bp::atan2"),
    two<scalar::bitwise_and>("bp::bitwise_and"),
    two<scalar::bitwise_or>("bp::bitwise_or"),
    two<scalar::bitwise_xor>("bp::bitwise_xor"),
    two<scalar::bitwise_left_shift>("bp::bitwise_left_shift"),
    two<scalar::bitwise_right_shift>("bp::bitwise_right_shift"),
    two<scalar::equal>("bp::equal", kOtherResult),
    two<scalar::not_equal>("bp::not_equal", kOtherResult),
    two<scalar::less>("bp::less", kOtherResult),
    two<scalar::less_equal>("bp::less_equal", kOtherResult),
    two<scalar::greater>("bp::greater", kOtherResult),
    two<scalar::greater_equal>("bp::greater_equal", kOtherResult),
    {"bp::complex_from", kernel<binary<scalar::complex_from, Nothing>>,
     BP_DTYPE_BIT(BP_FLOAT32) | BP_DTYPE_BIT(BP_FLOAT64), kOtherResult},
};

}  // namespace

Table elementwise_kernels() { return {__FILE__, kRows}; }

}  // namespace sim

// Elementwise kernels: loops over the scalar functions that codegen makes of the registry, which say what an integer
// divisor or exponent must be.
#include "kernels.hpp"
#include "loops.hpp"

namespace sim {
namespace {

namespace scalar = backplane::scalar;
using backplane::plugin::accepted;
using backplane::plugin::apply;
using backplane::plugin::ResultOf;

// What a kernel refuses where the function over elements has some value. `name`: the op's.
template <class Op, class T>
void refuse(const char* name, T y) {
  if constexpr (std::is_integral_v<T> && (Op::kFaults & BP_FAULT_DIVISION))
    BP_CHECK(y != 0, DATA, name, ": an integer divisor is 0; expected every divisor to differ from 0");
  if constexpr (std::is_integral_v<T> && (Op::kFaults & BP_FAULT_EXPONENT))
    BP_CHECK(y >= 0, DATA, name, ": an integer exponent is ", +y, "; expected 0 or more, or a floating dtype");
}

template <class Op>
void unary(const Call& call) {
  call.record([loop = call.loop(), dtype = call.compute()] {
    dispatch_dtype<accepted<Op, 1>>(
        dtype, [&]<class T>() { map_one<ResultOf<Op, T, 1>, T>(loop, [](T x) { return apply<Op>(x); }); });
  });
}

template <class Op>
void binary(const Call& call) {
  call.record([loop = call.loop(), dtype = call.compute(), name = call.op_name()] {
    dispatch_dtype<accepted<Op, 2>>(dtype, [&]<class T>() {
      map_two<ResultOf<Op, T, 2>, T>(loop, [name](T x, T y) {
        refuse<Op>(name, y);
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
template <class Op>
constexpr Row two(const char* op, uint32_t flags = kLoopFlags, uint32_t line = __builtin_LINE()) {
  return {op, kernel<binary<Op>>, accepted<Op, 2>, flags, line};
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
    two<scalar::floor_divide>("bp::floor_divide"),
    two<scalar::remainder>("bp::remainder"),
    two<scalar::pow>("bp::pow"),
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
    {"bp::complex_from", kernel<binary<scalar::complex_from>>, BP_DTYPE_BIT(BP_FLOAT32) | BP_DTYPE_BIT(BP_FLOAT64),
     kOtherResult},
};

}  // namespace

Table elementwise_kernels() { return {__FILE__, kRows}; }

}  // namespace sim

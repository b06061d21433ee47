// Elementwise kernels of two operands, comparisons, and where.
#include <cmath>
#include <complex>
#include <functional>

#include "kernels.hpp"
#include "loops.hpp"

namespace sim {
namespace {

constexpr bp_dtype_mask kWholeFloats = BP_DTYPE_BIT(BP_FLOAT32) | BP_DTYPE_BIT(BP_FLOAT64);

struct Add {
  template <class T>
  static T apply(T x, T y) {
    return wrapping_add(x, y);
  }
};
struct Subtract {
  template <class T>
  static T apply(T x, T y) {
    if constexpr (std::is_integral_v<T>) return wrapping_add(x, wrapping_multiply(static_cast<T>(-1), y));
    return x - y;
  }
};
struct Multiply {
  template <class T>
  static T apply(T x, T y) {
    return wrapping_multiply(x, y);
  }
};
struct Divide {
  template <class T>
  static T apply(T x, T y) {
    return x / y;
  }
};

// The smallest signed value divided by -1 overflows; its negative wraps to itself.
template <class T>
bool divides_by_minus_one(T y) {
  if constexpr (std::is_signed_v<T>) return y == T{-1};
  return false;
}

struct FloorDivide {
  template <class T>
  static T apply(T x, T y) {
    if constexpr (std::is_floating_point_v<T>) {
      return std::floor(x / y);
    } else {
      BP_CHECK(y != 0, DATA, "floor_divide: an integer divisor is 0; expected every divisor to differ from 0");
      if (divides_by_minus_one(y)) return Subtract::apply(T{0}, x);
      const T quotient = static_cast<T>(x / y);
      return static_cast<T>(x % y != 0 && (x < 0) != (y < 0) ? quotient - 1 : quotient);
    }
  }
};
struct Remainder {
  template <class T>
  static T apply(T x, T y) {
    T rest;
    if constexpr (std::is_floating_point_v<T>) {
      rest = std::fmod(x, y);
    } else {
      BP_CHECK(y != 0, DATA, "remainder: an integer divisor is 0; expected every divisor to differ from 0");
      rest = divides_by_minus_one(y) ? T{0} : static_cast<T>(x % y);
    }
    return rest != 0 && (rest < 0) != (y < 0) ? static_cast<T>(rest + y) : rest;
  }
};
struct Pow {
  template <class T>
  static T apply(T x, T y) {
    if constexpr (kIsComplex<T>) {
      return y == T{} ? T(1) : std::pow(x, y);
    } else if constexpr (std::is_floating_point_v<T>) {
      return std::pow(x, y);
    } else {
      BP_CHECK(y >= 0, DATA, "pow: an integer exponent is ", +y, "; expected 0 or more, or a floating dtype");
      T power{1};
      for (auto left = static_cast<uint64_t>(y); left != 0; left >>= 1, x = Multiply::apply(x, x))
        if (left & 1) power = Multiply::apply(power, x);
      return power;
    }
  }
};
struct Maximum {
  template <class T>
  static T apply(T x, T y) {
    return x > y || x != x ? x : y;
  }
};
struct Minimum {
  template <class T>
  static T apply(T x, T y) {
    return x < y || x != x ? x : y;
  }
};
struct Atan2 {
  template <class T>
  static T apply(T x, T y) {
    return std::atan2(x, y);
  }
};
struct And {
  template <class T>
  static T apply(T x, T y) {
    return static_cast<T>(x & y);
  }
};
struct Or {
  template <class T>
  static T apply(T x, T y) {
    return static_cast<T>(x | y);
  }
};
struct Xor {
  template <class T>
  static T apply(T x, T y) {
    return static_cast<T>(x ^ y);
  }
};
template <class T>
bool shifts_out(T places) {  // negative counts become huge ones
  return static_cast<uint64_t>(places) >= sizeof(T) * 8;
}
struct LeftShift {
  template <class T>
  static T apply(T x, T y) {
    return shifts_out(y) ? T{0} : static_cast<T>(static_cast<uint64_t>(x) << y);
  }
};
struct RightShift {
  template <class T>
  static T apply(T x, T y) {
    if (shifts_out(y)) return static_cast<T>(x < 0 ? -1 : 0);
    return static_cast<T>(x >> y);
  }
};

template <class Op, bp_dtype_mask kMask>
void binary(const Call& call) {
  dispatch_dtype<kMask>(call.compute(), [&]<class T>() {
    call.record([loop = call.loop()] {
      map_two<T, T>(loop, [](T x, T y) { return static_cast<T>(Op::template apply<Compute<T>>(x, y)); });
    });
  });
}

void complex_from(const Call& call) {
  dispatch_dtype<kWholeFloats>(call.compute(), [&]<class T>() {
    call.record([loop = call.loop()] {
      map_two<std::complex<T>, T>(loop, [](T re, T im) { return std::complex<T>(re, im); });
    });
  });
}

template <class Op, bp_dtype_mask kMask>
void compare(const Call& call) {
  dispatch_dtype<kMask>(call.compute(), [&]<class T>() {
    call.record(
        [loop = call.loop()] { map_two<bool, T>(loop, [](T x, T y) { return Op{}(Compute<T>(x), Compute<T>(y)); }); });
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

template <class Op, bp_dtype_mask kMask>
constexpr Row row(const char* op, uint32_t line = __builtin_LINE()) {
  return {op, kernel<binary<Op, kMask>>, kMask, kLoopFlags, line};
}
template <class Op, bp_dtype_mask kMask>
constexpr Row comparison(const char* op, uint32_t line = __builtin_LINE()) {
  return {op, kernel<compare<Op, kMask>>, kMask, BP_KERNEL_LOOP | BP_KERNEL_IMMEDIATES, line};
}

constexpr Row kRows[] = {
    {"bp::complex_from", kernel<complex_from>, kWholeFloats, BP_KERNEL_LOOP | BP_KERNEL_IMMEDIATES},
    row<Add, kAll>("bp::add"),
    row<Subtract, kNumbers>("bp::subtract"),
    row<Multiply, kAll>("bp::multiply"),
    row<Divide, kInexact>("bp::divide"),
    row<FloorDivide, kReals>("bp::floor_divide"),
    row<Remainder, kReals>("bp::remainder"),
    row<Pow, kNumbers>("bp::pow"),
    row<Maximum, kOrdered>("bp::maximum"),
    row<Minimum, kOrdered>("bp::minimum"),
    row<Atan2, kFloats>("bp::atan2"),
    row<And, kBits>("bp::bitwise_and"),
    row<Or, kBits>("bp::bitwise_or"),
    row<Xor, kBits>("bp::bitwise_xor"),
    row<LeftShift, BP_MASK_INTEGER>("bp::bitwise_left_shift"),
    row<RightShift, BP_MASK_INTEGER>("bp::bitwise_right_shift"),
    comparison<std::equal_to<>, kAll>("bp::equal"),
    comparison<std::not_equal_to<>, kAll>("bp::not_equal"),
    comparison<std::less<>, kOrdered>("bp::less"),
    comparison<std::less_equal<>, kOrdered>("bp::less_equal"),
    comparison<std::greater<>, kOrdered>("bp::greater"),
    comparison<std::greater_equal<>, kOrdered>("bp::greater_equal"),
    {"bp::where", kernel<where>, kAll, kLoopFlags},
};

}  // namespace

Table binary_kernels() { return {__FILE__, kRows}; }

}  // namespace sim

// Elementwise kernels of one operand.
#include <cmath>
#include <complex>

#include "kernels.hpp"
#include "loops.hpp"

namespace sim {
namespace {

// Integers wrap: their arithmetic is done unsigned.
struct Negative {
  template <class T>
  static T apply(T x) {
    if constexpr (std::is_integral_v<T>) return static_cast<T>(uint64_t{0} - static_cast<uint64_t>(x));
    return -x;
  }
};
struct Abs {
  template <class T>
  static T apply(T x) {
    if constexpr (std::is_floating_point_v<T>) return std::abs(x);
    if constexpr (std::is_signed_v<T>) return x < 0 ? Negative::apply(x) : x;
    return x;
  }
};
struct Sign {
  template <class T>
  static T apply(T x) {
    if (x != x) return x;
    if constexpr (kIsComplex<T>) return x == T{} ? x : x / std::abs(x);
    if constexpr (std::is_signed_v<T>) return static_cast<T>((x > 0) - (x < 0));
    if constexpr (std::is_unsigned_v<T>) return static_cast<T>(x > 0);
  }
};
struct Conj {
  template <class T>
  static T apply(T x) {
    if constexpr (kIsComplex<T>) return std::conj(x);
    return x;
  }
};
struct Invert {
  template <class T>
  static T apply(T x) {
    if constexpr (std::is_same_v<T, bool>)
      return !x;
    else
      return static_cast<T>(~x);
  }
};

#define SIM_FLOAT_FUNCTION(Name, expression) \
  struct Name {                              \
    template <class T>                       \
    static T apply(T x) {                    \
      return static_cast<T>(expression);     \
    }                                        \
  };
SIM_FLOAT_FUNCTION(Sqrt, std::sqrt(x))
SIM_FLOAT_FUNCTION(Exp, std::exp(x))
SIM_FLOAT_FUNCTION(Log, std::log(x))
SIM_FLOAT_FUNCTION(Sin, std::sin(x))
SIM_FLOAT_FUNCTION(Cos, std::cos(x))
SIM_FLOAT_FUNCTION(Atan, std::atan(x))
SIM_FLOAT_FUNCTION(Tanh, std::tanh(x))
SIM_FLOAT_FUNCTION(Erf, std::erf(x))
#undef SIM_FLOAT_FUNCTION

// The complex forms keep the digits that exp(x) - 1 and log(1 + x) lose near 0.
struct Expm1 {
  template <class T>
  static T apply(T x) {
    if constexpr (kIsComplex<T>) {
      const auto s = std::sin(x.imag() / 2);
      return T(std::expm1(x.real()) * std::cos(x.imag()) - 2 * s * s, std::exp(x.real()) * std::sin(x.imag()));
    } else {
      return std::expm1(x);
    }
  }
};
struct Log1p {
  template <class T>
  static T apply(T x) {
    if constexpr (kIsComplex<T>)
      return T(std::log1p(x.real() * (2 + x.real()) + x.imag() * x.imag()) / 2, std::atan2(x.imag(), 1 + x.real()));
    else
      return std::log1p(x);
  }
};

// Rounding: integers stay as they are.
#define SIM_ROUNDING(Name, function)                                 \
  struct Name {                                                      \
    template <class T>                                               \
    static T apply(T x) {                                            \
      if constexpr (std::is_floating_point_v<T>) return function(x); \
      return x;                                                      \
    }                                                                \
  };
SIM_ROUNDING(Floor, std::floor)
SIM_ROUNDING(Ceil, std::ceil)
SIM_ROUNDING(Trunc, std::trunc)
// The default rounding mode takes ties to the even neighbour.
struct Round {
  template <class T>
  static T apply(T x) {
    if constexpr (kIsComplex<T>) return T(std::nearbyint(x.real()), std::nearbyint(x.imag()));
    if constexpr (std::is_floating_point_v<T>) return std::nearbyint(x);
    return x;
  }
};
#undef SIM_ROUNDING

template <class Op, bp_dtype_mask kMask>
void unary(const Call& call) {
  dispatch_dtype<kMask>(call.compute(), [&]<class T>() {
    call.record([loop = call.loop()] {
      map_one<T, T>(loop, [](T x) { return static_cast<T>(Op::template apply<Compute<T>>(x)); });
    });
  });
}

// The magnitude of a complex number is real.
void abs(const Call& call) {
  if (!(BP_DTYPE_BIT(call.compute()) & BP_MASK_COMPLEX)) return unary<Abs, kReals>(call);
  dispatch_dtype<BP_MASK_COMPLEX>(call.compute(), [&]<class T>() {
    call.record([loop = call.loop()] { map_one<typename T::value_type, T>(loop, [](T x) { return std::abs(x); }); });
  });
}

void copy(const Call& call) {
  dispatch_width(call.compute(),
                 [&]<class T>() { call.record([loop = call.loop()] { map_one<T, T>(loop, [](T x) { return x; }); }); });
}

template <class Op, bp_dtype_mask kMask>
constexpr Row row(const char* op, uint32_t line = __builtin_LINE()) {
  return {op, kernel<unary<Op, kMask>>, kMask, kLoopFlags, line};
}

constexpr Row kRows[] = {
    {"bp::copy", kernel<copy>, BP_MASK_ANY, BP_KERNEL_LOOP},
    row<Negative, kNumbers>("bp::negative"),
    {"bp::abs", kernel<abs>, kNumbers, BP_KERNEL_LOOP | BP_KERNEL_IMMEDIATES},
    row<Sign, kNumbers>("bp::sign"),
    row<Conj, kNumbers>("bp::conj"),
    row<Invert, kBits>("bp::bitwise_invert"),
    row<Sqrt, kInexact>("bp::sqrt"),
    row<Exp, kInexact>("bp::exp"),
    row<Expm1, kInexact>("bp::expm1"),
    row<Log, kInexact>("bp::log"),
    row<Log1p, kInexact>("bp::log1p"),
    row<Sin, kInexact>("bp::sin"),
    row<Cos, kInexact>("bp::cos"),
    row<Atan, kInexact>("bp::atan"),
    row<Tanh, kInexact>("bp::tanh"),
    row<Erf, kFloats>("bp::erf"),
    row<Floor, kReals>("bp::floor"),
    row<Ceil, kReals>("bp::ceil"),
    row<Trunc, kReals>("bp::trunc"),
    row<Round, kNumbers>("bp::round"),
};

}  // namespace

Table unary_kernels() { return {__FILE__, kRows}; }

}  // namespace sim

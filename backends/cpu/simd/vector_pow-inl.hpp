// Functions of two operands on vectors of float32 and float64: pow, hypot, logaddexp, and the remainders; cbrt too.
// Included once per Highway target. Errors of the functions: docs/reference/accuracy.md.
#if defined(BACKPLANE_CPU_VECTOR_POW) == defined(HWY_TARGET_TOGGLE)
#ifdef BACKPLANE_CPU_VECTOR_POW
#undef BACKPLANE_CPU_VECTOR_POW
#else
#define BACKPLANE_CPU_VECTOR_POW
#endif

#include "simd/vector_log-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace backplane::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class D, class F, class V = hn::Vec<D>>
HWY_NOINLINE V pairs_by_library(D d, V x, V y, F function) {
  using T = hn::TFromD<D>;
  HWY_ALIGN T a[HWY_MAX_BYTES / sizeof(T)];
  HWY_ALIGN T b[HWY_MAX_BYTES / sizeof(T)];
  hn::Store(x, d, a);
  hn::Store(y, d, b);
  for (size_t i = 0; i < hn::Lanes(d); ++i) a[i] = function(a[i], b[i]);
  return hn::Load(d, a);
}

// A number as an unevaluated sum, high + low with |low| at most half a unit in the last place of high.
template <class V>
struct Pair {
  V high, low;
};
template <class V>
HWY_INLINE Pair<V> fast_sum(V a, V b) {  // |a| >= |b|, or a is 0
  const V s = hn::Add(a, b);
  return {s, hn::Sub(b, hn::Sub(s, a))};
}
template <class V>
HWY_INLINE Pair<V> product(V a, V b) {
  const V p = hn::Mul(a, b);
  return {p, hn::MulSub(a, b, p)};
}

// log(x) of normal positive float64, to about 2^-66 of itself: log(m) = 2 s + s z (2 / 3 + z R(z)), with the first two
// terms in pairs. s = f / (2 + f) and z = s^2.
inline constexpr double kLogPairRest[] = {0.400000000000000274, 0.285714285713374579, 0.222222222715771937,
                                          0.181818081701096158, 0.153855804324227323, 0.132857702914694286,
                                          0.129159284418370279};
template <class D, class V = hn::Vec<D>>
HWY_INLINE Pair<V> log_pair(D d, V x) {
  const LogParts<V> p = reduce_log(d, x);
  const V two = hn::Set(d, 2.0), divisor = hn::Add(p.f, two), divisor_low = hn::Sub(p.f, hn::Sub(divisor, two));
  const V reciprocal = hn::Div(hn::Set(d, 1.0), divisor), s = hn::Mul(p.f, reciprocal);
  const V missing = hn::NegMulAdd(s, divisor_low, hn::NegMulAdd(s, divisor, p.f));
  const V s_low = hn::Mul(missing, reciprocal);
  Pair<V> z = product(s, s);
  z.low = hn::MulAdd(hn::Add(s, s), s_low, z.low);
  const V rest = hn::Mul(z.high, polynomial(d, z.high, kLogPairRest));
  Pair<V> c = fast_sum(hn::Set(d, 0.66666666666666662966), rest);
  c.low = hn::Add(c.low, hn::Set(d, 3.7007434154171884681e-17));
  Pair<V> t = product(z.high, c.high);  // z c
  t.low = hn::Add(t.low, hn::MulAdd(z.high, c.low, hn::Mul(z.low, c.high)));
  Pair<V> u = product(s, t.high);  // s z c
  u.low = hn::Add(u.low, hn::MulAdd(s, t.low, hn::Mul(s_low, t.high)));
  Pair<V> m = fast_sum(hn::Add(s, s), u.high);
  m.low = hn::Add(m.low, hn::Add(u.low, hn::Add(s_low, s_low)));
  Pair<V> y = fast_sum(hn::Mul(p.k, hn::Set(d, kLn2High<double>)), m.high);
  y.low = hn::Add(y.low, hn::MulAdd(p.k, hn::Set(d, kLn2Low<double>), m.low));
  return fast_sum(y.high, y.low);
}
// The magnitude of x^y for float64, where the result is a normal number.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V pow_magnitude(D d, const Pair<V>& log_x, V y) {
  Pair<V> e = product(log_x.high, y);
  e.low = hn::MulAdd(log_x.low, y, e.low);
  Reduced<V> r = reduce_exp(d, e.high);
  r.r = hn::Add(r.r, e.low);
  return scaled_exp(d, r, hn::Set(d, 1.0), true);
}

// Element `index` modulo 32 of a table.
template <class D, class DI, class V = hn::Vec<D>>
HWY_INLINE V element_of_32(D d, DI di, const float (&table)[32], hn::Vec<DI> index) {
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL
  // Highway 1.0 has no lookup in two vectors.
  return V{_mm512_permutex2var_ps(hn::LoadU(d, table).raw, index.raw, hn::LoadU(d, table + 16).raw)};
#else
  return hn::GatherIndex(d, table, hn::And(index, hn::Set(di, 31)));
#endif
}

// x^y of normal positive float32. x = 2^k z with z in [0.708, 1.416), in 32 intervals, one of them around 1. For each
// there is a scale near kLog2E / z and log2(kLog2E / scale), as a short number and a rest. With f = scale z - kLog2E,
// which is exact in two numbers, log2(x) = k + log2(kLog2E / scale) + f + f g(f), where g is a polynomial fitted at
// Chebyshev nodes.
inline constexpr float kLog2E = 1.44269502f;
alignas(64) inline constexpr float kPowScale[] = {
    2.01475573f, 1.97173131f, 1.93050599f, 1.89096928f, 1.85301936f, 1.81656277f, 1.78151309f, 1.74779022f,
    1.71532047f, 1.68403494f, 1.65387034f, 1.6247673f,  1.59667087f, 1.56952953f, 1.54329562f, 1.51792419f,
    1.49337351f, 1.46960425f, 1.44269502f, 1.4063015f,  1.36472952f, 1.32554483f, 1.28854752f, 1.25355935f,
    1.22042108f, 1.18898976f, 1.15913665f, 1.13074601f, 1.10371292f, 1.07794213f, 1.05334735f, 1.02984989f};
alignas(64) inline constexpr float kPowLog[] = {
    -0.481842041f,  -0.450698853f,  -0.420211792f,  -0.390365601f,  -0.361114502f, -0.332443237f, -0.304336548f,
    -0.276763916f,  -0.249710083f,  -0.22315979f,   -0.19708252f,   -0.171463013f, -0.14630127f,  -0.121566772f,
    -0.0972442627f, -0.0733337402f, -0.0498046875f, -0.0266571045f, 0.0f,          0.0368652344f, 0.0801544189f,
    0.122177124f,   0.163024902f,   0.20274353f,    0.241394043f,   0.279037476f,  0.315719604f,  0.351486206f,
    0.386398315f,   0.42048645f,    0.453781128f,   0.486328125f};
alignas(64) inline constexpr float kPowLogRest[] = {3.46138313e-06f,
                                                    2.24232758e-06f,
                                                    -8.85756776e-07f,
                                                    6.03101762e-06f,
                                                    2.90373396e-06f,
                                                    -1.62832566e-06f,
                                                    -1.86414198e-07f,
                                                    -1.76268918e-06f,
                                                    -1.69908083e-06f,
                                                    4.06921117e-06f,
                                                    2.73493856e-06f,
                                                    -3.74611545e-06f,
                                                    6.73591558e-07f,
                                                    9.50192714e-07f,
                                                    -3.82359576e-06f,
                                                    3.54593197e-07f,
                                                    -4.00726003e-06f,
                                                    -4.24927066e-06f,
                                                    0.0f,
                                                    -4.8091224e-06f,
                                                    -3.11637427e-06f,
                                                    3.76210232e-06f,
                                                    -4.2869774e-06f,
                                                    -7.48015464e-06f,
                                                    -6.68886514e-06f,
                                                    -7.41020767e-06f,
                                                    -3.90939158e-06f,
                                                    5.24628058e-06f,
                                                    3.07264622e-06f,
                                                    1.71361606e-07f,
                                                    3.97145504e-06f,
                                                    4.1662438e-06f};
inline constexpr double kPowRest[] = {1.33497583498381843e-8, -0.34657359759012624, 0.160151009898820596,
                                      -0.0832722649806017863, 0.046176586828071022};
// log2(x) as a number and a rest, which is up to a hundredth of it.
template <class D, class V = hn::Vec<D>>
HWY_INLINE Pair<V> log2_pair(D d, V x) {
  const hn::RebindToSigned<D> di;
  const auto bits = hn::BitCast(di, x), offset = hn::Sub(bits, hn::Set(di, 0x3f355000));
  const auto exponent = hn::ShiftRight<23>(offset), index = hn::ShiftRight<18>(offset);
  const V z = hn::BitCast(d, hn::Sub(bits, hn::ShiftLeft<23>(exponent)));
  const Pair<V> p = product(z, element_of_32(d, di, kPowScale, index));
  const Pair<V> f = fast_sum(hn::Sub(p.high, hn::Set(d, kLog2E)), p.low);
  const V high = hn::Add(hn::ConvertTo(d, exponent), element_of_32(d, di, kPowLog, index));
  const Pair<V> y = fast_sum(high, f.high);
  const V low = hn::Add(y.low, hn::Add(f.low, element_of_32(d, di, kPowLogRest, index)));
  return {y.high, hn::MulAdd(f.high, short_polynomial(d, f.high, kPowRest), low)};
}
// 2^(e + rest) for |e + rest| up to 160.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V exp2_of_sum(D d, V e, V rest, bool ordinary) {
  const V rounder = hn::Set(d, kRounder<float>), shifted = hn::Add(hn::Add(e, rest), rounder);
  const V n = hn::Sub(shifted, rounder), r = hn::Add(hn::Sub(e, n), rest);
  if (ordinary) return exp2_of_parts(d, shifted, r);
  return scale_wide(d, exp2_of_parts(d, rounder, r), n);
}
template <class D, class V = hn::Vec<D>>
HWY_INLINE V single_pow(D d, V x, V y) {
  const Pair<V> log_x = log2_pair(d, x);
  const V e = hn::Mul(log_x.high, y), limit = hn::Set(d, 160.0f);
  // Beyond the limit a low part may be infinite, and says nothing.
  const V low = hn::MulAdd(log_x.low, y, hn::MulSub(log_x.high, y, e));
  const V rest = hn::IfThenElseZero(hn::Lt(hn::Abs(e), limit), low);
  return exp2_of_sum(d, hn::Max(hn::Min(e, limit), hn::Neg(limit)), rest, false);
}
// x^y in `result`, where every x is positive and normal and every result is ordinary; else false.
template <class D, class V = hn::Vec<D>>
HWY_INLINE bool pow_of_ordinary(D d, V x, V y, V& result) {
  const hn::RebindToSigned<D> di;
  // One comparison for both ends: the bits of the smallest normal number become the smallest integer.
  const auto bits = hn::Add(hn::BitCast(di, x), hn::Set(di, int32_t{0x7f800000}));
  if (!hn::AllTrue(di, hn::Lt(bits, hn::Set(di, static_cast<int32_t>(0xff000000u))))) return false;
  const Pair<V> log_x = log2_pair(d, x);
  const V e = hn::Mul(log_x.high, y);
  const V rest = hn::MulAdd(log_x.low, y, hn::MulSub(log_x.high, y, e));
  if (!hn::AllTrue(d, hn::Lt(hn::Abs(hn::Add(e, rest)), hn::Set(d, 125.0f)))) return false;
  const V power = exp2_of_sum(d, e, rest, true);
  result = hn::IfThenElse(hn::Eq(y, hn::Set(d, 1.0f)), x, power);  // x itself, to the last digit
  return true;
}

struct VectorPow {
  // Zeros, infinities, NaN, and results that are not normal go to the C library; a negative x by its sign.
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V call(D d, V x, V y) {
    using T = hn::TFromD<D>;
    if constexpr (kIsFloat32<T> && HWY_NATIVE_FMA) {
      V result = x;
      if (HWY_LIKELY(pow_of_ordinary(d, x, y, result))) return result;
    }
    T (*library)(T, T) = std::pow;
    const V a = hn::Abs(x), most = hn::Set(d, std::numeric_limits<T>::max());
    auto ordinary = hn::And(hn::Ge(a, hn::Set(d, std::numeric_limits<T>::min())), hn::Le(a, most));
    ordinary = hn::And(ordinary, hn::Le(hn::Abs(y), most));
    if (HWY_UNLIKELY(!HWY_NATIVE_FMA || !hn::AllTrue(d, ordinary))) return pairs_by_library(d, x, y, library);
    V power;
    if constexpr (kIsFloat32<T>) {
      power = single_pow(d, a, y);
    } else {
      const Pair<V> log_a = log_pair(d, a);
      if (HWY_UNLIKELY(!hn::AllTrue(d, hn::Lt(hn::Abs(hn::Mul(log_a.high, y)), hn::Set(d, 708.0)))))
        return pairs_by_library(d, x, y, library);
      power = pow_magnitude(d, log_a, y);
    }
    power = hn::IfThenElse(hn::Eq(y, hn::Set(d, T(1))), a, power);  // x itself, to the last digit
    if (HWY_LIKELY(hn::AllTrue(d, hn::Gt(x, hn::Zero(d))))) return power;
    // Of a negative x the power by an odd integer is negative, by no integer NaN.
    const V half = hn::Mul(y, hn::Set(d, T(0.5)));
    const auto integer = hn::Eq(hn::Trunc(y), y), even = hn::Eq(hn::Trunc(half), half);
    const V of_negative = hn::IfThenElse(integer, hn::IfThenElse(even, power, hn::Neg(power)),
                                         hn::Set(d, std::numeric_limits<T>::quiet_NaN()));
    return hn::IfThenElse(hn::Gt(x, hn::Zero(d)), power, of_negative);
  }
};

struct VectorHypot {
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V call(D d, V x, V y) {
    using T = hn::TFromD<D>;
    const V a = hn::Abs(x), b = hn::Abs(y), one = hn::Set(d, T(1)), zero = hn::Zero(d);
    const V infinity = hn::Set(d, std::numeric_limits<T>::infinity());
    const V larger = hn::Max(a, b), smaller = hn::Min(a, b);
    const V q = hn::Div(smaller, hn::IfThenElse(hn::Eq(larger, zero), one, larger));
    V result = hn::Mul(larger, hn::Sqrt(hn::MulAdd(q, q, one)));
    result = hn::IfThenElse(hn::And(hn::Eq(x, x), hn::Eq(y, y)), result, hn::Add(x, y));
    return hn::IfThenElse(hn::Or(hn::Eq(a, infinity), hn::Eq(b, infinity)), infinity, result);
  }
};

struct VectorLogAddExp {
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V call(D d, V x, V y) {
    const V e = VectorExp::call(d, hn::Neg(hn::Abs(hn::Sub(x, y))));
    const V sum = hn::Add(hn::Max(x, y), log1p_ordinary(d, e));
    const V equal = hn::Add(x, hn::Set(d, hn::TFromD<D>(0.69314718055994530942)));  // infinities too
    const V ordered = hn::IfThenElse(hn::Eq(x, y), equal, sum);
    return hn::IfThenElse(hn::And(hn::Eq(x, x), hn::Eq(y, y)), ordered, hn::Add(x, y));
  }
};

// The rest of a / b towards 0, exact: a quotient of few enough bits is off by at most one, which its rest shows.
template <class D, class V = hn::Vec<D>>
HWY_INLINE bool fmod_ordinary(D d, V a, V b) {
  using T = hn::TFromD<D>;
  const V quotient = hn::Abs(hn::Div(a, b));
  const auto size = hn::Lt(quotient, hn::Set(d, kIsFloat32<T> ? T(4e6) : T(2e15)));  // false for a NaN
  const auto normal = hn::Gt(hn::Abs(b), hn::Set(d, std::numeric_limits<T>::min() / std::numeric_limits<T>::epsilon()));
  return HWY_NATIVE_FMA && hn::AllTrue(d, hn::And(hn::And(size, normal),
                                                  hn::Lt(hn::Abs(b), hn::Set(d, std::numeric_limits<T>::infinity()))));
}
template <class D, class V = hn::Vec<D>>
HWY_INLINE V fmod_magnitude(D d, V a, V b) {
  V rest = hn::NegMulAdd(hn::Trunc(hn::Div(a, b)), b, a);
  rest = hn::Add(rest, hn::IfThenElseZero(hn::Lt(rest, hn::Zero(d)), b));
  return hn::Sub(rest, hn::IfThenElseZero(hn::Ge(rest, b), b));
}
// `Scalar` computes a pair where the quotient is too large or an operand is not finite.
template <class Scalar>
struct VectorFmod {
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V call(D d, V x, V y) {
    using T = hn::TFromD<D>;
    if (HWY_UNLIKELY(!fmod_ordinary(d, x, y))) return pairs_by_library(d, x, y, &Scalar::template call<T>);
    return hn::CopySign(fmod_magnitude(d, hn::Abs(x), hn::Abs(y)), x);
  }
};
template <class Scalar>
struct VectorRemainder {
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V call(D d, V x, V y) {
    using T = hn::TFromD<D>;
    if (HWY_UNLIKELY(!fmod_ordinary(d, x, y))) return pairs_by_library(d, x, y, &Scalar::template call<T>);
    const V zero = hn::Zero(d), rest = hn::CopySign(fmod_magnitude(d, hn::Abs(x), hn::Abs(y)), x);
    const V moved = hn::Add(rest, hn::IfThenElseZero(hn::Lt(hn::CopySign(y, hn::Xor(rest, y)), zero), y));
    return hn::IfThenElse(hn::Eq(rest, zero), hn::CopySign(zero, y), moved);
  }
};
template <class Scalar>
struct VectorFloorDivide {
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V call(D d, V x, V y) {
    using T = hn::TFromD<D>;
    if (HWY_UNLIKELY(!fmod_ordinary(d, x, y))) return pairs_by_library(d, x, y, &Scalar::template call<T>);
    const V zero = hn::Zero(d), one = hn::Set(d, T(1)), rest = fmod_magnitude(d, hn::Abs(x), hn::Abs(y));
    // Up to sign the quotient towards 0: exact but for the rounding of a division.
    const V quotient = hn::Round(hn::Div(hn::Sub(hn::Abs(x), rest), hn::Abs(y)));
    const V sign = hn::CopySign(one, hn::Xor(x, y));
    const auto below = hn::And(hn::Lt(sign, zero), hn::Ne(rest, zero));
    return hn::CopySign(hn::Add(quotient, hn::IfThenElseZero(below, one)), sign);
  }
};

// The cube root of the bits, read as an integer a third as large, refined by two or three of Halley's steps.
struct VectorCbrt {
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V call(D d, V x) {
    using T = hn::TFromD<D>;
    const hn::RebindToSigned<D> di;
    using I = hn::TFromD<decltype(di)>;
    const V a = hn::Abs(x), least = hn::Set(d, std::numeric_limits<T>::min());
    const auto normal = hn::And(hn::Ge(a, least), hn::Le(a, hn::Set(d, std::numeric_limits<T>::max() / 4)));
    if (HWY_UNLIKELY(!hn::AllTrue(d, hn::Or(normal, hn::Eq(a, hn::Zero(d))))))
      return by_library(d, x, static_cast<T (*)(T)>(std::cbrt));
    constexpr I kTwoThirdsOfBias = static_cast<I>(kIsFloat32<T> ? 0x2a5119f2 : 0x2a9f7893782da1ce);
    const V third = hn::Mul(hn::ConvertTo(d, hn::BitCast(di, a)), hn::Set(d, T(1.0 / 3)));
    V y = hn::BitCast(d, hn::Add(hn::ConvertTo(di, third), hn::Set(di, kTwoThirdsOfBias)));
    for (int i = 0; i < (kIsFloat32<T> ? 1 : 2); ++i) {
      const V cube = hn::Mul(hn::Mul(y, y), y);
      y = hn::Mul(y, hn::Div(hn::Add(cube, hn::Add(a, a)), hn::Add(hn::Add(cube, cube), a)));
    }
    // Newton's step last: its correction is small, and so are its errors.
    const V square = hn::Mul(y, y), miss = hn::NegMulAdd(square, y, a);
    y = hn::MulAdd(miss, hn::Div(hn::Set(d, T(1.0 / 3)), square), y);
    return hn::IfThenElse(hn::Eq(a, hn::Zero(d)), x, hn::CopySign(y, x));
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace backplane::cpu
HWY_AFTER_NAMESPACE();
#endif

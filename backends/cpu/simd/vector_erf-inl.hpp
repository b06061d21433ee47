// erf, erfc and erfinv on vectors of float32 and float64; included once per Highway target.
//
// All coefficients are fits at Chebyshev nodes. Errors of the functions: docs/reference/accuracy.md.
#if defined(BACKPLANE_CPU_VECTOR_ERF) == defined(HWY_TARGET_TOGGLE)
#ifdef BACKPLANE_CPU_VECTOR_ERF
#undef BACKPLANE_CPU_VECTOR_ERF
#else
#define BACKPLANE_CPU_VECTOR_ERF
#endif

#include "simd/vector_log-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace backplane::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// erf(x) / x as a polynomial in x^2, for |x| <= 1
inline constexpr double kErfSmall[] = {1.12837916709551257,     -0.376126389031837481,     0.112837916709548787,
                                       -0.0268661706450767932,  0.00522397762481801447,    -0.000854832698083378991,
                                       0.000120553311116427109, -0.0000149255952668311816, 1.6461000484121368e-6,
                                       -1.6350312701054695e-7,  1.46597752740474358e-8,    -1.13728488567916737e-9,
                                       5.9571761477489114e-11};
// exp(a^2) erfc(a) (1 + 2 a) as a polynomial in t = (a - 4) / (a + 4), for a >= 0 (after Shepherd and Laframboise,
// 1981)
inline constexpr double kErfcSingle[] = {
    1.2329951186255526,     -0.13962108431457343,   0.015379683653270457,  0.06809605413206175,   -0.10103995084812757,
    0.09374044379277174,    -0.06632325953594628,   0.037139916895707926,  -0.016222274556440326, 0.005082809154341805,
    -0.0007163394718890914, -0.0002486322974476492, 0.00011660799658166694};
inline constexpr double kErfcDouble[] = {
    1.2329951186255526,      -0.13962111684056228,    0.015379652102619974,    0.06809705425466839,
    -0.10103906603631811,    0.09373283499911264,     -0.06633036581186058,    0.037167515526338006,
    -0.01619773406293477,    0.005031970069102256,    -0.0007577732435942576,  -0.0001992571524726518,
    0.00015062142608651945,  -2.4397731143023292e-05, -1.1221135665965907e-05, 5.70657829924074e-06,
    2.9173425573089733e-07,  -8.210647933297337e-07,  7.771943241086912e-08,   1.0631817593818149e-07,
    -2.0725802488181963e-08, -1.2338731403798444e-08, 3.2323973445082033e-09,  9.297625263709659e-10,
    -2.764120233734578e-10};
// What rounding took from square = a^2; without FMA by halves of a, whose products are exact (Dekker, 1971).
template <class D, class V = hn::Vec<D>>
HWY_INLINE V lost_by_square(D d, V a, V square) {
  using T = hn::TFromD<D>;
  if constexpr (HWY_NATIVE_FMA) return hn::MulSub(a, a, square);
  const V scaled = hn::Mul(a, hn::Set(d, T(kIsFloat32<T> ? 0x1p12 + 1 : 0x1p27 + 1)));
  const V high = hn::Sub(scaled, hn::Sub(scaled, a)), low = hn::Sub(a, high);
  return hn::MulAdd(low, low, hn::MulAdd(hn::Add(high, high), low, hn::MulSub(high, high, square)));
}

// exp(a^2) erfc(a) (1 + 2 a), for a >= 0.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V erfc_fit(D d, V a) {
  using T = hn::TFromD<D>;
  const V four = hn::Set(d, T(4)), t = hn::Div(hn::Sub(a, four), hn::Add(a, four));
  if constexpr (kIsFloat32<T>) {
    return polynomial(d, t, kErfcSingle);
  } else {
    return polynomial(d, t, kErfcDouble);
  }
}
// erfc(a) for a >= 0, where it is not near 1. What rounding takes from a^2 goes into the exponential.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V erfc_tail(D d, V a) {
  using T = hn::TFromD<D>;
  const V one = hn::Set(d, T(1)), limited = hn::Min(a, hn::Set(d, T(30)));
  const V p = erfc_fit(d, limited), slope = hn::Add(hn::Add(limited, limited), one);
  const V square = hn::Mul(limited, limited);
  return hn::Div(exp_of_sum(d, hn::Neg(square), hn::Neg(lost_by_square(d, limited, square)), p), slope);
}

struct VectorErf {
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V call(D d, V x) {
    using T = hn::TFromD<D>;
    const V one = hn::Set(d, T(1));
    if constexpr (kIsFloat32<T>) {
      // Above 1 as 1 - exp(-q(a)), for a weighted least squares fit q.
      static constexpr double kSmall[] = {1.128379167,    -0.3761263848,    0.1128378275,    -0.02686544581,
                                          0.005221074855, -0.0008484711131, 0.0001127054231, -9.680130447e-06};
      static constexpr double kLarge[] = {-0.0001234805394, 1.129193624,    0.6342213344,     0.106925912,
                                          -0.02380481705,   0.003341811891, -9.473272266e-05, -6.602741117e-05,
                                          1.268399427e-05,  -7.98327951e-07};
      const V magnitude = hn::Min(hn::Abs(x), hn::Set(d, T(4.1)));
      const V small = hn::Mul(x, polynomial(d, hn::Mul(x, x), kSmall));
      const V tail = VectorExp::call(d, hn::Neg(polynomial(d, magnitude, kLarge)));
      const V large = hn::CopySign(hn::Sub(one, tail), x);
      return hn::IfThenElse(hn::Gt(hn::Abs(x), one), large, small);  // a NaN is not above 1, and stays
    } else {
      const V a = hn::Abs(x), small = hn::Mul(x, polynomial(d, hn::Mul(x, x), kErfSmall));
      const auto near = hn::Not(hn::Gt(a, one));  // a NaN is not above 1, and stays
      if (hn::AllTrue(d, near)) return small;
      return hn::IfThenElse(near, small, hn::CopySign(hn::Sub(one, erfc_tail(d, a)), x));
    }
  }
};
struct VectorErfc {
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V call(D d, V x) {
    using T = hn::TFromD<D>;
    const V a = hn::Abs(x), tail = erfc_tail(d, a), half = hn::Set(d, T(0.5));
    const V small = hn::NegMulAdd(x, polynomial(d, hn::Mul(x, x), kErfSmall), hn::Set(d, T(1)));
    const V far = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Sub(hn::Set(d, T(2)), tail), tail);
    return hn::IfThenElse(hn::Not(hn::Gt(a, half)), small, far);
  }
};

// erfinv(x) / x as a polynomial in w = -log(1 - x^2) for w < 6; above in its root, for float64 to 2^-20 as a start.
inline constexpr double kErfinvNearSingle[] = {
    1.62354200646482991,    0.72489124416655252,      -0.0516433049499764508,  -0.0225775149554849926,
    0.0158017321148803564,  -0.00308707813243283637,  -0.00128425611490695973, 0.000979098662142239241,
    -0.0001323032053450991, -0.000107009752915053982, 0.0000418032645114833079};
inline constexpr double kErfinvNearDouble[] = {
    1.62354200646482991,     0.72489121249847492,     -0.0516432169890506043,   -0.0225769079765564043,
    0.0157999672773655726,   -0.00309009070108256423, -0.00127429352578945338,  0.000984118123953525567,
    -0.00015542175891558506, -0.00010761047378811067, 0.0000655916232864491967, -5.56698355981098212e-6,
    -9.20961999582627462e-6, 4.30313081614637534e-6,  3.08472317462766445e-8,   -7.59669773305271366e-7,
    2.70924642267127754e-7,  3.56002884509160792e-8,  -6.09455956020324476e-8,  1.48171960238043269e-8,
    5.77721892805113329e-9,  -4.03789756949983557e-9, 1.88128108060992516e-10,  3.98067452676009411e-10,
    -8.44591476076999064e-11};
inline constexpr double kErfinvFarSingle[] = {
    3.1590520589831514,      0.880509204596130215,     0.00352990573439128336,  -0.0020741141904433682,
    0.00112869582156330411,  -0.000667004572017840041, 0.000367611518268879859, -0.000134180385325499371,
    -2.86366818970574442e-6, 0.0000170687340414388829};
inline constexpr double kErfinvFarDouble[] = {4.009444665977673,     1.951047928022404,     0.003244228252280045,
                                              -0.005666088514988545, 0.0034845523763524793, 0.0007973691646574828,
                                              0.0007850153084681645, -0.005649464556055866, 0.003385285089266011};
// Two of Halley's steps on erfc(z) = 1 - a: the second starts from 2^-50.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V erfinv_far(D d, V a, V root) {
  const V u = hn::Mul(hn::Sub(root, hn::Set(d, 4.168033988749895)), hn::Set(d, 1 / 1.931966011250105));
  V z = hn::Mul(a, polynomial(d, u, kErfinvFarDouble));
  const V tail = hn::Sub(hn::Set(d, 1.0), a);
  for (int i = 0; i < 2; ++i) {
    const V miss = hn::Sub(tail, erfc_tail(d, z));
    const V step = hn::Mul(miss, hn::Mul(VectorExp::call(d, hn::Mul(z, z)), hn::Set(d, 0.88622692545275801365)));
    z = hn::Sub(z, hn::Div(step, hn::MulAdd(z, step, hn::Set(d, 1.0))));
  }
  return z;
}
struct VectorErfinv {
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V call(D d, V x) {
    using T = hn::TFromD<D>;
    const V one = hn::Set(d, T(1)), six = hn::Set(d, T(6)), a = hn::Abs(x);
    const auto inside = hn::Lt(a, one);
    const V limited = hn::IfThenElse(inside, a, hn::Zero(d));
    // 1 - a has no rounding where the square comes near 1, and `lost` is what the square loses there.
    const V product = hn::Mul(hn::Sub(one, limited), hn::Add(one, limited));
    const V square = hn::Mul(limited, limited), lost = lost_by_square(d, limited, square);
    const V w = hn::Sub(hn::Div(lost, product), log1p_ordinary(d, hn::Neg(square)));
    const V u = hn::Mul(hn::Sub(w, hn::Set(d, T(3))), hn::Set(d, T(1.0 / 3)));
    const auto near = hn::Lt(w, six);
    V y;
    if constexpr (kIsFloat32<T>) {
      y = hn::Mul(limited, polynomial(d, u, kErfinvNearSingle));
    } else {
      y = hn::Mul(limited, polynomial(d, u, kErfinvNearDouble));
    }
    if (!hn::AllTrue(d, near)) {
      const V root = hn::Sqrt(hn::Neg(VectorLog::call(d, product)));
      V far;
      if constexpr (kIsFloat32<T>) {
        const V v = hn::Mul(hn::Sub(root, hn::Set(d, T(3.32474487139158914))), hn::Set(d, T(1 / 0.87525512860841104)));
        far = hn::Mul(limited, polynomial(d, v, kErfinvFarSingle));
      } else {
        far = erfinv_far(d, limited, root);
      }
      y = hn::IfThenElse(near, y, far);
    }
    const V edge = hn::IfThenElse(hn::Eq(a, one), hn::Set(d, std::numeric_limits<T>::infinity()),
                                  hn::Set(d, std::numeric_limits<T>::quiet_NaN()));
    return hn::CopySign(hn::IfThenElse(inside, y, edge), x);
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace backplane::cpu
HWY_AFTER_NAMESPACE();
#endif

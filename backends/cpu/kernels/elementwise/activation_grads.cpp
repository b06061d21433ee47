// Derivatives of activation functions times a cotangent, each in one pass: X_grad(dy, x, numbers...), or of the output
// where the entry says so. Half floats are computed in float32.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/elementwise/activation_grads.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include "kernels/families.hpp"
#include "loops/elementwise.hpp"
#include "loops/fused_loops-inl.hpp"
#include "loops/vector_math-inl.hpp"
#include "simd/vector_gelu-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace backplane::cpu {
namespace HWY_NAMESPACE {

template <class D>
HWY_INLINE hn::Vec<D> constant(D d, double value) {
  return hn::Set(d, static_cast<hn::TFromD<D>>(value));
}

// g out (1 - out), of the output. 1 - out is exact near 1, where out - out^2 cancels on processors without FMA.
struct SigmoidGrad {
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V call(D d, V g, V out) {
    return hn::Mul(g, hn::Mul(out, hn::Sub(constant(d, 1), out)));
  }
};
// g (1 - out) (1 + out), of the output; neither factor cancels near 1 or -1.
struct TanhGrad {
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V call(D d, V g, V out) {
    const V one = constant(d, 1);
    return hn::Mul(g, hn::Mul(hn::Sub(one, out), hn::Add(one, out)));
  }
};
// e / (1 + e)^2 of e = exp(-z), for z >= 0: the derivative of sigmoid, and a fourth of that of tanh.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V logistic_density(D d, V z) {
  const V e = VectorExp::call(d, hn::Neg(z)), sum = hn::Add(e, constant(d, 1));
  return hn::Div(e, hn::Mul(sum, sum));
}
struct SigmoidSlope {
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V call(D d, V g, V x) {
    return hn::Mul(g, logistic_density(d, hn::Abs(x)));
  }
};
struct TanhSlope {
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V call(D d, V g, V x) {
    const V a = hn::Abs(x);
    return hn::Mul(hn::Mul(g, constant(d, 4)), logistic_density(d, hn::Add(a, a)));
  }
};
// sigmoid(u) and sigmoid(-u), without cancellation.
template <class V>
struct Sigmoids {
  V of, of_negative;
};
template <class D, class V = hn::Vec<D>>
HWY_INLINE Sigmoids<V> both_sigmoids(D d, V u) {
  const V e = VectorExp::call(d, hn::Neg(hn::Abs(u))), one = constant(d, 1), larger = hn::Div(one, hn::Add(one, e));
  const V smaller = hn::Mul(e, larger);
  const auto below = hn::Lt(u, hn::Zero(d));
  return {hn::IfThenElse(below, smaller, larger), hn::IfThenElse(below, larger, smaller)};
}
// x within 1000 of 0: beyond, its factor is 0. A NaN gives anything.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V bounded(D d, V x) {
  return hn::Min(hn::Max(x, constant(d, -1000)), constant(d, 1000));
}
struct SiluGrad {
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V call(D d, V g, V x) {
    const Sigmoids<V> s = both_sigmoids(d, x);
    return hn::Mul(g, hn::Mul(s.of, hn::MulAdd(bounded(d, x), s.of_negative, constant(d, 1))));
  }
};
struct GeluGrad {
  // In the lower tail the two terms of normal(x) + x density(x) have one factor, the exponential.
  template <class D, class V = hn::Vec<D>>
  static HWY_NOINLINE V general(D d, V g, V x) {
    const V a = hn::Abs(x), tail = normal_tail_exactly(d, a);
    const V limited = hn::Min(a, constant(d, kNormalLimit));
    const V density = hn::Mul(density_exponential(d, limited, constant(d, 1)), constant(d, 0.39894228040143267794));
    const V below = hn::NegMulAdd(limited, density, tail);
    const V y = hn::IfThenElse(hn::Gt(x, hn::Zero(d)), hn::Sub(constant(d, 1), below), below);
    return hn::Mul(g, hn::IfThenElse(hn::Eq(x, x), y, x));
  }
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V call(D d, V g, V x) {
    if constexpr (kIsFloat32<hn::TFromD<D>>) {
      if (HWY_UNLIKELY(!hn::AllFalse(d, hn::Lt(x, hn::Set(d, -kGeluLimit))))) return general(d, g, x);
      // normal(-a) - a density(a) is the slope at a negative x = -a, and what that at a positive one lacks of 1.
      const V a = hn::Abs(x), limit = constant(d, 13);
      const auto beyond = hn::Gt(a, limit);  // there the density is below 1e-37
      const V limited = hn::IfThenElse(beyond, limit, a);
      const V exponent = hn::Mul(hn::Mul(limited, limited), constant(d, -0.72134752044448170368));
      const V density = hn::Mul(exp2_of_ordinary(d, exponent), constant(d, 0.39894228040143267794));
      const V normal = hn::IfThenZeroElse(hn::Gt(a, hn::Set(d, kGeluLimit)), normal_tail(d, a));
      const V tail = hn::IfThenZeroElse(beyond, hn::NegMulAdd(limited, density, normal));
      return hn::Mul(g, hn::IfThenElse(hn::Gt(x, hn::Zero(d)), hn::Sub(constant(d, 1), tail), tail));
    } else {
      return general(d, g, x);
    }
  }
};
struct GeluTanhGrad {
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V call(D d, V g, V x) {
    // x sigmoid(v) with v = 2 sqrt(2 / pi) (x + 0.044715 x^3)
    constexpr double kScale = 2 * 0.79788456080286535588, kCube = 0.044715;
    const V w = bounded(d, x), square = hn::Mul(w, w);
    const Sigmoids<V> s =
        both_sigmoids(d, hn::Mul(w, hn::MulAdd(square, constant(d, kScale * kCube), constant(d, kScale))));
    const V slope = hn::Mul(w, hn::MulAdd(square, constant(d, 3 * kScale * kCube), constant(d, kScale)));
    const V y = hn::Mul(s.of, hn::MulAdd(slope, s.of_negative, constant(d, 1)));
    return hn::Mul(g, hn::IfThenElse(hn::Eq(x, x), y, x));
  }
};
struct MishGrad {
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V call(D d, V g, V x) {
    // With e = exp(x), n = e (e + 2): tanh(softplus(x)) = n / (n + 2), its derivative 4 e (e + 1) / (n + 2)^2.
    const V limit = constant(d, 20), one = constant(d, 1), two = constant(d, 2);
    const V e = VectorExp::call(d, hn::IfThenElse(hn::Gt(x, limit), limit, x));
    const V n = hn::Mul(e, hn::Add(e, two)), inverse = hn::Div(one, hn::Add(n, two));
    const V slope = hn::Mul(hn::Mul(hn::Mul(constant(d, 4), e), hn::Add(e, one)), hn::Mul(inverse, inverse));
    const V y = hn::MulAdd(bounded(d, x), slope, hn::Mul(n, inverse));
    return hn::Mul(g, hn::IfThenElse(hn::Gt(x, limit), one, y));
  }
};
struct EluGrad {
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V call(D d, V g, V x, V alpha, V scale, V input_scale) {
    const V z = hn::IfThenZeroElse(hn::Gt(x, hn::Zero(d)), hn::Mul(x, input_scale));
    const V low = hn::Mul(VectorExp::call(d, z), hn::Mul(alpha, input_scale));
    return hn::Mul(g, hn::Mul(scale, hn::IfThenElse(hn::Gt(x, hn::Zero(d)), constant(d, 1), low)));
  }
};
struct LeakyReluGrad {
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V call(D d, V g, V x, V slope) {
    return hn::IfThenElse(hn::Gt(x, hn::Zero(d)), g, hn::Mul(g, slope));
  }
};
struct SoftplusGrad {
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V call(D d, V g, V x, V beta, V threshold) {
    const V z = hn::Mul(x, beta);
    return hn::IfThenElse(hn::Gt(z, threshold), g, hn::Mul(g, VectorSigmoid::call(d, z)));
  }
};
struct SoftsignGrad {
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V call(D d, V g, V x) {
    const V one = constant(d, 1), r = hn::Div(one, hn::Add(hn::Abs(x), one));
    return hn::Mul(hn::Mul(g, r), r);
  }
};
struct TanhshrinkGrad {
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V call(D d, V g, V x) {
    const V y = VectorTanh::call(d, x);
    return hn::Mul(g, hn::Mul(y, y));
  }
};
struct HardtanhGrad {
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V call(D, V g, V x, V low, V high) {
    return hn::IfThenZeroElse(hn::Or(hn::Le(x, low), hn::Ge(x, high)), g);
  }
};
struct HardsigmoidGrad {
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V call(D d, V g, V x) {
    return hn::IfThenElseZero(hn::Lt(hn::Abs(x), constant(d, 3)), hn::Mul(g, constant(d, 1.0 / 6)));
  }
};
struct HardswishGrad {
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V call(D d, V g, V x) {
    const V three = constant(d, 3), y = hn::Mul(g, hn::Mul(hn::Add(hn::Add(x, x), three), constant(d, 1.0 / 6)));
    return hn::IfThenZeroElse(hn::Le(x, hn::Neg(three)), hn::IfThenElse(hn::Ge(x, three), g, y));
  }
};
struct ShrinkGrad {
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V call(D, V g, V x, V limit) {
    return hn::IfThenZeroElse(hn::Le(hn::Abs(x), limit), g);
  }
};
struct LogSoftmaxSlope {
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V call(D d, V g, V y, V total) {
    const V rest = hn::Mul(VectorExp::call(d, y), hn::Sub(g, total));
    return hn::NegMulAdd(g, VectorExpm1::call(d, y), rest);
  }
};
struct ThresholdGrad {
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V call(D, V g, V x, V threshold) {
    return hn::IfThenZeroElse(hn::Le(x, threshold), g);
  }
};

std::span<ElementwiseRow> activation_grads_rows() {
  static ElementwiseRow rows[] = {
      {"bp::sigmoid_grad", elementwise_binary, {fill_fused<SigmoidGrad, 2, 0, kCheapGrain>}},
      {"bp::tanh_grad", elementwise_binary, {fill_fused<TanhGrad, 2, 0, kCheapGrain>}},
      {"bp::sigmoid_slope", elementwise_binary, {fill_fused<SigmoidSlope, 2, 0, kCostlyGrain>}},
      {"bp::tanh_slope", elementwise_binary, {fill_fused<TanhSlope, 2, 0, kCostlyGrain>}},
      {"bp::log_softmax_slope", elementwise_ternary, {fill_fused<LogSoftmaxSlope, 3, 0, kCostlyGrain>}},
      {"bp::silu_grad", elementwise_binary, {fill_fused<SiluGrad, 2, 0, kCostlyGrain>}},
      {"bp::gelu_grad", elementwise_binary, {fill_fused<GeluGrad, 2, 0, kCostlyGrain>}},
      {"bp::gelu_tanh_grad", elementwise_binary, {fill_fused<GeluTanhGrad, 2, 0, kCostlyGrain>}},
      {"bp::mish_grad", elementwise_binary, {fill_fused<MishGrad, 2, 0, kCostlyGrain>}},
      {"bp::elu_grad", elementwise_with_scalars<2, 3>, {fill_fused<EluGrad, 2, 3, kCostlyGrain>}},
      {"bp::leaky_relu_grad", elementwise_with_scalars<2, 1>, {fill_fused<LeakyReluGrad, 2, 1, kCheapGrain>}},
      {"bp::softplus_grad", elementwise_with_scalars<2, 2>, {fill_fused<SoftplusGrad, 2, 2, kCostlyGrain>}},
      {"bp::softsign_grad", elementwise_binary, {fill_fused<SoftsignGrad, 2, 0, kCheapGrain>}},
      {"bp::tanhshrink_grad", elementwise_binary, {fill_fused<TanhshrinkGrad, 2, 0, kCostlyGrain>}},
      {"bp::hardtanh_grad", elementwise_with_scalars<2, 2>, {fill_fused<HardtanhGrad, 2, 2, kCheapGrain>}},
      {"bp::hardsigmoid_grad", elementwise_binary, {fill_fused<HardsigmoidGrad, 2, 0, kCheapGrain>}},
      {"bp::hardswish_grad", elementwise_binary, {fill_fused<HardswishGrad, 2, 0, kCheapGrain>}},
      {"bp::shrink_grad", elementwise_with_scalars<2, 1>, {fill_fused<ShrinkGrad, 2, 1, kCheapGrain>}},
      {"bp::threshold_grad", elementwise_with_scalars<2, 1>, {fill_fused<ThresholdGrad, 2, 1, kCheapGrain>}},
  };
  return rows;
}

}  // namespace HWY_NAMESPACE
}  // namespace backplane::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace backplane::cpu {
HWY_EXPORT(activation_grads_rows);

const Family kActivationGrads([](const Registrar& registrar) {
  register_elementwise(registrar, HWY_DYNAMIC_DISPATCH(activation_grads_rows)(), __FILE__, __LINE__);
});

}  // namespace backplane::cpu
#endif

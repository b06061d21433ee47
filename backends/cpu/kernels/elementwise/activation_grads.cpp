// Derivatives of activation functions times a cotangent, each in one pass: X_grad(dy, x, numbers...), or of the output
// where the entry says so. Half floats are computed in float32.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/elementwise/activation_grads.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include <iterator>

#include "kernels/families.hpp"
#include "loops/elementwise.hpp"
#include "loops/fused_loops-inl.hpp"
#include "simd/vector_math-inl.hpp"

#ifndef BACKPLANE_CPU_ACTIVATION_GRADS
#define BACKPLANE_CPU_ACTIVATION_GRADS
namespace backplane::cpu {
struct ActivationGrads {
  Elementwise sigmoid{}, tanh{}, silu{}, gelu{}, gelu_tanh{}, mish{}, elu{}, leaky_relu{}, softplus{}, softsign{},
      tanhshrink{}, hardtanh{}, hardsigmoid{}, hardswish{}, shrink{}, threshold{};
};
}  // namespace backplane::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace backplane::cpu {
namespace HWY_NAMESPACE {

template <class D>
HWY_INLINE hn::Vec<D> constant(D d, double value) {
  return hn::Set(d, static_cast<hn::TFromD<D>>(value));
}

// g out (1 - out), of the output.
struct SigmoidGrad {
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V call(D, V g, V out) {
    return hn::Mul(g, hn::NegMulAdd(out, out, out));
  }
};
// g (1 - out^2), of the output.
struct TanhGrad {
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V call(D d, V g, V out) {
    return hn::Mul(g, hn::NegMulAdd(out, out, constant(d, 1)));
  }
};
struct SiluGrad {
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V call(D d, V g, V x) {
    const V s = VectorSigmoid::call(d, x), one = constant(d, 1);
    return hn::Mul(g, hn::Mul(s, hn::MulAdd(x, hn::Sub(one, s), one)));
  }
};
struct GeluGrad {
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V call(D d, V g, V x) {
    const V erf = VectorErf::call(d, hn::Mul(x, constant(d, 0.70710678118654752440)));
    const V density =
        hn::Mul(VectorExp::call(d, hn::Mul(hn::Mul(x, x), constant(d, -0.5))), constant(d, 0.39894228040143267794));
    return hn::Mul(g, hn::MulAdd(x, density, hn::MulAdd(erf, constant(d, 0.5), constant(d, 0.5))));
  }
};
struct GeluTanhGrad {
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V call(D d, V g, V x) {
    // x sigmoid(v) with v = 2 sqrt(2 / pi) (x + 0.044715 x^3)
    constexpr double kScale = 2 * 0.79788456080286535588, kCube = 0.044715;
    const V square = hn::Mul(x, x), one = constant(d, 1);
    const V s =
        VectorSigmoid::call(d, hn::Mul(x, hn::MulAdd(square, constant(d, kScale * kCube), constant(d, kScale))));
    const V slope = hn::Mul(x, hn::MulAdd(square, constant(d, 3 * kScale * kCube), constant(d, kScale)));
    return hn::Mul(g, hn::Mul(s, hn::MulAdd(slope, hn::Sub(one, s), one)));
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
    const V y = hn::MulAdd(x, slope, hn::Mul(n, inverse));
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
    const V y = hn::Add(hn::Abs(x), constant(d, 1));
    return hn::Div(g, hn::Mul(y, y));
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
    const V three = constant(d, 3), y = hn::Mul(g, hn::MulAdd(x, constant(d, 1.0 / 3), constant(d, 0.5)));
    return hn::IfThenZeroElse(hn::Le(x, hn::Neg(three)), hn::IfThenElse(hn::Ge(x, three), g, y));
  }
};
struct ShrinkGrad {
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V call(D, V g, V x, V limit) {
    return hn::IfThenZeroElse(hn::Le(hn::Abs(x), limit), g);
  }
};
struct ThresholdGrad {
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V call(D, V g, V x, V threshold) {
    return hn::IfThenZeroElse(hn::Le(x, threshold), g);
  }
};

void fill_activation_grads(ActivationGrads& t) {
  fill_fused<SigmoidGrad, 2, 0>(t.sigmoid, kCheapGrain);
  fill_fused<TanhGrad, 2, 0>(t.tanh, kCheapGrain);
  fill_fused<SiluGrad, 2, 0>(t.silu, kCostlyGrain);
  fill_fused<GeluGrad, 2, 0>(t.gelu, kCostlyGrain);
  fill_fused<GeluTanhGrad, 2, 0>(t.gelu_tanh, kCostlyGrain);
  fill_fused<MishGrad, 2, 0>(t.mish, kCostlyGrain);
  fill_fused<EluGrad, 2, 3>(t.elu, kCostlyGrain);
  fill_fused<LeakyReluGrad, 2, 1>(t.leaky_relu, kCheapGrain);
  fill_fused<SoftplusGrad, 2, 2>(t.softplus, kCostlyGrain);
  fill_fused<SoftsignGrad, 2, 0>(t.softsign, kCheapGrain);
  fill_fused<TanhshrinkGrad, 2, 0>(t.tanhshrink, kCostlyGrain);
  fill_fused<HardtanhGrad, 2, 2>(t.hardtanh, kCheapGrain);
  fill_fused<HardsigmoidGrad, 2, 0>(t.hardsigmoid, kCheapGrain);
  fill_fused<HardswishGrad, 2, 0>(t.hardswish, kCheapGrain);
  fill_fused<ShrinkGrad, 2, 1>(t.shrink, kCheapGrain);
  fill_fused<ThresholdGrad, 2, 1>(t.threshold, kCheapGrain);
}

}  // namespace HWY_NAMESPACE
}  // namespace backplane::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace backplane::cpu {
HWY_EXPORT(fill_activation_grads);

void register_activation_grads(const Registrar& registrar) {
  static ActivationGrads t;
  HWY_DYNAMIC_DISPATCH(fill_activation_grads)(t);
  const ElementwiseRow rows[] = {
      {"bp::sigmoid_grad", &t.sigmoid, elementwise_binary},
      {"bp::tanh_grad", &t.tanh, elementwise_binary},
      {"bp::silu_grad", &t.silu, elementwise_binary},
      {"bp::gelu_grad", &t.gelu, elementwise_binary},
      {"bp::gelu_tanh_grad", &t.gelu_tanh, elementwise_binary},
      {"bp::mish_grad", &t.mish, elementwise_binary},
      {"bp::elu_grad", &t.elu, elementwise_with_scalars<2, 3>},
      {"bp::leaky_relu_grad", &t.leaky_relu, elementwise_with_scalars<2, 1>},
      {"bp::softplus_grad", &t.softplus, elementwise_with_scalars<2, 2>},
      {"bp::softsign_grad", &t.softsign, elementwise_binary},
      {"bp::tanhshrink_grad", &t.tanhshrink, elementwise_binary},
      {"bp::hardtanh_grad", &t.hardtanh, elementwise_with_scalars<2, 2>},
      {"bp::hardsigmoid_grad", &t.hardsigmoid, elementwise_binary},
      {"bp::hardswish_grad", &t.hardswish, elementwise_binary},
      {"bp::shrink_grad", &t.shrink, elementwise_with_scalars<2, 1>},
      {"bp::threshold_grad", &t.threshold, elementwise_with_scalars<2, 1>},
  };
  register_rows(registrar, rows, std::size(rows), __FILE__, __LINE__);
}

}  // namespace backplane::cpu
#endif

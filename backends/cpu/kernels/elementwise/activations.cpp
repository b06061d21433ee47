// Activation functions of neural networks, each in one pass: elu, leaky_relu, prelu, softplus, logsigmoid, mish,
// gelu_tanh, softsign, tanhshrink, hardtanh, hardsigmoid, hardswish, hardshrink, softshrink, threshold. Half floats are
// computed in float32. The derivatives are in activation_grads.cpp.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/elementwise/activations.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include "kernels/families.hpp"
#include "loops/conv_step.hpp"
#include "loops/elementwise.hpp"
#include "loops/fused_loops-inl.hpp"
#include "loops/vector_math-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace backplane::cpu {
namespace HWY_NAMESPACE {

template <class D>
HWY_INLINE hn::Vec<D> number(D d, double value) {
  return hn::Set(d, static_cast<hn::TFromD<D>>(value));
}
// log(1 + exp(-|z|)), whose argument lies in (0, 1].
template <class D, class V = hn::Vec<D>>
HWY_INLINE V log1p_exp_of_minus_abs(D d, V z) {
  return log1p_ordinary(d, VectorExp::call(d, hn::Neg(hn::Abs(z))));
}

struct VectorElu {
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V call(D d, V x, V alpha, V scale, V input_scale) {
    // Below -80 the result is -1 in either type.
    const V z = hn::Mul(x, input_scale);
    const V low = hn::Mul(expm1_ordinary(d, hn::Max(hn::Min(z, hn::Zero(d)), number(d, -80))), alpha);
    const V y = hn::Mul(hn::IfThenElse(hn::Gt(x, hn::Zero(d)), x, low), scale);
    return hn::IfThenElse(hn::Eq(x, x), y, x);
  }
};
struct VectorLeakyRelu {
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V call(D d, V x, V slope) {
    return hn::IfThenElse(hn::Gt(x, hn::Zero(d)), x, hn::Mul(x, slope));
  }
};
struct VectorSoftplus {
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V call(D d, V x, V beta, V threshold) {
    const V z = hn::Mul(x, beta), positive = hn::IfThenElseZero(hn::Gt(z, hn::Zero(d)), z);
    const V y = hn::Div(hn::Add(positive, log1p_exp_of_minus_abs(d, z)), beta);
    return hn::IfThenElse(hn::Le(z, threshold), y, x);
  }
};
struct VectorLogsigmoid {
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V call(D d, V x) {
    return hn::Sub(hn::IfThenZeroElse(hn::Gt(x, hn::Zero(d)), x), log1p_exp_of_minus_abs(d, x));
  }
};
struct VectorMish {
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V call(D d, V x) {
    // tanh(log(1 + e)) = n / (n + 2) with n = e (e + 2); from 20 on it is 1.
    const V limit = number(d, 20), two = number(d, 2);
    const V e = VectorExp::call(d, hn::IfThenElse(hn::Gt(x, limit), limit, x));
    const V n = hn::Mul(e, hn::Add(e, two));
    const V finite = finite_below(d, x);
    return hn::IfThenElse(hn::Gt(x, limit), x, hn::Div(hn::Mul(finite, n), hn::Add(n, two)));
  }
};
struct VectorGeluTanh {
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V call(D d, V x) {
    // (1 + tanh(u)) / 2 = sigmoid(2 u)
    const V u = hn::Mul(x, hn::MulAdd(hn::Mul(x, x), number(d, 2 * 0.044715 * 0.79788456080286535588),
                                      number(d, 2 * 0.79788456080286535588)));
    return hn::Mul(finite_below(d, x), VectorSigmoid::call(d, u));
  }
};
struct VectorSoftsign {
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V call(D d, V x) {
    const V a = hn::Abs(x), one = number(d, 1);
    const auto infinite = hn::Eq(a, number(d, std::numeric_limits<double>::infinity()));
    return hn::IfThenElse(infinite, hn::CopySign(one, x), hn::Div(x, hn::Add(a, one)));
  }
};
// (x - tanh(x)) / x^3 in powers of x^2, for |x| up to 1/2.
inline constexpr double kTanhshrinkNear[] = {0.3333333333333333,     -0.1333333333333323,    0.053968253968089755,
                                             -0.0218694885258676,    0.008863235198659135,   -0.0035921217969498704,
                                             0.0014557608138655873,  -0.0005894667419101905, 0.00023635364294136244,
                                             -8.819580305745065e-05, 2.295330465333733e-05};
struct VectorTanhshrink {
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V call(D d, V x) {
    const V square = hn::Mul(x, x), near = hn::Mul(hn::Mul(x, square), polynomial(d, square, kTanhshrinkNear));
    return hn::IfThenElse(hn::Lt(hn::Abs(x), number(d, 0.5)), near, hn::Sub(x, VectorTanh::call(d, x)));
  }
};
// A NaN passes: x86's instructions give their second operand where one is a NaN, and comparisons with it are false.
struct VectorHardtanh {
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V call(D, V x, V low, V high) {
#if HWY_ARCH_X86 && HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
    return hn::Min(high, hn::Max(low, x));
#else
    const V above = hn::IfThenElse(hn::Lt(x, low), low, x);
    return hn::IfThenElse(hn::Gt(above, high), high, above);
#endif
  }
};
struct VectorHardsigmoid {
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V call(D d, V x) {
    const V bounded = VectorHardtanh::call(d, x, number(d, -3), number(d, 3));
    return hn::Mul(hn::Add(bounded, number(d, 3)), number(d, 1.0 / 6));
  }
};
struct VectorHardswish {
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V call(D d, V x) {
    return hn::Mul(hn::Max(x, number(d, -3)), VectorHardsigmoid::call(d, x));
  }
};
struct VectorHardshrink {
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V call(D, V x, V limit) {
    return hn::IfThenZeroElse(hn::Le(hn::Abs(x), limit), x);
  }
};
struct VectorSoftshrink {
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V call(D, V x, V limit) {
    return hn::IfThenZeroElse(hn::Le(hn::Abs(x), limit), hn::Sub(x, hn::CopySign(limit, x)));
  }
};
struct VectorThreshold {
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V call(D, V x, V threshold, V value) {
    return hn::IfThenElse(hn::Le(x, threshold), value, x);
  }
};

std::span<ElementwiseRow> activations_rows() {
  static ElementwiseRow rows[] = {
      {"bp::elu", elementwise_with_scalars<1, 3>, {fill_fused<VectorElu, 1, 3, kCostlyGrain>}},
      {"bp::leaky_relu", elementwise_with_scalars<1, 1>, {fill_fused<VectorLeakyRelu, 1, 1, kCheapGrain>}},
      {"bp::prelu", elementwise_binary, {fill_fused<VectorLeakyRelu, 2, 0, kCheapGrain>}},
      {"bp::softplus", elementwise_with_scalars<1, 2>, {fill_fused<VectorSoftplus, 1, 2, kCostlyGrain>}},
      {"bp::logsigmoid", elementwise_unary, {fill_fused<VectorLogsigmoid, 1, 0, kCostlyGrain>}},
      {"bp::mish", elementwise_unary, {fill_fused<VectorMish, 1, 0, kCostlyGrain>}},
      {"bp::gelu_tanh", elementwise_unary, {fill_fused<VectorGeluTanh, 1, 0, kCostlyGrain>}},
      {"bp::softsign", elementwise_unary, {fill_fused<VectorSoftsign, 1, 0, kCheapGrain>}},
      {"bp::tanhshrink", elementwise_unary, {fill_fused<VectorTanhshrink, 1, 0, kCostlyGrain>}},
      {"bp::hardtanh", elementwise_with_scalars<1, 2>, {fill_fused<VectorHardtanh, 1, 2, kCheapGrain>}},
      {"bp::hardsigmoid", elementwise_unary, {fill_fused<VectorHardsigmoid, 1, 0, kCheapGrain>}},
      {"bp::hardswish", elementwise_unary, {fill_fused<VectorHardswish, 1, 0, kCheapGrain>}},
      {"bp::hardshrink", elementwise_with_scalars<1, 1>, {fill_fused<VectorHardshrink, 1, 1, kCheapGrain>}},
      {"bp::softshrink", elementwise_with_scalars<1, 1>, {fill_fused<VectorSoftshrink, 1, 1, kCheapGrain>}},
      {"bp::threshold", elementwise_with_scalars<1, 2>, {fill_fused<VectorThreshold, 1, 2, kCheapGrain>}},
  };
  return rows;
}

}  // namespace HWY_NAMESPACE
}  // namespace backplane::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace backplane::cpu {
HWY_EXPORT(activations_rows);

const ConvStepOp kHardtanh("bp::hardtanh", ConvRole::kScalarBounds);

const Family kActivations([](const Registrar& registrar) {
  register_elementwise(registrar, HWY_DYNAMIC_DISPATCH(activations_rows)(), __FILE__, __LINE__);
});

}  // namespace backplane::cpu
#endif

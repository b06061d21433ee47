// Elements of tensors as operands of the scalar functions: one call for every dtype, half floats and complex numbers
// included, and conversion between any two dtypes.
//
//   apply<scalar::add>(x, y)        what the registry says that add does to x and y
//   accepted<scalar::add, 2>        the dtypes in which it does
//   convert<float>(x)               as the registry's cast
//
// Not the contract: header-only sugar over it and over the scalar header, which the SDK brings. Everything is pure.
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>

#include "backplane/plugin/dtype.hpp"
#include "backplane/scalar.hpp"

namespace backplane::plugin {

namespace detail {
template <class T>
struct ScalarOf {
  using type = Compute<T>;
};
template <>
struct ScalarOf<std::complex<float>> {
  using type = bp_complex64;
};
template <>
struct ScalarOf<std::complex<double>> {
  using type = bp_complex128;
};
}  // namespace detail

// What a scalar function takes for an element of type T: float for a half float, a pair for a complex number.
template <class T>
using Scalar = typename detail::ScalarOf<T>::type;

template <class T>
Scalar<T> to_scalar(T x) {
  if constexpr (kIsComplex<T>)
    return {x.real(), x.imag()};
  else
    return static_cast<Scalar<T>>(x);
}

// Back to an element: converts to T if the function returns the scalar type of T. This rounds half floats.
template <class T>
auto from_scalar(Scalar<T> x) {
  if constexpr (kIsComplex<T>)
    return T(x.re, x.im);
  else
    return static_cast<T>(x);
}
template <class T, class Other>
requires(!std::is_same_v<Other, Scalar<T>>) auto from_scalar(Other x) {
  if constexpr (std::is_same_v<Other, bp_complex64>)
    return std::complex<float>(x.re, x.im);
  else if constexpr (std::is_same_v<Other, bp_complex128>)
    return std::complex<double>(x.re, x.im);
  else
    return x;
}

// `Op` is a type of namespace backplane::scalar, or of a header that codegen made of other registry files.
template <class Op, class T, class... More>
auto apply(T x, More... more) {
  return from_scalar<T>(Op::of(to_scalar(x), to_scalar(more)...));
}

namespace detail {
template <class Op, class T, size_t... I>
consteval bool takes(std::index_sequence<I...>) {
  return requires(Scalar<T> x) { Op::of((static_cast<void>(I), x)...); };
}
template <class Op, size_t kOperands>
consteval bp_dtype_mask accepted() {
  bp_dtype_mask mask = 0;
#define BP_ACCEPTED(constant, number, name, type, bytes, code) \
  if (takes<Op, type>(std::make_index_sequence<kOperands>())) mask |= BP_DTYPE_BIT(number);
  BP_DTYPES(BP_ACCEPTED)
#undef BP_ACCEPTED
  return mask;
}
}  // namespace detail

// The dtypes for which `Op` has a function of so many operands of one dtype; half floats where it has one of float32.
template <class Op, size_t kOperands>
inline constexpr bp_dtype_mask accepted = detail::accepted<Op, kOperands>();

namespace detail {
template <class Op, class T, size_t... I>
auto result_of(std::index_sequence<I...>) -> decltype(apply<Op>((static_cast<void>(I), std::declval<T>())...));
}  // namespace detail

// The element that `Op` gives for so many operands of T.
template <class Op, class T, size_t kOperands>
using ResultOf = decltype(detail::result_of<Op, T>(std::make_index_sequence<kOperands>()));

template <class Out, class In>
Out convert(In x) {
  if constexpr (std::is_same_v<Out, In>)
    return x;
  else
    return from_scalar<Out>(scalar::cast::of(to_scalar(x), Scalar<Out>{}));
}

// Converts n elements; steps are in bytes.
using ConvertRun = void (*)(char* out, int64_t out_step, const char* in, int64_t in_step, int64_t n);

namespace detail {
template <class Out, class In>
void convert_elements(char* out, int64_t out_step, const char* in, int64_t in_step, int64_t n) {
  if (out_step == sizeof(Out) && in_step == sizeof(In)) {
    for (int64_t i = 0; i < n; ++i) reinterpret_cast<Out*>(out)[i] = convert<Out>(reinterpret_cast<const In*>(in)[i]);
    return;
  }
  for (int64_t i = 0; i < n; ++i)
    *reinterpret_cast<Out*>(out + i * out_step) = convert<Out>(*reinterpret_cast<const In*>(in + i * in_step));
}
}  // namespace detail

// For dtypes that are known at run time alone. It instantiates a function for each pair: call it in one source.
inline ConvertRun convert_run(bp_dtype out, bp_dtype in) {
  return dispatch_dtype<BP_MASK_ANY>(out, [&]<class Out>() {
    return dispatch_dtype<BP_MASK_ANY>(in, []<class In>() -> ConvertRun { return detail::convert_elements<Out, In>; });
  });
}

// For elements that are moved and not read: f.operator()<T>() with a type of the dtype's width.
struct Bytes16 {
  uint64_t half[2];
};
template <class F>
decltype(auto) dispatch_width(bp_dtype dtype, F&& f) {
  switch (kItemSize[dtype]) {
    case 1:
      return f.template operator()<uint8_t>();
    case 2:
      return f.template operator()<uint16_t>();
    case 4:
      return f.template operator()<uint32_t>();
    case 8:
      return f.template operator()<uint64_t>();
    default:
      return f.template operator()<Bytes16>();
  }
}

}  // namespace backplane::plugin

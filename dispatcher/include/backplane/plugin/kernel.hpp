// Typed functions as kernels: kernel<fn> has the contract's form and unpacks values into fn's parameters.
//
//   void axpby(Context, ConstTensor<float> x, ConstTensor<float> y, double alpha, double beta, MutTensor<float> out);
//   BP_KERNEL("acme::axpby", "cpu", kernel<axpby>)
//
// Parameters: Context first if wanted; MutTensor and OutSlot are the results, in order; all others are the arguments,
// in order. std::optional<...> accepts an absent argument or an unwanted result. fn returns void or a bp_status, and
// may throw.
// Not the contract: header-only sugar over backplane/abi.
#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "backplane/plugin/context.hpp"
#include "backplane/plugin/tensor_view.hpp"

namespace backplane::plugin {

// The empty slot of a result whose shape the kernel finds out.
class OutSlot {
 public:
  OutSlot(const bp_frame* frame, bp_value* slot) : frame_(frame), slot_(slot) {}
  MutTensor<void> allocate(bp_dtype dtype, std::span<const int64_t> shape) const {
    check_status(frame_->host->alloc_output(frame_, slot_, dtype, static_cast<int32_t>(shape.size()), shape.data()));
    return MutTensor<void>(slot_->u.t);
  }
  bp_value* slot() const { return slot_; }

 private:
  const bp_frame* frame_;
  bp_value* slot_;
};

enum class Role { kContext, kArgument, kResult };

struct Call {
  const bp_frame* frame;
  const bp_value* args;
  bp_value* outs;
};

inline bp_tensor* as_tensor(const bp_value& value) {
  BP_CHECK(value.tag == BP_TAG_TENSOR, TYPE, "found ", tag_name(value.tag), ", expected a tensor");
  return value.u.t;
}

// How a parameter is read from a value. Specialise it for parameter types of your own.
template <class P>
struct Unpack;

#define BP_UNPACK(type, expression)                               \
  template <>                                                     \
  struct Unpack<type> {                                           \
    static constexpr Role kRole = Role::kArgument;                \
    static type get(const bp_value& value) { return expression; } \
  }
BP_UNPACK(double, as_double(value));
BP_UNPACK(int64_t, as_int(value));
BP_UNPACK(bool, as_bool(value));
BP_UNPACK(std::complex<double>, as_complex(value));
BP_UNPACK(bp_value, value);
#undef BP_UNPACK

template <>
struct Unpack<bp_dtype> {
  static constexpr Role kRole = Role::kArgument;
  static bp_dtype get(const bp_value& value) {
    BP_CHECK(value.tag == BP_TAG_DTYPE, TYPE, "found ", tag_name(value.tag), ", expected a dtype");
    return static_cast<bp_dtype>(value.u.i);
  }
};
template <>
struct Unpack<bp_generator_state> {
  static constexpr Role kRole = Role::kArgument;
  static bp_generator_state get(const bp_value& value) {
    BP_CHECK(value.tag == BP_TAG_GENERATOR, TYPE, "found ", tag_name(value.tag), ", expected a generator");
    return *value.u.g;
  }
};
template <>
struct Unpack<std::string_view> {
  static constexpr Role kRole = Role::kArgument;
  static std::string_view get(const bp_value& value) {
    BP_CHECK(value.tag == BP_TAG_STRING, TYPE, "found ", tag_name(value.tag), ", expected a string");
    return {value.u.s, value.count};
  }
};
template <>
struct Unpack<std::span<const int64_t>> {
  static constexpr Role kRole = Role::kArgument;
  static std::span<const int64_t> get(const bp_value& value) {
    BP_CHECK(value.tag == BP_TAG_INT_LIST, TYPE, "found ", tag_name(value.tag), ", expected a list of ints");
    return {value.u.ints, value.count};
  }
};
template <>
struct Unpack<std::span<bp_tensor* const>> {
  static constexpr Role kRole = Role::kArgument;
  static std::span<bp_tensor* const> get(const bp_value& value) {
    BP_CHECK(value.tag == BP_TAG_TENSOR_LIST, TYPE, "found ", tag_name(value.tag), ", expected a list of tensors");
    return {value.u.tensors, value.count};
  }
};
template <class T>
struct Unpack<TensorView<T>> {
  static constexpr Role kRole = std::is_const_v<T> ? Role::kArgument : Role::kResult;
  static TensorView<T> get(const bp_value& value) { return TensorView<T>(as_tensor(value)); }
};
template <class P>
struct Unpack<std::optional<P>> {
  static constexpr Role kRole = Unpack<P>::kRole;
  static std::optional<P> get(const bp_value& value) {
    if (value.tag == BP_TAG_ABSENT) return std::nullopt;
    return Unpack<P>::get(value);
  }
};
template <>
struct Unpack<Context> {
  static constexpr Role kRole = Role::kContext;
};
template <>
struct Unpack<OutSlot> {
  static constexpr Role kRole = Role::kResult;
};

namespace detail {

// Says which argument did not fit, and keeps the code.
[[noreturn, gnu::cold, gnu::noinline]] inline void rethrow_for(const bp_frame* frame, Role role, int index,
                                                               const Error& error) {
  ::backplane::detail::fail(error.code(), frame->op->name, ": ", role == Role::kResult ? "result " : "argument ", index,
                            ": ", error.what());
}

template <class P>
P unpack(const Call& call, int index) {
  if constexpr (std::is_same_v<P, Context>) {
    return Context{call.frame};
  } else if constexpr (std::is_same_v<P, OutSlot>) {
    return OutSlot(call.frame, &call.outs[index]);
  } else {
    constexpr Role kRole = Unpack<P>::kRole;
    try {
      return Unpack<P>::get(kRole == Role::kResult ? call.outs[index] : call.args[index]);
    } catch (const Error& error) {
      rethrow_for(call.frame, kRole, index, error);
    }
  }
}

// Each parameter's position among the parameters of its role; the last two elements count arguments and results.
template <class... P>
consteval std::array<int, sizeof...(P) + 2> positions() {
  constexpr Role kRoles[] = {Unpack<P>::kRole..., Role::kContext};
  std::array<int, sizeof...(P) + 2> result{};
  int next[3] = {};
  for (size_t i = 0; i < sizeof...(P); ++i) result[i] = next[static_cast<int>(kRoles[i])]++;
  result[sizeof...(P)] = next[static_cast<int>(Role::kArgument)];
  result[sizeof...(P) + 1] = next[static_cast<int>(Role::kResult)];
  return result;
}

template <class R, class... P, size_t... I>
R invoke(R (*fn)(P...), const Call& call, int32_t n_args, int32_t n_outs, std::index_sequence<I...>) {
  static constexpr auto kPositions = positions<std::remove_cvref_t<P>...>();
  BP_CHECK(n_args == kPositions[sizeof...(P)] && n_outs == kPositions[sizeof...(P) + 1], INTERNAL, call.frame->op->name,
           ": the kernel has parameters for ", kPositions[sizeof...(P)], " arguments and ",
           kPositions[sizeof...(P) + 1], " results, the op has ", n_args, " and ", n_outs,
           " in the revision that the kernel was registered for");
  return fn(unpack<std::remove_cvref_t<P>>(call, kPositions[I])...);
}
template <class R, class... P>
R invoke(R (*fn)(P...), const Call& call, int32_t n_args, int32_t n_outs) {
  return invoke(fn, call, n_args, n_outs, std::index_sequence_for<P...>{});
}

}  // namespace detail

template <auto Fn>
bp_status BP_CALL kernel(const bp_frame* frame, const bp_value* args, int32_t n_args, bp_value* outs,
                         int32_t n_outs) noexcept {
  return guard(frame, [&] { return detail::invoke(+Fn, Call{frame, args, outs}, n_args, n_outs); });
}

// One kernel for several dtypes: Op::run<T> for the T that is the frame's compute dtype.
//   struct Scale { template <class T> static void run(ConstTensor<T> x, double by, MutTensor<T> out); };
//   BP_KERNEL("acme::scale", "cpu", (kernel_by_dtype<Scale, BP_MASK_FLOATING>), .dtypes = BP_MASK_FLOATING)
template <class Op, bp_dtype_mask Mask>
bp_status BP_CALL kernel_by_dtype(const bp_frame* frame, const bp_value* args, int32_t n_args, bp_value* outs,
                                  int32_t n_outs) noexcept {
  return guard(frame, [&] {
    return dispatch_dtype<Mask>(frame->compute, [&]<class T>() {
      return detail::invoke(&Op::template run<T>, Call{frame, args, outs}, n_args, n_outs);
    });
  });
}

}  // namespace backplane::plugin

// Parameter types of the generated C++ functions: what a caller may write where an op takes a tensor, a number or a
// list.
//
// Each is a borrowed bp_value, or what makes one; none outlives the call that it is an argument of. Not the contract.
#pragma once

#include <cstdlib>
#include <initializer_list>
#include <optional>
#include <span>
#include <type_traits>
#include <vector>

#include "backplane/graph_function.hpp"
#include "backplane/op.hpp"

namespace backplane {

namespace detail {
template <class T>
concept Number = std::is_arithmetic_v<T>;

template <Number T>
bp_value number_value(T x) noexcept {
  if constexpr (std::is_same_v<T, bool>)
    return value(x);
  else if constexpr (std::is_floating_point_v<T>)
    return value(static_cast<double>(x));
  else {
    bp_value number = value(static_cast<int64_t>(x));
    if (std::is_unsigned_v<T> && number.u.i < 0) number.flags = BP_VALUE_UINT64;
    return number;
  }
}
}  // namespace detail

// A tensor, or a number, which is weak in promotion. Default-made: absent.
struct Operand {
  bp_value borrowed{};
  Operand() = default;
  Operand(const Tensor& tensor) noexcept : borrowed(value(tensor)) {}
  template <detail::Number T>
  Operand(T x) noexcept : borrowed(number(detail::number_value(x))) {}
};

// A static number. Default-made: absent.
struct Scalar {
  bp_value borrowed{};
  Scalar() = default;
  template <detail::Number T>
  Scalar(T x) noexcept : borrowed(detail::number_value(x)) {}
};

// A dtype: an enumerator, or a bp_dtype. No other number and no bool, which would be another argument's.
struct Dtype {
  bp_dtype dtype;
  template <class T>
  requires(std::is_same_v<T, bp_dtype> || std::is_same_v<T, decltype(BP_BOOL)>) constexpr Dtype(T value) noexcept
      : dtype(static_cast<bp_dtype>(value)) {}
};

// Axes, sizes or a shape. Default-made: empty.
struct Ints {
  std::span<const int64_t> list;
  Ints() = default;
  Ints(std::initializer_list<int64_t> ints) noexcept : list(ints.begin(), ints.size()) {}
  Ints(std::span<const int64_t> ints) noexcept : list(ints) {}
  Ints(const std::vector<int64_t>& ints) noexcept : list(ints) {}
};

// As Ints, but absent when default-made.
struct OptionalInts {
  std::optional<Ints> list;
  OptionalInts() = default;
  OptionalInts(std::nullopt_t) noexcept {}
  OptionalInts(std::initializer_list<int64_t> ints) noexcept : list(ints) {}
  OptionalInts(std::span<const int64_t> ints) noexcept : list(ints) {}
  OptionalInts(const std::vector<int64_t>& ints) noexcept : list(ints) {}
};

// Positions that may be absent, such as the start of a slice.
class Positions {
 public:
  Positions(std::initializer_list<std::optional<int64_t>> ints) {
    values_.reserve(ints.size());
    for (const std::optional<int64_t>& i : ints) values_.push_back(i ? backplane::value(*i) : absent());
  }
  Positions(const std::vector<int64_t>& ints) {
    for (int64_t i : ints) values_.push_back(backplane::value(i));
  }
  bp_value borrowed() const noexcept {
    bp_value list{};
    list.tag = BP_TAG_VALUE_LIST;
    list.count = static_cast<uint32_t>(values_.size());
    list.u.values = values_.data();
    return list;
  }

 private:
  std::vector<bp_value> values_;
};

// Tensors; an empty handle is an absent element.
struct Tensors {
  std::span<const Tensor> list;
  Tensors() = default;
  Tensors(std::initializer_list<Tensor> tensors) noexcept : list(tensors.begin(), tensors.size()) {}
  Tensors(std::span<const Tensor> tensors) noexcept : list(tensors) {}
  Tensors(const std::vector<Tensor>& tensors) noexcept : list(tensors) {}
};
static_assert(sizeof(Tensor) == sizeof(bp_tensor*) && std::is_standard_layout_v<Tensor>,
              "a span of Tensors is a list of handles");

namespace detail {

inline bp_value borrow(const Operand& x) noexcept { return x.borrowed; }
inline bp_value borrow(const Scalar& x) noexcept { return x.borrowed; }
inline bp_value borrow(const Ints& x) noexcept { return value(x.list); }
inline bp_value borrow(const OptionalInts& x) noexcept { return x.list ? value(x.list->list) : absent(); }
inline bp_value borrow(const Positions& x) noexcept { return x.borrowed(); }
inline bp_value borrow(const Tensors& x) noexcept {
  bp_value list{};
  list.tag = BP_TAG_TENSOR_LIST;
  list.count = static_cast<uint32_t>(x.list.size());
  list.u.tensors = reinterpret_cast<bp_tensor* const*>(x.list.data());
  return list;
}
inline bp_value borrow(const GraphFunction& x) noexcept { return value(x); }
inline bp_value borrow(bool x) noexcept { return value(x); }
inline bp_value borrow(int64_t x) noexcept { return value(x); }
inline bp_value borrow(bp_device x) noexcept { return value(x); }
inline bp_value borrow(Dtype x) noexcept { return dtype_value(x.dtype); }
inline bp_value borrow(const bp_generator_state& x) noexcept {
  bp_value state{};
  state.tag = BP_TAG_GENERATOR;
  state.u.g = &x;
  return state;
}
inline bp_value borrow(const bp_generator_state* x) noexcept { return x ? borrow(*x) : absent(); }
inline bp_value borrow(std::string_view x) noexcept {
  bp_value text{};
  text.tag = BP_TAG_STRING;
  text.count = static_cast<uint32_t>(x.size());
  text.u.s = x.data();
  return text;
}
template <class T>
bp_value borrow(const std::optional<T>& x) noexcept {
  return x ? borrow(*x) : absent();
}

// Random numbers are taken from a generator by moving it on: the call reads the state in which it was, which this
// holds.
class Drawn {
 public:
  template <size_t N>
  Drawn(bp_generator_state* generator, OpHandle op, bp_value (&args)[N]) {
    if (!generator) return;
    state_ = reserve_random(*generator, op, args);
    for (bp_value& value : args)
      if (value.tag == BP_TAG_GENERATOR && value.u.g == generator) value.u.g = &state_;
  }
  Drawn(const Drawn&) = delete;

 private:
  bp_generator_state state_{};
};

inline OpHandle op_named(const char* full_name) {
  const OpHandle op = find_op(full_name);
  BP_CHECK(op != 0xffffffffu, NOT_IMPLEMENTED, full_name, ": no such op is registered; load the plugin that brings it");
  return op;
}

template <size_t N>
void call_results(OpHandle op, const bp_value (&args)[N], bp_value* outs, int32_t n_outs) {
  if (bp_status status = call_packed(op, args, static_cast<int32_t>(N), outs, n_outs)) throw_last_error(status);
}
template <size_t N>
Tensor call_result(OpHandle op, const bp_value (&args)[N]) {
  bp_value out{};
  call_results(op, args, &out, 1);
  return Tensor::adopt(out.u.t);
}
template <size_t N>
void call_in_place(OpHandle op, const bp_value (&args)[N]) {
  if (bp_status status = call_inplace(op, args, static_cast<int32_t>(N))) throw_last_error(status);
}
// Of a result Tensor[]: the array belongs to the caller, like the references in it.
inline std::vector<Tensor> adopt_list(bp_value& list) {
  std::vector<Tensor> tensors;
  for (uint32_t i = 0; i < list.count; ++i) tensors.push_back(Tensor::adopt(list.u.tensors[i]));
  std::free(const_cast<void*>(list.u.p));
  return tensors;
}
inline bp_value given(const Tensor& out) noexcept {
  bp_value slot = value(out);
  slot.flags = BP_VALUE_GIVEN;
  return slot;
}

}  // namespace detail
}  // namespace backplane

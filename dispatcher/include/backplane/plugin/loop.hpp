// Walks the loop descriptor of a call (rows with BP_KERNEL_LOOP): runs of the innermost dimension, typed maps over
// elementwise operands, and the elements that a reduction folds into each result.
//
//   const Loop<3> loop(call, out, x, y);             // results first; x and y may be numbers
//   map_elements<T, T, T>(loop, [](T x, T y) { ... });
//
// For memory that this code can address. A Loop borrows from the call and is valid until the kernel returns.
// Not the contract: header-only sugar over backplane/abi.
#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <tuple>

#include "backplane/plugin/kernel.hpp"
#include "backplane/plugin/walk.hpp"

namespace backplane::plugin {

// A loop over N operands with their addresses. A number in a tensor position is an operand that never moves on.
template <size_t N>
class Loop {
 public:
  // Operands: bp_value or TensorView, results first. Numbers are stored in the call's compute dtype.
  template <class... Operands>
  requires(sizeof...(Operands) == N) explicit Loop(Context call, const Operands&... operands)
      : given_(call.frame->loop) {
    size_t k = 0;
    (set_operand(k++, call.compute(), operands), ...);
    count_ = given_ ? given_->count : flat_count_;
    BP_CHECK(!given_ || given_->n_operands == static_cast<int32_t>(N), INTERNAL, call.op_name(), ": the loop has ",
             given_ ? given_->n_operands : 0, " operands, the kernel ", N);
  }

  int64_t count() const { return count_; }
  int32_t rank() const { return given_ ? given_->rank : 1; }
  int64_t size(int32_t d) const { return given_ ? given_->sizes[d] : count_; }
  // Bytes from one position of dimension d to the next.
  int64_t stride(size_t operand, int32_t d) const {
    return given_ ? given_->strides[operand * static_cast<size_t>(given_->rank) + static_cast<size_t>(d)]
                  : flat_step_[operand];
  }
  char* data(size_t operand) const {
    return data_[operand] ? data_[operand] : const_cast<char*>(numbers_[operand].bytes);
  }

  // Stores operand k, where it is a number, in another dtype than the compute dtype.
  void set_number(size_t k, bp_dtype dtype, const bp_value& number) {
    if (!is_number(number)) return;
    dispatch_dtype<BP_MASK_ANY>(dtype, [&]<class T>() {
      const T element = number_as<T>(number);
      std::memcpy(numbers_[k].bytes, &element, sizeof(T));
    });
  }

 private:
  void set_operand(size_t k, bp_dtype compute, const bp_value& operand) {
    if (operand.tag == BP_TAG_TENSOR) return set_tensor(k, *operand.u.t);
    data_[k] = nullptr;
    flat_step_[k] = 0;
    set_number(k, compute, operand);
  }
  template <class T>
  void set_operand(size_t k, bp_dtype, const TensorView<T>& operand) {
    set_tensor(k, *operand.handle());
  }
  void set_tensor(size_t k, const bp_tensor& tensor) {
    data_[k] = static_cast<char*>(tensor.dl.data) + tensor.dl.byte_offset;
    flat_step_[k] = kItemSize[tensor.dtype];
    if (k == 0) flat_count_ = static_cast<int64_t>(tensor.nbytes / kItemSize[tensor.dtype]);
  }

  struct alignas(16) Number {
    char bytes[16];
  };
  const bp_loop* given_;  // nullptr: contiguous tensors of one shape
  int64_t count_ = 0, flat_count_ = 0;
  std::array<int64_t, N> flat_step_{};
  std::array<char*, N> data_{};
  std::array<Number, N> numbers_{};
};

namespace detail {
// Once for all bodies: a kernel has some hundred, and this walk would be compiled anew in each.
template <size_t N>
void walk_runs(const Loop<N>& loop, int64_t begin, int64_t end, void* body,
               void (*call)(void*, const std::array<char*, N>&, const std::array<int64_t, N>&, int64_t)) {
  if (begin >= end) return;
  const int32_t inner = loop.rank() - 1;  // -1: one element, without dimensions
  const int64_t length = inner < 0 ? 1 : loop.size(inner);
  std::array<char*, N> at;
  std::array<int64_t, N> step{};
  std::array<int64_t, kMaxRank> index;
  for (size_t k = 0; k < N; ++k) {
    at[k] = loop.data(k);
    if (inner >= 0) step[k] = loop.stride(k, inner);
  }
  int64_t first = begin % length, rest = begin / length;
  for (int32_t d = inner - 1; d >= 0; --d) {
    index[static_cast<size_t>(d)] = rest % loop.size(d);
    for (size_t k = 0; k < N; ++k) at[k] += rest % loop.size(d) * loop.stride(k, d);
    rest /= loop.size(d);
  }
  for (int64_t left = end - begin;; first = 0) {
    const int64_t n = std::min(left, length - first);
    std::array<char*, N> from = at;
    for (size_t k = 0; k < N; ++k) from[k] += first * step[k];
    call(body, from, step, n);
    if ((left -= n) == 0) return;
    for (int32_t d = inner - 1; d >= 0; --d) {
      const bool wraps = ++index[static_cast<size_t>(d)] == loop.size(d);
      for (size_t k = 0; k < N; ++k) at[k] += (wraps ? 1 - loop.size(d) : 1) * loop.stride(k, d);
      if (!wraps) break;
      index[static_cast<size_t>(d)] = 0;
    }
  }
}
}  // namespace detail

// body(addresses, steps in bytes, length) for each run of the innermost dimension, over the positions [begin, end) of
// the loop: pieces of one loop may run on several threads.
template <size_t N, class Body>
void for_each_run(const Loop<N>& loop, int64_t begin, int64_t end, Body&& body) {
  using Erased = std::remove_reference_t<Body>;
  detail::walk_runs<N>(loop, begin, end, const_cast<void*>(static_cast<const void*>(&body)),
                       [](void* erased, const std::array<char*, N>& at, const std::array<int64_t, N>& step, int64_t n) {
                         (*static_cast<Erased*>(erased))(at, step, n);
                       });
}
template <size_t N, class Body>
void for_each_run(const Loop<N>& loop, Body&& body) {
  for_each_run(loop, 0, loop.count(), body);
}

namespace detail {
// A run; operands of kFixed, a bit each, stay at their first element.
template <uint32_t kFixed, class Out, class... In, class F, size_t... I>
void map_contiguous(char* out, const std::array<char*, sizeof...(In) + 1>& at, int64_t n, F& f,
                    std::index_sequence<I...>) {
  const std::tuple first{*reinterpret_cast<const In*>(at[I + 1])...};
  const std::tuple inputs{reinterpret_cast<const In*>(at[I + 1])...};
  Out* results = reinterpret_cast<Out*>(out);
  for (int64_t i = 0; i < n; ++i)
    results[i] = f(((kFixed >> I & 1u) != 0 ? std::get<I>(first) : std::get<I>(inputs)[i])...);
}
}  // namespace detail

// out = f(in, ...), element by element. Contiguous runs, and those whose last input stays where it is, are loops of
// their own, which compilers turn into vector code.
template <class Out, class... In, class F>
void map_elements(const Loop<sizeof...(In) + 1>& loop, F f) {
  constexpr size_t kInputs = sizeof...(In);
  using Inputs = std::make_index_sequence<kInputs>;
  for_each_run(loop, [&](const auto& at, const auto& step, int64_t n) {
    constexpr int64_t kSteps[] = {sizeof(In)...};
    bool contiguous = step[0] == sizeof(Out);
    for (size_t i = 0; i + 1 < kInputs; ++i) contiguous = contiguous && step[i + 1] == kSteps[i];
    if (contiguous && step[kInputs] == kSteps[kInputs - 1])
      return detail::map_contiguous<0, Out, In...>(at[0], at, n, f, Inputs());
    if (kInputs > 1 && contiguous && step[kInputs] == 0)
      return detail::map_contiguous<1u << (kInputs - 1), Out, In...>(at[0], at, n, f, Inputs());
    [&]<size_t... I>(std::index_sequence<I...>) {
      for (int64_t i = 0; i < n; ++i)
        *reinterpret_cast<Out*>(at[0] + i * step[0]) = f(*reinterpret_cast<const In*>(at[I + 1] + i * step[I + 1])...);
    }
    (Inputs());
  });
}

// The elements that a reduction folds into one result.
class Folded {
 public:
  Folded(const Loop<2>& loop, std::span<const int32_t> dims, const char* first, int64_t count)
      : loop_(loop), dims_(dims), first_(first), count_(count) {}
  int64_t count() const { return count_; }
  // body(address, step in bytes, length), in the loop's order.
  template <class Body>
  void for_each_run(Body&& body) const {
    if (count_ == 0) return;
    const int64_t length = dims_.empty() ? 1 : loop_.size(dims_.back());
    const int64_t step = dims_.empty() ? 0 : loop_.stride(1, dims_.back());
    const auto dim = [&](int32_t d) { return dims_[static_cast<size_t>(d)]; };
    walk_dims<1>(
        static_cast<int32_t>(dims_.size()) - 1, [&](int32_t d) { return loop_.size(dim(d)); },
        [&](size_t, int32_t d) { return loop_.stride(1, dim(d)); },
        [&](const auto& at) { body(first_ + at[0], step, length); });
  }

 private:
  const Loop<2>& loop_;
  std::span<const int32_t> dims_;
  const char* first_;
  int64_t count_;
};

// body(address of the result, its Folded) for every result of a reduction, those of no elements too.
template <class Body>
void for_each_fold(Context call, MutTensor<void> out, ConstTensor<void> x, Body&& body) {
  const Loop<2> loop(call, out, x);
  char* results = loop.data(0);
  if (loop.count() == 0) {  // without elements the loop has no dimensions to walk
    const Folded nothing(loop, {}, nullptr, 0);
    const int64_t item = kItemSize[out.dtype()];
    walk<1>(out.shape(), {out.strides()}, [&](const auto& at) { body(results + at[0] * item, nothing); });
    return;
  }
  std::array<int32_t, kMaxRank> kept, folded;
  size_t n_kept = 0, n_folded = 0;
  int64_t each = 1;
  for (int32_t d = 0; d < loop.rank(); ++d) {
    if (loop.stride(0, d) != 0) {
      kept[n_kept++] = d;
    } else {
      folded[n_folded++] = d;
      each *= loop.size(d);
    }
  }
  const auto dim = [&](int32_t d) { return kept[static_cast<size_t>(d)]; };
  walk_dims<2>(
      static_cast<int32_t>(n_kept), [&](int32_t d) { return loop.size(dim(d)); },
      [&](size_t k, int32_t d) { return loop.stride(k, dim(d)); },
      [&](const auto& at) {
        body(results + at[0], Folded(loop, {folded.data(), n_folded}, loop.data(1) + at[1], each));
      });
}

}  // namespace backplane::plugin

// Walks a Loop: runs of the innermost dimension, and typed maps over one to three inputs.
//
// The contiguous cases, and those with one operand held fixed, are separate plain loops so that the compiler
// vectorises them.
#pragma once

#include <array>

#include "../call.hpp"

namespace sim {

template <size_t N>
using Pointers = std::array<char*, N>;
template <size_t N>
using Steps = std::array<int64_t, N>;

// Once for all bodies: elementwise ops have some hundred, and the walk would be compiled anew in each.
template <size_t N>
void walk_runs(const Loop& loop, void* body, void (*call)(void*, const Pointers<N>&, const Steps<N>&, int64_t)) {
  if (loop.count == 0) return;
  const int32_t rank = loop.rank();
  Pointers<N> at;
  Steps<N> inner{};
  for (size_t k = 0; k < N; ++k) {
    at[k] = loop.data[k] ? loop.data[k] : const_cast<char*>(loop.numbers[k].bytes.data());
    if (rank > 0) inner[k] = loop.strides[k * static_cast<size_t>(rank) + static_cast<size_t>(rank - 1)];
  }
  if (rank <= 1) return call(body, at, inner, loop.count);

  std::vector<int64_t> index(static_cast<size_t>(rank - 1), 0);
  while (true) {
    call(body, at, inner, loop.sizes.back());
    int32_t d = rank - 2;
    for (; d >= 0; --d) {
      const auto dim = static_cast<size_t>(d);
      const bool wraps = ++index[dim] == loop.sizes[dim];
      const int64_t steps = wraps ? 1 - loop.sizes[dim] : 1;
      for (size_t k = 0; k < N; ++k) at[k] += steps * loop.strides[k * static_cast<size_t>(rank) + dim];
      if (!wraps) break;
      index[dim] = 0;
    }
    if (d < 0) return;
  }
}

// body(pointers, strides of the innermost dimension in bytes, length), once per run.
template <size_t N, class Body>
void for_each_run(const Loop& loop, Body&& body) {
  walk_runs<N>(loop, &body, [](void* erased, const Pointers<N>& at, const Steps<N>& step, int64_t n) {
    (*static_cast<std::remove_reference_t<Body>*>(erased))(at, step, n);
  });
}

template <class Out, class In, class F>
void map_one(const Loop& loop, F f) {
  for_each_run<2>(loop, [&](const auto& at, const auto& step, int64_t n) {
    if (step[0] == sizeof(Out) && step[1] == sizeof(In)) {
      Out* out = reinterpret_cast<Out*>(at[0]);
      const In* x = reinterpret_cast<const In*>(at[1]);
      for (int64_t i = 0; i < n; ++i) out[i] = f(x[i]);
      return;
    }
    for (int64_t i = 0; i < n; ++i)
      *reinterpret_cast<Out*>(at[0] + i * step[0]) = f(*reinterpret_cast<const In*>(at[1] + i * step[1]));
  });
}

template <class Out, class In, class F>
void map_two(const Loop& loop, F f) {
  for_each_run<3>(loop, [&](const auto& at, const auto& step, int64_t n) {
    Out* out = reinterpret_cast<Out*>(at[0]);
    const In* x = reinterpret_cast<const In*>(at[1]);
    const In* y = reinterpret_cast<const In*>(at[2]);
    constexpr int64_t width = sizeof(In);
    if (step[0] == sizeof(Out) && step[1] == width && step[2] == width) {
      for (int64_t i = 0; i < n; ++i) out[i] = f(x[i], y[i]);
    } else if (step[0] == sizeof(Out) && step[1] == width && step[2] == 0) {
      const In fixed = *y;
      for (int64_t i = 0; i < n; ++i) out[i] = f(x[i], fixed);
    } else if (step[0] == sizeof(Out) && step[1] == 0 && step[2] == width) {
      const In fixed = *x;
      for (int64_t i = 0; i < n; ++i) out[i] = f(fixed, y[i]);
    } else {
      for (int64_t i = 0; i < n; ++i)
        *reinterpret_cast<Out*>(at[0] + i * step[0]) =
            f(*reinterpret_cast<const In*>(at[1] + i * step[1]), *reinterpret_cast<const In*>(at[2] + i * step[2]));
    }
  });
}

}  // namespace sim

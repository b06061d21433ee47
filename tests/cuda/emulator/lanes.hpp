// How handlers read and write the lanes' slots, and the table that they register in.
#pragma once

#include <bit>
#include <cstring>
#include <string>
#include <type_traits>
#include <unordered_map>

#include "warp.hpp"

namespace emulator {

template <class T>
T slot(const uint64_t* column, int lane) {
  T value;
  std::memcpy(&value, column + lane, sizeof(T));
  return value;
}
template <class T>
void set_slot(uint64_t* column, int lane, T value) {
  if constexpr (std::is_integral_v<T>) {
    column[lane] = static_cast<uint64_t>(static_cast<int64_t>(value));
    if constexpr (std::is_unsigned_v<T>) column[lane] = value;
  } else {
    column[lane] = 0;
    std::memcpy(column + lane, &value, sizeof(T));
  }
}

template <class F>
void each_lane(uint32_t mask, F f) {
  if (mask == UINT32_MAX) {
    for (int lane = 0; lane < kLanes; ++lane) f(lane);
  } else {
    for (; mask; mask &= mask - 1) f(std::countr_zero(mask));
  }
}

// Sets a predicate's bits for the lanes that run.
inline void set_predicate(Warp& warp, uint32_t reg, uint32_t bits) {
  uint64_t& word = *warp.column(reg);
  word = (static_cast<uint32_t>(word) & ~warp.mask()) | (bits & warp.mask());
}

using Handlers = std::unordered_map<std::string, Handler>;

// out = F(in...), of values of types D and A...
template <auto F, class D, class... A>
void apply(Warp& warp, const Instruction& instruction) {
  uint64_t* out = warp.column(instruction.out[0]);
  [&]<size_t... I>(std::index_sequence<I...>) {
    const uint64_t* in[] = {warp.column(instruction.in[I])...};
    each_lane(warp.mask(), [&](int lane) { set_slot<D>(out, lane, static_cast<D>(F(slot<A>(in[I], lane)...))); });
  }
  (std::index_sequence_for<A...>());
}
template <auto F, class D, class... A>
void enter_handler(Handlers& handlers, const std::string& name) {
  handlers[name] = apply<F, D, A...>;
}

void add_integer_handlers(Handlers& handlers);
void add_float_handlers(Handlers& handlers);
void add_conversion_handlers(Handlers& handlers);
void add_compare_handlers(Handlers& handlers);
void add_warp_handlers(Handlers& handlers);
void add_memory_handlers(Handlers& handlers);
void add_tensor_handlers(Handlers& handlers);

}  // namespace emulator

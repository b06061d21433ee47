// Writing or adding elements where they may meet others: the scatter half of indexing.
#pragma once

#include <complex>
#include <cstdint>
#include <type_traits>

#include "backplane/plugin.hpp"

namespace backplane::cpu {

// A bool in memory that another library shares: its byte may be any by now, which a C++ bool must not be.
struct BoolByte {
  uint8_t byte;
};

// In what many values of a type are summed and multiplied: float64 and complex128 for the smaller ones.
template <class T>
using Wide = std::conditional_t<std::is_same_v<T, std::complex<float>>, std::complex<double>,
                                std::conditional_t<std::is_same_v<plugin::Compute<T>, float>, double, T>>;

// target += value. Integers wrap, bool is or; half floats add in float32 and round each time (a caller
// with many sums keeps them as Wide).
template <class T>
void add_to(T& target, T value) {
  if constexpr (std::is_same_v<T, BoolByte>)
    target.byte = (target.byte | value.byte) != 0;
  else if constexpr (std::is_integral_v<T>)
    target = static_cast<T>(static_cast<uint64_t>(target) + static_cast<uint64_t>(value));
  else
    target = T(plugin::Compute<T>(target) + plugin::Compute<T>(value));
}

// n elements, strides in bytes: to[i] = from[i], or to[i] += from[i] (bool: or).
using ScatterRow = void (*)(const char* from, int64_t from_stride, char* to, int64_t to_stride, int64_t n);
// The same of n single elements, each to its own offset in bytes.
using ScatterElements = void (*)(const char* from, int64_t from_stride, char* to, const int64_t* offsets, int64_t n);

struct Scatter {
  ScatterRow row;
  ScatterElements elements;
};
// Between tensors of one dtype, or sums of small floats into float64 and of complex64 into complex128.
Scatter scatter_of(bp_dtype from, bp_dtype to, bool accumulate);

}  // namespace backplane::cpu

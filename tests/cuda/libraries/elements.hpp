// Elements of the emulated device's memory as the stand-ins for CUDA's libraries read and write them: checked, one by
// one.
#pragma once

#include <bit>
#include <complex>
#include <cstdint>
#include <cstring>

#include "services.hpp"

namespace emulator {

using Half = _Float16;
struct Brain {  // bfloat16
  uint16_t bits;
};

// Sum: what products are added in, rounded to Compute and then to the element.
template <class T>
struct Element {
  using Compute = T;
  using Sum = T;
};
template <>
struct Element<float> {
  using Compute = float;
  using Sum = double;
};
template <>
struct Element<Half> : Element<float> {};
template <>
struct Element<Brain> : Element<float> {};
template <>
struct Element<std::complex<float>> {
  using Compute = std::complex<float>;
  using Sum = std::complex<double>;
};

template <class T>
typename Element<T>::Compute load(const void* at) {
  T value;
  std::memcpy(&value, readable(at, sizeof(T)), sizeof(T));
  if constexpr (std::is_same_v<T, Brain>)
    return std::bit_cast<float>(uint32_t{value.bits} << 16);
  else
    return typename Element<T>::Compute(value);
}

template <class T>
void store(void* at, typename Element<T>::Sum sum) {
  const typename Element<T>::Compute rounded(sum);
  T value;
  if constexpr (std::is_same_v<T, Brain>) {  // to nearest, ties to even
    const auto bits = std::bit_cast<uint32_t>(rounded);
    const uint32_t up = rounded == rounded ? 0x7fff + (bits >> 16 & 1) : 0;
    value = {static_cast<uint16_t>((bits + up) >> 16)};
  } else {
    value = T(rounded);
  }
  std::memcpy(writable(at, sizeof(T)), &value, sizeof(T));
}

}  // namespace emulator

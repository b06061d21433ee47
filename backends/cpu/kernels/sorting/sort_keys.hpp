// Elements as unsigned integers in the order of sorting, alone or packed with their positions.
//
// NaN counts as largest. Packed keys are all different, so any sorting of them is stable. Pure.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "backplane/plugin.hpp"

namespace backplane::cpu {

template <class T>
using SortKey = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
__extension__ typedef unsigned __int128 WidePacked;

template <int Bytes>
using BitsOf =
    std::conditional_t<Bytes == 1, uint8_t,
                       std::conditional_t<Bytes == 2, uint16_t, std::conditional_t<Bytes == 4, uint32_t, uint64_t>>>;

template <class T>
constexpr bool kIsHalf = std::is_same_v<T, plugin::float16> || std::is_same_v<T, plugin::bfloat16>;
template <class T>
constexpr auto kInfinityBits = std::bit_cast<BitsOf<sizeof(T)>>(std::numeric_limits<T>::infinity());
template <>
inline constexpr uint16_t kInfinityBits<plugin::float16> = 0x7c00;
template <>
inline constexpr uint16_t kInfinityBits<plugin::bfloat16> = 0x7f80;

// Floating numbers are sign and magnitude: negative ones are inverted, others get the highest bit. By arithmetic alone:
// signs of no order would mispredict a branch.
// Always inlined: loops that are compiled for each Highway target vectorise them.
template <class T>
[[gnu::always_inline]] inline SortKey<T> sort_key(T value) {
  using Bits = BitsOf<sizeof(T)>;
  constexpr auto kTop = static_cast<Bits>(Bits{1} << (8 * sizeof(T) - 1));
  const Bits bits = std::bit_cast<Bits>(value);
  if constexpr (std::is_unsigned_v<T>) {
    return bits;
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<Bits>(bits ^ kTop);
  } else {
    const auto negative = static_cast<Bits>(-(bits >> (8 * sizeof(T) - 1)));
    const auto nan = static_cast<Bits>(-Bits{static_cast<Bits>(bits & ~kTop) > kInfinityBits<T>});
    return static_cast<Bits>((bits ^ (negative | kTop)) | nan);
  }
}
// Zeros of both signs count as equal where positions break ties.
template <class T>
SortKey<T> tie_key(T value) {
  if constexpr (std::is_integral_v<T>) {
    return sort_key(value);
  } else if constexpr (kIsHalf<T>) {
    const SortKey<T> key = sort_key(value);
    return key + (key == 0x7fff);  // the key of -0, next below that of 0
  } else {
    return value == 0 ? sort_key(T(0)) : sort_key(value);
  }
}
template <class T>
[[gnu::always_inline]] inline T value_of_key(SortKey<T> key) {
  using Bits = BitsOf<sizeof(T)>;
  constexpr auto kTop = static_cast<Bits>(Bits{1} << (8 * sizeof(T) - 1));
  const auto bits = static_cast<Bits>(key);
  if constexpr (std::is_unsigned_v<T>)
    return static_cast<T>(bits);
  else if constexpr (std::is_integral_v<T>)
    return std::bit_cast<T>(static_cast<Bits>(bits ^ kTop));
  else
    return std::bit_cast<T>(static_cast<Bits>(bits ^ (kTop | ((bits >> (8 * sizeof(T) - 1)) - 1))));
}

// The keys of n elements whose distance is `stride` bytes, inverted for descending order.
template <class T>
[[gnu::always_inline]] inline void read_keys(const char* x, int64_t stride, int64_t n, bool descending,
                                             SortKey<T>* keys) {
  const auto flip = static_cast<SortKey<T>>(descending ? ~SortKey<T>{0} : 0);
  if (stride == sizeof(T))
    for (int64_t i = 0; i < n; ++i) keys[i] = sort_key(reinterpret_cast<const T*>(x)[i]) ^ flip;
  else
    for (int64_t i = 0; i < n; ++i) keys[i] = sort_key(*reinterpret_cast<const T*>(x + i * stride)) ^ flip;
}
template <class T>
[[gnu::always_inline]] inline void write_keys(const SortKey<T>* keys, int64_t n, bool descending, char* out,
                                              int64_t stride) {
  const auto flip = static_cast<SortKey<T>>(descending ? ~SortKey<T>{0} : 0);
  if (stride == sizeof(T))
    for (int64_t i = 0; i < n; ++i) reinterpret_cast<T*>(out)[i] = value_of_key<T>(keys[i] ^ flip);
  else
    for (int64_t i = 0; i < n; ++i) *reinterpret_cast<T*>(out + i * stride) = value_of_key<T>(keys[i] ^ flip);
}

// The key above the position; Packed is uint64_t or WidePacked. Inverted keys sort in descending order.
template <class Packed, class T>
Packed pack(T value, int64_t position, bool descending) {
  constexpr int kShift = 4 * sizeof(Packed);
  SortKey<T> key = tie_key(value);
  if (descending) key = static_cast<SortKey<T>>(~key);
  return static_cast<Packed>(Packed{key} << kShift | static_cast<Packed>(position));
}
template <class Packed>
int64_t position_of(Packed packed) {
  constexpr Packed kMask = (Packed{1} << 4 * sizeof(Packed)) - 1;
  return static_cast<int64_t>(packed & kMask);
}

// Sorts in place, in ascending order, in memory for sorting_room(n) keys, on the host's threads where they are many.
void sort_keys(const bp_frame* frame, uint32_t* keys, int64_t n);
void sort_keys(const bp_frame* frame, uint64_t* keys, int64_t n);
void sort_keys(const bp_frame* frame, WidePacked* keys, int64_t n);

}  // namespace backplane::cpu

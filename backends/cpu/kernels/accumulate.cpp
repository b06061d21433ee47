// See accumulate.hpp. Half floats add in float32 and round each time, as the dtype says.
#include "kernels/accumulate.hpp"

#include "backplane/plugin.hpp"

namespace backplane::cpu {
namespace {

// Whole rows, which the compiler vectorises: a value and its target are never the same memory.
template <class T>
void add_row(const T* from, T* to, int64_t n) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    if constexpr (std::is_integral_v<T>)
      to[i] = static_cast<T>(static_cast<uint64_t>(to[i]) + static_cast<uint64_t>(from[i]));
    else
      to[i] = T(plugin::Compute<T>(to[i]) + plugin::Compute<T>(from[i]));
  }
}
template <class T, bool Add>
void row(const char* from, int64_t from_stride, char* to, int64_t to_stride, int64_t n) {
  if constexpr (Add)
    if (n >= 8 && from_stride == int64_t{sizeof(T)} && to_stride == int64_t{sizeof(T)})
      return add_row(reinterpret_cast<const T*>(from), reinterpret_cast<T*>(to), n);
  for (int64_t i = 0; i < n; ++i, from += from_stride, to += to_stride) {
    const T value = *reinterpret_cast<const T*>(from);
    T& target = *reinterpret_cast<T*>(to);
    if constexpr (!Add)
      target = value;
    else if constexpr (std::is_integral_v<T>)
      target = static_cast<T>(static_cast<uint64_t>(target) + static_cast<uint64_t>(value));
    else
      target = T(plugin::Compute<T>(target) + plugin::Compute<T>(value));
  }
}
void row_or(const char* from, int64_t from_stride, char* to, int64_t to_stride, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i * to_stride] |= from[i * from_stride];
}

}  // namespace

ScatterRow scatter_row(bp_dtype dtype, bool accumulate) {
  if (dtype == BP_BOOL) return accumulate ? row_or : row<uint8_t, false>;
  return plugin::dispatch_dtype<BP_MASK_ANY & ~BP_MASK_BOOL>(
      dtype, [&]<class T>() -> ScatterRow { return accumulate ? row<T, true> : row<T, false>; });
}

}  // namespace backplane::cpu

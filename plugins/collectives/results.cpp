#include "results.hpp"

#include <complex>
#include <cstring>

#include "backplane/plugin/dtype.hpp"

namespace backplane::collectives {
namespace {

template <class T>
void combine(uint32_t reduce, T* to, const T* from, uint64_t n) {
  for (uint64_t i = 0; i < n; ++i) {
    if (reduce == BP_COLLECTIVE_SUM) {
      if constexpr (std::is_integral_v<T>)
        to[i] = static_cast<T>(static_cast<uint64_t>(to[i]) + static_cast<uint64_t>(from[i]));
      else
        to[i] += from[i];
    } else if (reduce == BP_COLLECTIVE_PROD) {
      if constexpr (std::is_integral_v<T>)
        to[i] = static_cast<T>(static_cast<uint64_t>(to[i]) * static_cast<uint64_t>(from[i]));
      else
        to[i] *= from[i];
    } else if constexpr (!plugin::kIsComplex<T>) {
      const bool takes = reduce == BP_COLLECTIVE_MAX ? from[i] > to[i] : from[i] < to[i];
      if (takes || from[i] != from[i]) to[i] = from[i];  // NaN stays
    }
  }
}

bp_status combined(const bp_collective_call& call, void* to, const void* from, uint64_t n) {
  switch (call.dtype) {
#define BP_COMBINE(constant, type)                                                   \
  case BP_##constant:                                                                \
    combine(call.reduce, static_cast<type*>(to), static_cast<const type*>(from), n); \
    return BP_OK;
    BP_COMBINE(INT8, int8_t)
    BP_COMBINE(INT16, int16_t)
    BP_COMBINE(INT32, int32_t)
    BP_COMBINE(INT64, int64_t)
    BP_COMBINE(UINT8, uint8_t)
    BP_COMBINE(UINT16, uint16_t)
    BP_COMBINE(UINT32, uint32_t)
    BP_COMBINE(UINT64, uint64_t)
    BP_COMBINE(FLOAT32, float)
    BP_COMBINE(FLOAT64, double)
    BP_COMBINE(COMPLEX64, std::complex<float>)
    BP_COMBINE(COMPLEX128, std::complex<double>)
#undef BP_COMBINE
    default:
      return BP_ERROR_DTYPE;
  }
}

}  // namespace

bp_status compute_result(const bp_collective_call& call, size_t place, std::span<const void* const> operands) {
  const uint64_t bytes = call.count * static_cast<uint64_t>(plugin::kItemSize[call.dtype]);
  char* out = static_cast<char*>(call.out);
  const auto block = [&](size_t from, size_t index) {
    return static_cast<const char*>(operands[from]) + index * bytes;
  };
  const auto root = static_cast<size_t>(call.peer);
  const auto reduce = [&](size_t index) -> bp_status {
    std::memcpy(out, block(0, index), bytes);
    for (size_t i = 1; i < operands.size(); ++i)
      if (const bp_status status = combined(call, out, block(i, index), call.count)) return status;
    return BP_OK;
  };
  switch (call.kind) {
    case BP_COLLECTIVE_ALL_REDUCE:
      return reduce(0);
    case BP_COLLECTIVE_REDUCE:
      return place == root ? reduce(0) : bp_status{BP_OK};
    case BP_COLLECTIVE_REDUCE_SCATTER:
      return reduce(place);
    case BP_COLLECTIVE_BROADCAST:
      std::memcpy(out, block(root, 0), bytes);
      break;
    case BP_COLLECTIVE_SCATTER:
      std::memcpy(out, block(root, place), bytes);
      break;
    case BP_COLLECTIVE_GATHER:
      if (place != root) break;
      [[fallthrough]];
    case BP_COLLECTIVE_ALL_GATHER:
      for (size_t i = 0; i < operands.size(); ++i) std::memcpy(out + i * bytes, block(i, 0), bytes);
      break;
    case BP_COLLECTIVE_ALL_TO_ALL:
      for (size_t i = 0; i < operands.size(); ++i) std::memcpy(out + i * bytes, block(i, place), bytes);
      break;
    default:
      break;
  }
  return BP_OK;
}

}  // namespace backplane::collectives

// See lane_keys.hpp.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/sorting/lane_keys.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include "kernels/sorting/lane_keys.hpp"
#include "kernels/sorting/sort_keys.hpp"

HWY_BEFORE_NAMESPACE();
namespace backplane::cpu {
namespace HWY_NAMESPACE {

constexpr bp_dtype_mask kKeyed = BP_MASK_INTEGER | BP_MASK_FLOATING;

void keys_of_lane_here(bp_dtype dtype, const char* x, int64_t stride, int64_t n, bool descending, void* keys) {
  plugin::dispatch_dtype<kKeyed>(
      dtype, [&]<class T>() { read_keys<T>(x, stride, n, descending, static_cast<SortKey<T>*>(keys)); });
}
void lane_of_keys_here(bp_dtype dtype, const void* keys, int64_t n, bool descending, char* out, int64_t stride) {
  plugin::dispatch_dtype<kKeyed>(
      dtype, [&]<class T>() { write_keys<T>(static_cast<const SortKey<T>*>(keys), n, descending, out, stride); });
}

}  // namespace HWY_NAMESPACE
}  // namespace backplane::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace backplane::cpu {
HWY_EXPORT(keys_of_lane_here);
HWY_EXPORT(lane_of_keys_here);

void keys_of_lane(bp_dtype dtype, const char* x, int64_t stride, int64_t n, bool descending, void* keys) {
  HWY_DYNAMIC_DISPATCH(keys_of_lane_here)(dtype, x, stride, n, descending, keys);
}
void lane_of_keys(bp_dtype dtype, const void* keys, int64_t n, bool descending, char* out, int64_t stride) {
  HWY_DYNAMIC_DISPATCH(lane_of_keys_here)(dtype, keys, n, descending, out, stride);
}

}  // namespace backplane::cpu
#endif

// See region.hpp.
#include "loops/region.hpp"

#include <cstring>

#include "loops/cast_row.hpp"
#include "loops/elementwise.hpp"
#include "loops/loop.hpp"

namespace backplane::cpu {

void copy_region(const bp_frame* frame, bp_dtype dtype, int32_t rank, const int64_t* shape, Region from, Region to) {
  const int64_t item = plugin::kItemSize[dtype];
  int64_t sizes[kMaxRank], sources[kMaxRank], targets[kMaxRank];
  int32_t merged = 0;
  int64_t count = 1;
  for (int32_t d = 0; d < rank; ++d) count *= shape[d];
  if (count == 0) return;  // before the strides, which of nothing may be any numbers
  for (int32_t d = 0; d < rank; ++d) {
    if (shape[d] == 1) continue;
    const int64_t source = from.strides[d] * item, target = to.strides[d] * item;
    if (merged > 0 && sources[merged - 1] == source * shape[d] && targets[merged - 1] == target * shape[d]) {
      sizes[merged - 1] *= shape[d];
      sources[merged - 1] = source;
      targets[merged - 1] = target;
      continue;
    }
    sizes[merged] = shape[d];
    sources[merged] = source;
    targets[merged++] = target;
  }
  int64_t strides[2 * kMaxRank];
  for (int32_t d = 0; d < merged; ++d) {
    strides[d] = targets[d];
    strides[merged + d] = sources[d];
  }
  const bp_loop loop{BP_HEADER(bp_loop), merged, 2, count, sizes, strides, nullptr, 0, 0, 0, 0, 0, 0};
  char* const bases[2] = {to.data, from.data};
  const auto range = [&](int64_t begin, int64_t end) {
    for_each_row<2>(loop, bases, begin, end, [&](char* const* p, const int64_t* s, int64_t n) -> const char* {
      if (s[0] == item && s[1] == item)
        std::memcpy(p[0], p[1], static_cast<size_t>(n * item));
      else
        cast_row(dtype, p[1], s[1], dtype, p[0], s[0], n);
      return nullptr;
    });
  };
  if (count <= kCheapGrain) return range(0, count);
  plugin::parallel_for(frame, 0, count, kCheapGrain, range);
}

}  // namespace backplane::cpu

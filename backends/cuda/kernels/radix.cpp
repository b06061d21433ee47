// The launches of a radix sort; see radix.hpp.
#include "kernels/radix.hpp"

namespace backplane::cuda {
namespace {

constexpr uint32_t kMostRows = 65535;  // of a grid

uint32_t* words(const Call& call, uint64_t count) {
  return reinterpret_cast<uint32_t*>(call.aligned_scratch(count * sizeof(uint32_t)));
}

uint32_t tile_of(uint32_t width) { return width == 8 ? kWideRadixTile : kRadixTile; }

}  // namespace

RadixSort::RadixSort(const Call& call, uint32_t lines, uint32_t length, uint32_t width, uint32_t bits)
    : call_(call),
      lines_(lines),
      length_(length),
      width_(width),
      passes_((bits + kDigitBits - 1) / kDigitBits),
      tiles_((length + tile_of(width) - 1) / tile_of(width)) {
  const uint64_t count = uint64_t{lines} * length, rows = uint64_t{lines} * kDigits;
  for (char*& keys : keys_) keys = call.aligned_scratch(count * width);
  for (uint32_t*& positions : positions_) positions = words(call, count);
  if (tiles_ > 1) counts_ = words(call, rows * tiles_), totals_ = words(call, rows);
}

Grid RadixSort::grid() const { return {tiles_, std::min(lines_, kMostRows), 1, kThreads}; }

uint64_t* RadixSort::varying() {
  varying_ = reinterpret_cast<uint64_t*>(call_.aligned_scratch(lines_ * sizeof(uint64_t)));
  call_.launch("radix", "clear_words", call_.grid_for(lines_), varying_, lines_);
  return varying_;
}

RadixPass RadixSort::prepared(uint32_t number) const {
  const RadixPass made{{keys_[0], keys_[1]},
                       {positions_[0], positions_[1]},
                       varying_,
                       counts_,
                       totals_,
                       lines_,
                       length_,
                       tiles_,
                       number};
  if (tiles_ > 1) {
    call_.launch("radix", kernel("count_digits"), grid(), made);
    call_.launch("radix", "sum_counts", call_.grid_for(uint64_t{lines_} * kDigits * kWarp), made);
  }
  return made;
}

RadixSort::Sorted RadixSort::sort() const {
  for (uint32_t pass = 0; pass < passes_; ++pass) call_.launch("radix", kernel("move_keys"), grid(), prepared(pass));
  return {keys_[passes_ % 2], positions_[passes_ % 2]};
}

void RadixSort::sort_into(const Sorting& result) const {
  for (uint32_t pass = 0; pass + 1 < passes_; ++pass)
    call_.launch("radix", kernel("move_keys"), grid(), prepared(pass));
  call_.launch("radix", kernel("write_positions"), grid(), prepared(passes_ - 1), result);
}

}  // namespace backplane::cuda

// Long lines in order, by a radix sort of keys that the caller makes.
#pragma once

#include "kernels/call.hpp"

namespace backplane::cuda {

// Lines of keys, unsigned words of `width` bytes (1, 2, 4 or 8); only the lower `bits` count. All their memory is
// the call's.
class RadixSort {
 public:
  RadixSort(const Call& call, uint32_t lines, uint32_t length, uint32_t width, uint32_t bits);

  // Where the keys are to be written, [line][length].
  char* keys() const { return keys_[0]; }
  // Where to write the bits in which each line's keys differ, zeros so far; without it no pass is left out.
  uint64_t* varying();
  // Orders them, equal keys as they are, with no pass left out; gives what came out, [line][length].
  struct Sorted {
    const char* keys;
    const uint32_t* positions;
  };
  Sorted sort() const;
  // The same, but only the positions are written, to `result`.
  void sort_into(const Sorting& result) const;

 private:
  // The pass, its digits counted.
  RadixPass prepared(uint32_t number) const;
  Grid grid() const;
  std::string kernel(const char* name) const { return name + ("_" + std::to_string(width_)); }

  const Call& call_;
  uint32_t lines_, length_, width_, passes_, tiles_;
  char* keys_[2];
  uint32_t* positions_[2];
  uint64_t* varying_ = nullptr;
  uint32_t *counts_ = nullptr, *totals_ = nullptr;
};

}  // namespace backplane::cuda

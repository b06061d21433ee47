// A tensor's elements in row-major order. Any range of them may be walked, so a tensor of any strides can be divided.
// Pure.
#pragma once

#include "loops/elementwise.hpp"
#include "loops/loop.hpp"

namespace backplane::cpu {

class RowMajor {
 public:
  explicit RowMajor(const bp_tensor* x) : base_(data_of(x)), item_(plugin::kItemSize[x->dtype]) {
    loop_.header = BP_HEADER(bp_loop);
    loop_.count = static_cast<int64_t>(x->nbytes) / item_;
    loop_.n_operands = 1;
    loop_.sizes = sizes_;
    loop_.strides = strides_;
    // From the last axis on, those that go on where the one before them ends are one.
    int32_t kept = 0;
    for (int32_t d = 0; d < x->dl.ndim; ++d) {
      const int64_t size = x->dl.shape[d], stride = x->dl.strides[d] * item_;
      if (size == 1) continue;
      if (kept > 0 && strides_[kept - 1] == stride * size) {
        sizes_[kept - 1] *= size;
        strides_[kept - 1] = stride;
        continue;
      }
      sizes_[kept] = size;
      strides_[kept++] = stride;
    }
    loop_.rank = kept;
  }
  RowMajor(const RowMajor&) = delete;

  int64_t count() const { return loop_.count; }

  // The first of them, where all are neighbours in memory; else NULL.
  const char* neighbours() const {
    return loop_.rank == 0 || (loop_.rank == 1 && strides_[0] == item_) ? base_ : nullptr;
  }

  // row(pointer, stride in bytes, how many) for the n elements from `first` on.
  template <class Row>
  void for_each(int64_t first, int64_t n, Row&& row) const {
    if (n == 0) return;
    char* const bases[1] = {base_};
    for_each_row<1>(loop_, bases, first, first + n,
                    [&](char* const* p, const int64_t* s, int64_t count) -> const char* {
                      row(p[0], s[0], count);
                      return nullptr;
                    });
  }

 private:
  char* base_;
  int64_t item_;
  bp_loop loop_{};
  int64_t sizes_[kMaxRank];
  int64_t strides_[kMaxRank];
};

}  // namespace backplane::cpu

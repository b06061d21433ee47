// Walks a call's loop tile by tile where an operand's neighbours lie across the output's rows, as a transposed
// matrix's.
//
// Read row by row, each of its elements would cost a cache line. A tile of such an operand is turned into a small array
// first, and its rows are handed out as any others.
#pragma once

#include "loops/elementwise.hpp"
#include "loops/loop.hpp"
#include "runtime/scratch.hpp"

namespace backplane::cpu {

inline constexpr int64_t kTileBytes = 16384;

// to[i][j] = from[j][i] for i < rows, j < columns; steps in bytes between from's and to's rows. item: 1, 2, 4, 8 or 16.
void turn_tile(int64_t item, const char* from, int64_t from_step, char* to, int64_t to_step, int64_t rows,
               int64_t columns);

// Operand 0 is the output.
template <int Operands>
class Tiles {
 public:
  Tiles(const bp_loop* loop, const int64_t (&items)[Operands]) : loop_(loop) {
    if (loop == nullptr || loop->rank < 2 || stride(0, last()) != items[0]) return;
    for (int k = 1; k < Operands && across_ < 0; ++k)
      for (int32_t d = 0; d < last(); ++d)
        if (lies_across(k, d, items[k]) && items[k] <= 16) across_ = d;
    if (across_ < 0) return;
    if (loop->sizes[across_] < kLeast || loop->sizes[last()] < kLeast) {
      across_ = -1;
      return;
    }
    for (int k = 0; k < Operands; ++k) {
      turned_[k] = k > 0 && lies_across(k, across_, items[k]);
      items_[k] = items[k];
      if (turned_[k]) side_ = std::min<int64_t>(side_, items[k] > 4 ? 32 : 64);
    }
    count_ = 1;
    for (int32_t d = 0; d < loop->rank; ++d) count_ *= tiles_along(d);
  }
  // Whether the loop is to be walked in this way.
  bool fits() const { return across_ >= 0; }
  int64_t count() const { return count_; }
  int64_t elements() const { return side_ * side_; }  // of a tile, at most

  // row(pointers, strides, n) for each row of the tiles [begin, end); returns what the first failing one returned.
  template <class Row>
  const char* for_each_row(char* const* bases, int64_t begin, int64_t end, Row&& row) const {
    const Scratch<char> memory(Operands * kTileBytes);  // the output's part stays untouched
    for (int64_t tile = begin; tile < end; ++tile) {
      char* corner[Operands];
      int64_t rows = 1, columns = 1;
      corners(tile, bases, corner, rows, columns);
      int64_t steps[Operands], strides[Operands];
      for (int k = 0; k < Operands; ++k) {
        steps[k] = turned_[k] ? side_ * items_[k] : stride(k, across_);
        strides[k] = turned_[k] ? items_[k] : stride(k, last());
        if (!turned_[k]) continue;
        char* turned = memory.get() + k * kTileBytes;
        turn_tile(items_[k], corner[k], stride(k, last()), turned, steps[k], rows, columns);
        corner[k] = turned;
      }
      for (int64_t i = 0; i < rows; ++i) {
        if (const char* fault = row(corner, strides, columns)) return fault;
        for (int k = 0; k < Operands; ++k) corner[k] += steps[k];
      }
    }
    return nullptr;
  }

 private:
  static constexpr int64_t kLeast = 8;  // below, tiles would be slivers
  int32_t last() const { return loop_->rank - 1; }
  int64_t stride(int k, int32_t d) const { return loop_->strides[k * loop_->rank + d]; }
  bool lies_across(int k, int32_t d, int64_t item) const {
    return stride(k, d) == item && stride(k, last()) != item && stride(k, last()) != 0;
  }
  int64_t tiles_along(int32_t d) const {
    return d == across_ || d == last() ? (loop_->sizes[d] + side_ - 1) / side_ : loop_->sizes[d];
  }
  void corners(int64_t tile, char* const* bases, char** corner, int64_t& rows, int64_t& columns) const {
    std::copy(bases, bases + Operands, corner);
    for (int32_t d = last(); d >= 0; --d) {
      const int64_t side = d == across_ || d == last() ? side_ : 1, at = tile % tiles_along(d) * side;
      tile /= tiles_along(d);
      for (int k = 0; k < Operands; ++k) corner[k] += at * stride(k, d);
      if (d == across_) rows = std::min(side, loop_->sizes[d] - at);
      if (d == last()) columns = std::min(side, loop_->sizes[d] - at);
    }
  }

  const bp_loop* loop_;
  int32_t across_ = -1;
  int64_t side_ = 64, count_ = 0;
  bool turned_[Operands] = {};
  int64_t items_[Operands] = {};
};

}  // namespace backplane::cpu

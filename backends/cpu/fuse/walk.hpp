// How one execution walks its tensors: the space's dims merged where all strides allow, and cut into tiles.
//
// Columns are the dims that reductions run over, or without any the last ones that merge; rows are the rest. A tile is
// either some whole rows or a piece of one.
#pragma once

#include <vector>

#include "fuse/program.hpp"

namespace backplane::cpu::fuse {

// Where the elements of a slot lie: `row` and `column` bytes from row to row and from column to column.
struct Place {
  char* p = nullptr;
  int64_t row = 0, column = 0;
};

class Walk {
 public:
  // strides: bytes, per tensor slot and dim of the space, grouped by slot; bases too. A tensor's columns
  // are evenly apart where there are reductions.
  Walk(const Program& program, const std::vector<int64_t>& sizes, const std::vector<char*>& bases,
       const std::vector<int64_t>& strides);

  int64_t tiles() const { return blocks_ * pieces_; }
  int64_t elements() const { return rows_ * columns_; }  // of a tile, at most
  int64_t rows() const { return rows_; }
  // Of the space, where it is walked in whole rows.
  int64_t all_rows() const { return total_rows_ * blocks_; }
  int64_t columns() const { return total_columns_; }
  // Tiles after which a number of rows of at least `rows` has been walked that is a leaf's, times a power of two; all
  // tiles where there is no such number.
  int64_t tiles_of_part(int64_t rows, int64_t leaf) const;

  // Elements of the space before the tile's, row by row.
  int64_t offset(int64_t tile) const {
    const int64_t piece = by_rows_ ? rows_ * total_columns_ : columns_;
    return tile / pieces_ * total_rows_ * total_columns_ + tile % pieces_ * piece;
  }

  // body(rows, columns) for each of the tiles [begin, end), with the places of the tensors set.
  template <class Body>
  void for_each_tile(int64_t begin, int64_t end, Place* tensors, Body&& body) const {
    for (int64_t tile = begin; tile < end; ++tile) {
      const int64_t piece = tile % pieces_;
      int64_t block = tile / pieces_;
      for (size_t k = 0; k < bases_.size(); ++k) tensors[k] = {bases_[k], row_step_[k], column_step_[k]};
      for (size_t d = outer_sizes_.size(); d-- > 0;) {
        const int64_t position = block % outer_sizes_[d];
        block /= outer_sizes_[d];
        for (size_t k = 0; k < bases_.size(); ++k) tensors[k].p += position * outer_steps_[d * bases_.size() + k];
      }
      const int64_t at = piece * (by_rows_ ? rows_ : columns_);
      for (size_t k = 0; k < bases_.size(); ++k) tensors[k].p += at * (by_rows_ ? row_step_[k] : column_step_[k]);
      if (by_rows_)
        body(std::min(rows_, total_rows_ - at), total_columns_);
      else
        body(int64_t{1}, std::min(columns_, total_columns_ - at));
    }
  }

 private:
  // Innermost first, the columns' before the rows'; steps: bytes per tensor, grouped by dim.
  struct Merged {
    std::vector<int64_t> sizes, steps;
    size_t column_dims = 0;
  };
  Merged merged(const Program& program, const std::vector<int64_t>& sizes, const std::vector<int64_t>& strides) const;
  void split(const Merged& dims);
  void cut(const Program& program);

  std::vector<char*> bases_;
  std::vector<int64_t> row_step_, column_step_, outer_sizes_, outer_steps_;
  int64_t total_rows_ = 1, total_columns_ = 1, rows_ = 1, columns_ = 1, blocks_ = 1, pieces_ = 1;
  bool by_rows_ = true;
};

}  // namespace backplane::cpu::fuse

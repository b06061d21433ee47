// What a region reduces over its rows: parts of consecutive rows, each one thread's, and the tree that merges them.
//
// A part takes its rows in order, in leaves of kLeafRows, and merges leaves like a binary counter. A part of
// kLeafRows * 2^k rows is a subtree, so the result does not depend on how rows are cut into parts.
#pragma once

#include <memory>

#include "fuse/program.hpp"

namespace backplane::cpu::fuse {

// One reduction over the rows of one part.
class ColumnPart {
 public:
  // `rows`: at most as many will be added.
  ColumnPart(const Columns& columns, int64_t width, int64_t rows);
  void add(const char* x, int64_t step, int64_t rows);
  void finish(char* accumulators);  // of at least one row

 private:
  void add_leaf(const char* x, int64_t step, int64_t rows);
  char* level(int64_t l) { return memory_.get() + (1 + l) * bytes_; }  // before them: the leaf
  char* pending() { return memory_.get() + (1 + levels_) * bytes_; }   // rows that do not make a leaf yet

  const Columns& columns_;
  int64_t width_, bytes_, levels_;
  std::unique_ptr<char[]> memory_;
  int64_t n_pending_ = 0;
  uint64_t n_leaves_ = 0;
};

// All reductions of an execution, in `parts` parts of at most `part_rows` rows.
class ColumnResults {
 public:
  ColumnResults(const Program& program, int64_t width, int64_t total_rows, int64_t part_rows, int64_t parts);
  std::vector<ColumnPart> part() const;
  void finish(std::vector<ColumnPart>& parts, int64_t index);
  void store(bp_value* outs);

 private:
  char* at(size_t column, int64_t part) const;

  const Program& program_;
  int64_t width_, rows_, part_rows_, parts_;
  std::vector<std::unique_ptr<char[]>> accumulators_;  // per reduction, those of its parts
};

}  // namespace backplane::cpu::fuse

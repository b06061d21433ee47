// What a region reduces over all its elements: leaf by leaf as the kernel does it, whatever elements a tile or a thread
// has of a leaf.
//
// Work is cut into units of consecutive elements, each one thread's. A leaf that lies in one unit is reduced there; one
// that several have is put together, and reduced when all is done.
#pragma once

#include <memory>
#include <vector>

#include "fuse/program.hpp"

namespace backplane::cpu::fuse {

class WholeResults;

// One reduction over the elements of one unit, in their order.
class WholePart {
 public:
  WholePart(WholeResults& results, size_t whole, int64_t begin);
  // Rows of neighbours, `step` bytes apart.
  void add(const char* x, int64_t step, int64_t rows, int64_t columns);

 private:
  void add_run(const char* x, int64_t n);

  WholeResults& results_;
  size_t whole_;
  int64_t at_;
  size_t leaf_;
  std::unique_ptr<char[]> pending_;  // of a leaf of this unit that is not complete
};

class WholeResults {
 public:
  // units: the elements at which they begin, the first of them 0, and the number of all.
  WholeResults(const Program& program, std::vector<int64_t> units);
  // All reductions over unit u.
  std::vector<WholePart> part(size_t u);
  void store(bp_value* outs);

 private:
  friend class WholePart;
  char* accumulator(size_t whole, size_t leaf) const { return accumulators_[whole].get() + leaf * item(whole); }
  size_t item(size_t whole) const { return static_cast<size_t>(plugin::kItemSize[program_.wholes[whole].dtype]); }
  // Where a leaf of several units is put together; NULL: it is one unit's.
  char* shared(size_t whole, size_t leaf) const;

  const Program& program_;
  std::vector<int64_t> units_, leaves_;
  std::vector<size_t> shared_leaves_;                  // in order
  std::vector<std::unique_ptr<char[]>> accumulators_;  // per reduction, those of the leaves
  std::vector<std::unique_ptr<char[]>> shared_;        // per reduction, kLongestLeaf elements per leaf
};

}  // namespace backplane::cpu::fuse

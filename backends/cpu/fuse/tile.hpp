// A worker's view of the slots of a program, the memory of its buffers, and the run of instructions over one tile.
#pragma once

#include <vector>

#include "fuse/columns.hpp"
#include "fuse/walk.hpp"
#include "fuse/wholes.hpp"

namespace backplane::cpu::fuse {

class Tile {
 public:
  // `uniform`: of all workers, filled by the first run.
  Tile(const bp_frame* frame, const Program& program, char* uniform);
  static int64_t memory_for(const Program& program, int64_t elements, int64_t rows);

  // From now on tiles are of this part, of at most so many elements and rows. Without memory: of uniform values alone.
  void begin(const Part& part, char* memory, int64_t elements, int64_t rows);
  // Where the part's tensors lie in this tile.
  void set_tensors(const Place* places);
  void set_columns(int64_t columns);
  // Where reductions over the rows, and over all, add up, of the tiles that are run from now on.
  void set_results(std::vector<ColumnPart>* columns, std::vector<WholePart>* wholes);

  void run(int64_t rows, int64_t columns);

 private:
  const Place& place(const Instruction& each, int k) const { return places_[each.slots[k]]; }
  const Slot& slot(const Instruction& each, int k) const { return program_.slots[each.slots[k]]; }
  void map(const Instruction& each, int64_t rows, int64_t columns);
  void chain(const Instruction& each, int64_t rows, int64_t columns);
  void code(const Instruction& each, int64_t rows, int64_t columns);
  void check(const Instruction& each, const char* fault) const;
  void cast(const Instruction& each, int64_t rows, int64_t columns);
  Place as_rows(const Instruction& each, int64_t rows, int64_t columns);
  void reduce(const Instruction& each, int64_t rows, int64_t columns);

  const bp_frame* frame_;
  const Program& program_;
  const Part* part_ = nullptr;
  std::vector<Place> places_;
  std::vector<ColumnPart>* column_parts_ = nullptr;
  std::vector<WholePart>* whole_parts_ = nullptr;
  char* spill_ = nullptr;
  int64_t columns_ = -1;
};

}  // namespace backplane::cpu::fuse

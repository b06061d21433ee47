#include "fuse/walk.hpp"

#include <bit>

namespace backplane::cpu::fuse {
namespace {

constexpr int64_t kTileBytes = 8192;  // of a buffer: some of them stay in the first cache
constexpr int64_t kPadding = 64;      // tiles' sizes are multiples of it, but at the ends

}  // namespace

Walk::Walk(const Program& program, const std::vector<int64_t>& sizes, const std::vector<char*>& bases,
           const std::vector<int64_t>& strides)
    : bases_(bases), row_step_(bases.size(), 0), column_step_(bases.size(), 0) {
  split(merged(program, sizes, strides));
  cut(program);
}

// Two dims are one where each tensor's stride of the outer one is the extent of the inner one; dims of columns and dims
// of rows are not merged with each other.
Walk::Merged Walk::merged(const Program& program, const std::vector<int64_t>& sizes,
                          const std::vector<int64_t>& strides) const {
  const size_t rank = sizes.size(), n = bases_.size();
  const bool reduces = program.space.reduced > 0;
  Merged result;
  size_t begin = 0;  // of the dims with which the next one may merge
  for (size_t d = rank; d-- > 0;) {
    if (reduces && d + 1 == program.space.outer()) begin = result.column_dims = result.sizes.size();
    if (sizes[d] == 1) continue;
    bool merges = result.sizes.size() > begin;
    for (size_t k = 0; merges && k < n; ++k)
      merges = strides[k * rank + d] == result.steps[result.steps.size() - n + k] * result.sizes.back();
    if (merges) {
      result.sizes.back() *= sizes[d];
      continue;
    }
    result.sizes.push_back(sizes[d]);
    for (size_t k = 0; k < n; ++k) result.steps.push_back(strides[k * rank + d]);
  }
  if (!reduces) result.column_dims = std::min<size_t>(result.sizes.size(), 1);
  if (reduces && program.space.outer() == 0) result.column_dims = result.sizes.size();
  return result;
}

// Columns, rows, and the dims outside of them.
void Walk::split(const Merged& dims) {
  const size_t n = bases_.size();
  const auto steps = [&](size_t d) { return dims.steps.begin() + static_cast<std::ptrdiff_t>(d * n); };
  size_t next = 0;
  if (dims.column_dims > 0) {
    total_columns_ = dims.sizes[0];
    std::copy_n(steps(0), n, column_step_.begin());
    next = 1;
  }
  if (next < dims.sizes.size()) {
    total_rows_ = dims.sizes[next];
    std::copy_n(steps(next), n, row_step_.begin());
    ++next;
  }
  for (size_t d = dims.sizes.size(); d-- > next;) {
    outer_sizes_.push_back(dims.sizes[d]);
    outer_steps_.insert(outer_steps_.end(), steps(d), steps(d + 1));
    blocks_ *= dims.sizes[d];
  }
}

void Walk::cut(const Program& program) {
  const int64_t fitting = std::max<int64_t>(kTileBytes / program.widest, kPadding);
  by_rows_ = program.space.reduced > 0 || total_columns_ <= fitting;
  if (by_rows_) {
    rows_ = std::clamp<int64_t>(fitting / total_columns_, 1, total_rows_);
    // So that leaves of columns lie in one tile, or tiles in one leaf.
    if (!program.columns.empty()) rows_ = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(rows_)));
    columns_ = total_columns_;
    pieces_ = (total_rows_ + rows_ - 1) / rows_;
    return;
  }
  // A piece of a row at a time, row by row.
  columns_ = fitting;
  pieces_ = (total_columns_ + columns_ - 1) / columns_;
  if (total_rows_ == 1) return;
  outer_sizes_.push_back(total_rows_);
  outer_steps_.insert(outer_steps_.end(), row_step_.begin(), row_step_.end());
  blocks_ *= total_rows_;
  total_rows_ = 1;
}

int64_t Walk::tiles_of_part(int64_t rows, int64_t leaf) const {
  const auto above = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max(rows, std::max(leaf, rows_)))));
  if (blocks_ == 1) return above / rows_;
  const bool even = total_rows_ >= leaf && std::has_single_bit(static_cast<uint64_t>(total_rows_));
  return even ? pieces_ * std::max<int64_t>(above / total_rows_, 1) : tiles();
}

}  // namespace backplane::cpu::fuse

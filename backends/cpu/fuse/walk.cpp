#include "fuse/walk.hpp"

namespace backplane::cpu::fuse {
namespace {

constexpr int64_t kTileBytes = 8192;  // of a buffer: some of them stay in the first cache
constexpr int64_t kPadding = 64;      // tiles' sizes are multiples of it, but at the ends

}  // namespace

Walk::Walk(const Program& program, const std::vector<int64_t>& sizes, const std::vector<char*>& bases,
           const std::vector<int64_t>& strides)
    : bases_(bases), row_step_(bases.size(), 0), column_step_(bases.size(), 0) {
  const size_t rank = sizes.size(), n = bases.size();
  const auto step = [&](size_t k, size_t d) { return strides[k * rank + d]; };
  std::vector<int64_t> merged_sizes, merged_steps;  // innermost first
  bool inner = true;
  size_t column_dims = 0;
  for (size_t d = rank; d-- > 0;) {
    const bool boundary = program.space.reduced > 0 && d + 1 == program.space.outer();
    if (boundary) column_dims = merged_sizes.size(), inner = false;
    if (sizes[d] == 1) continue;
    const bool first = merged_sizes.size() == (inner ? 0 : column_dims);
    bool merges = !first;
    for (size_t k = 0; merges && k < n; ++k)
      merges = step(k, d) == merged_steps[merged_steps.size() - n + k] * merged_sizes.back();
    if (merges) {
      merged_sizes.back() *= sizes[d];
      continue;
    }
    merged_sizes.push_back(sizes[d]);
    for (size_t k = 0; k < n; ++k) merged_steps.push_back(step(k, d));
  }
  if (program.space.reduced == 0) column_dims = std::min<size_t>(merged_sizes.size(), 1);
  if (program.space.reduced > 0 && inner) column_dims = merged_sizes.size();
  size_t next = 0;
  if (column_dims > 0) {
    total_columns_ = merged_sizes[0];
    std::copy_n(merged_steps.begin(), n, column_step_.begin());
    next = 1;
  }
  if (next < merged_sizes.size()) {
    total_rows_ = merged_sizes[next];
    std::copy_n(merged_steps.begin() + static_cast<std::ptrdiff_t>(next * n), n, row_step_.begin());
    ++next;
  }
  for (size_t d = merged_sizes.size(); d-- > next;) {
    outer_sizes_.push_back(merged_sizes[d]);
    blocks_ *= merged_sizes[d];
    outer_steps_.insert(outer_steps_.end(), merged_steps.begin() + static_cast<std::ptrdiff_t>(d * n),
                        merged_steps.begin() + static_cast<std::ptrdiff_t>((d + 1) * n));
  }
  const int64_t fitting = std::max<int64_t>(kTileBytes / program.widest, kPadding);
  by_rows_ = program.space.reduced > 0 || total_columns_ <= fitting;
  rows_ = by_rows_ ? std::clamp<int64_t>(fitting / total_columns_, 1, total_rows_) : 1;
  columns_ = by_rows_ ? total_columns_ : fitting;
  if (by_rows_) {
    pieces_ = (total_rows_ + rows_ - 1) / rows_;
  } else {
    // A piece of a row at a time, row by row.
    pieces_ = (total_columns_ + columns_ - 1) / columns_;
    if (total_rows_ > 1) {
      outer_sizes_.push_back(total_rows_);
      outer_steps_.insert(outer_steps_.end(), row_step_.begin(), row_step_.end());
      blocks_ *= total_rows_;
      total_rows_ = 1;
    }
  }
}

}  // namespace backplane::cpu::fuse

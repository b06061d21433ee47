#include "fuse/columns.hpp"

#include <bit>
#include <cstring>

#include "loops/strided.hpp"

namespace backplane::cpu::fuse {

ColumnPart::ColumnPart(const Columns& columns, int64_t width, int64_t rows)
    : columns_(columns),
      width_(width),
      bytes_(width * plugin::kItemSize[columns.dtype]),
      levels_(std::bit_width(static_cast<uint64_t>(rows / kLeafRows)) + 1),
      memory_(new char[static_cast<size_t>((1 + levels_ + kLeafRows) * bytes_)]) {}

void ColumnPart::add_leaf(const char* x, int64_t step, int64_t rows) {
  char* leaf = memory_.get();
  columns_.reduction->leaf(columns_.dtype, x, step, rows, width_, leaf);
  int64_t l = 0;
  for (uint64_t bits = n_leaves_++; (bits & 1) != 0; bits >>= 1, ++l)
    columns_.reduction->merge(columns_.dtype, leaf, level(l), width_);
  std::memcpy(level(l), leaf, static_cast<size_t>(bytes_));
}

void ColumnPart::add(const char* x, int64_t step, int64_t rows) {
  while (rows > 0) {
    if (n_pending_ == 0 && rows >= kLeafRows) {
      add_leaf(x, step, kLeafRows);
      x += kLeafRows * step;
      rows -= kLeafRows;
      continue;
    }
    std::memcpy(pending() + n_pending_ * bytes_, x, static_cast<size_t>(bytes_));
    x += step;
    --rows;
    if (++n_pending_ < kLeafRows) continue;
    add_leaf(pending(), bytes_, kLeafRows);
    n_pending_ = 0;
  }
}

void ColumnPart::finish(char* accumulators) {
  if (n_pending_ > 0) add_leaf(pending(), bytes_, n_pending_);
  bool first = true;
  for (int64_t l = 0; n_leaves_ >> l != 0; ++l) {
    if ((n_leaves_ >> l & 1) == 0) continue;
    if (first)
      std::memcpy(accumulators, level(l), static_cast<size_t>(bytes_));
    else
      columns_.reduction->merge(columns_.dtype, accumulators, level(l), width_);
    first = false;
  }
}

ColumnResults::ColumnResults(const Program& program, int64_t width, int64_t total_rows, int64_t part_rows,
                             int64_t parts)
    : program_(program), width_(width), rows_(total_rows), part_rows_(part_rows), parts_(parts) {
  for (const Columns& each : program.columns)
    accumulators_.push_back(
        std::make_unique<char[]>(static_cast<size_t>(parts_ * width * plugin::kItemSize[each.dtype])));
}

char* ColumnResults::at(size_t column, int64_t part) const {
  return accumulators_[column].get() + part * width_ * plugin::kItemSize[program_.columns[column].dtype];
}

std::vector<ColumnPart> ColumnResults::part() const {
  std::vector<ColumnPart> parts;
  for (const Columns& each : program_.columns) parts.emplace_back(each, width_, part_rows_);
  return parts;
}

void ColumnResults::finish(std::vector<ColumnPart>& parts, int64_t index) {
  for (size_t i = 0; i < parts.size(); ++i) parts[i].finish(at(i, index));
}

void ColumnResults::store(bp_value* outs) {
  for (size_t i = 0; i < program_.columns.size(); ++i) {
    const Columns& each = program_.columns[i];
    for (int64_t apart = 1; apart < parts_; apart *= 2)
      for (int64_t p = 0; p + apart < parts_; p += 2 * apart)
        each.reduction->merge(each.dtype, at(i, p), at(i, p + apart), width_);
    if (outs[each.output].tag != BP_TAG_TENSOR) continue;
    // Row-major over the columns' dims, whose strides may be anything.
    const bp_tensor* out = outs[each.output].u.t;
    const int64_t item = plugin::kItemSize[each.dtype];
    int64_t stored = 0;
    for_each_strided_row(*out, [&](char* row, int64_t stride, int64_t n) {
      each.reduction->store(each.dtype, at(i, 0) + stored * item, rows_, n, row, stride);
      stored += n;
    });
  }
}

}  // namespace backplane::cpu::fuse

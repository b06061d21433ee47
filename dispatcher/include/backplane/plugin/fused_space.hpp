// The iteration space of a fused region. If the region holds reductions, the space consists of the rows that they
// reduce.
//
// Dims of size 1 are left out, so a reduction has the same layout with and without `keepdims`. Header-only.
#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <optional>
#include <vector>

#include "backplane/plugin/graph_view.hpp"

namespace backplane::plugin {

struct FusedSpace {
  std::vector<int64_t> dims;  // without those of size 1
  size_t reduced = 0;         // the last of them, that one row has

  size_t outer() const { return dims.size() - reduced; }
  int64_t rows() const { return count(0, outer()); }
  int64_t row_length() const { return count(outer(), dims.size()); }
  auto operator<=>(const FusedSpace&) const = default;
  bool operator==(const FusedSpace&) const = default;

 private:
  int64_t count(size_t from, size_t to) const {
    int64_t product = 1;
    for (size_t d = from; d < to; ++d) product *= dims[d];
    return product;
  }
};

inline std::vector<int64_t> fused_space(Dims dims) {
  std::vector<int64_t> space;
  for (const int64_t size : dims)
    if (size != 1) space.push_back(size);
  return space;
}

// How many elements a value has in a space: one, one per row, one for each; or it does not fit.
enum class FusedForm { kOne, kRow, kFull, kOther };
inline FusedForm form_of(const std::vector<int64_t>& value, const FusedSpace& space) {
  if (value.empty()) return FusedForm::kOne;
  if (value == space.dims) return FusedForm::kFull;
  const auto outer = static_cast<std::ptrdiff_t>(space.outer());
  const bool row =
      space.reduced > 0 && std::equal(value.begin(), value.end(), space.dims.begin(), space.dims.begin() + outer);
  return row ? FusedForm::kRow : FusedForm::kOther;
}

// For each of the dims of `result` that are not 1, the axis of `dims` that it aligns with from the right; -1
// if there is no such axis, or its size is 1.
inline std::vector<int32_t> aligned_axes(Dims dims, Dims result) {
  std::vector<int32_t> axes;
  for (size_t d = 0; d < result.size(); ++d) {
    if (result[d] == 1) continue;
    const auto axis = static_cast<int64_t>(d + dims.size()) - static_cast<int64_t>(result.size());
    const bool there = axis >= 0 && dims[static_cast<size_t>(axis)] != 1;
    axes.push_back(there ? static_cast<int32_t>(axis) : -1);
  }
  return axes;
}

// Has `dims` one element for each row of `result`, whose first `outer` dims that are not 1 number the rows?
inline bool is_one_per_row(Dims dims, Dims result, size_t outer) {
  const std::vector<int32_t> axes = aligned_axes(dims, result);
  for (size_t d = 0; d < axes.size(); ++d)
    if ((axes[d] >= 0) != (d < outer)) return false;
  return true;
}

// The space of two regions, or nodes, that become one.
inline std::optional<FusedSpace> united(const FusedSpace& a, const FusedSpace& b) {
  if (a == b || b.dims.empty()) return a;
  if (a.dims.empty()) return b;
  if (a.reduced > 0 && b.reduced > 0) return std::nullopt;
  const FusedSpace &rows = a.reduced > 0 ? a : b, &plain = a.reduced > 0 ? b : a;
  return form_of(plain.dims, rows) != FusedForm::kOther ? std::optional(rows) : std::nullopt;
}

}  // namespace backplane::plugin

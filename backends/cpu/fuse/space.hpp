// The space over which a region iterates, and how the dims of a value lie in it.
//
// A space has the dims of the region's largest values; its last `reduced` dims are those that reductions of the region
// run over. What a reduction makes has one element per row: with dims of 1 in their place (kept), or without them
// (prefix). Sizes known at run time alone are negative, as in bp_graph_value.
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "backplane/plugin.hpp"
#include "backplane/plugin/graph_view.hpp"

namespace backplane::cpu::fuse {

using plugin::Dims;
using plugin::GraphView;

enum class Form { kOnes, kFull, kKept, kPrefix, kOther };

inline bool all_ones(Dims dims) {
  return std::all_of(dims.begin(), dims.end(), [](int64_t size) { return size == 1; });
}
inline bool same(Dims a, Dims b) { return std::equal(a.begin(), a.end(), b.begin(), b.end()); }

struct Space {
  std::vector<int64_t> dims;
  size_t reduced = 0;

  Space() = default;
  explicit Space(Dims of, size_t reduced_dims = 0) : dims(of.begin(), of.end()), reduced(reduced_dims) {}
  size_t outer() const { return dims.size() - reduced; }
  bool uniform() const { return reduced == 0 && all_ones(dims); }

  Form form_of(Dims value) const {
    if (all_ones(value)) return Form::kOnes;
    if (same(value, dims)) return Form::kFull;
    if (reduced == 0) return Form::kOther;
    const Dims rows = Dims(dims).first(outer());
    if (same(value, rows)) return Form::kPrefix;
    const bool kept = value.size() == dims.size() && same(value.first(outer()), rows) && all_ones(value.last(reduced));
    return kept ? Form::kKept : Form::kOther;
  }
};

// The space in which values of both have a form; none: they cannot share a region.
inline std::optional<Space> unite(const Space& a, const Space& b) {
  if (a.dims == b.dims) {
    if (a.reduced != 0 && b.reduced != 0 && a.reduced != b.reduced) return {};
    return a.reduced != 0 ? a : b;
  }
  if (a.uniform() && b.uniform()) return a.dims.size() < b.dims.size() ? b : a;
  if (a.uniform()) return b;
  if (b.uniform()) return a;
  // A space of rows alone lies in one of rows and columns.
  const auto holds = [](const Space& large, const Space& small) -> std::optional<Space> {
    if (small.reduced != 0) return {};
    Space result = large;
    if (result.reduced == 0) {
      if (small.dims.size() != large.dims.size()) return {};
      while (result.reduced < large.dims.size() && small.dims[result.outer() - 1] == 1 &&
             large.dims[result.outer() - 1] != 1)
        ++result.reduced;
    }
    const Form form = result.form_of(small.dims);
    if (form != Form::kKept && form != Form::kPrefix) return {};
    return result;
  };
  if (auto result = holds(a, b)) return result;
  return holds(b, a);
}

}  // namespace backplane::cpu::fuse

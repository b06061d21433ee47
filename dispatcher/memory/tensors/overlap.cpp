// Do two tensors of one storage share bytes? By bounds, then by a bounded search over their strides.
//
// Element positions are offset + sum of index * stride. Two elements share bytes iff
//   -size_b < (offset_a - offset_b) + sum_k d_k * s_k < size_a        (bytes; d_k within an interval per dim)
// where dims of both tensors with the same stride are one unknown d_k. The search takes strides from the largest down
// and cuts off what the rest cannot bring back, so nested strides (slices of one base) need a few steps. Pure.
#include "memory/tensors/overlap.hpp"

#include <algorithm>
#include <numeric>
#include <span>

#include "record/dtype_rules.hpp"
#include "record/shape_rules.hpp"

namespace backplane::core {
namespace {

__extension__ typedef __int128 Wide;  // sums of products of strides and sizes

constexpr int kSearchBudget = 512;

// Unknown d in [low, high], times stride > 0.
struct Unknown {
  int64_t stride, low, high;
};

struct Bounds {
  Wide low, high;  // [low, high) in bytes from the storage's start
  bool dense;      // every byte between belongs to an element
};

bool is_empty(const bp_tensor& t) { return std::find(t.dl.shape, t.dl.shape + t.dl.ndim, 0) != t.dl.shape + t.dl.ndim; }

Bounds bounds_of(const bp_tensor& t) {
  const int64_t item = kItemSize[t.dtype];
  Bounds bounds{Wide{t.dl.byte_offset}, Wide{t.dl.byte_offset} + item, false};
  Wide count = item;
  for (int32_t d = 0; d < t.dl.ndim; ++d) {
    const Wide reach = Wide{t.dl.strides[d]} * item * (t.dl.shape[d] - 1);
    (reach < 0 ? bounds.low : bounds.high) += reach;
    count *= t.dl.shape[d];
  }
  bounds.dense = count == bounds.high - bounds.low && !self_overlaps(t);
  return bounds;
}

// Adds sign * index * stride for each dim. An index in [0, n) with a negative factor is one in (-n, 0] with a positive.
void add_unknowns(const bp_tensor& t, int64_t sign, Unknown* unknowns, int& n) {
  for (int32_t d = 0; d < t.dl.ndim; ++d) {
    int64_t stride = t.dl.strides[d] * int64_t{kItemSize[t.dtype]} * sign;
    const int64_t last = t.dl.shape[d] - 1;
    if (last == 0 || stride == 0) continue;
    const Unknown added = stride > 0 ? Unknown{stride, 0, last} : Unknown{-stride, -last, 0};
    Unknown* same = std::find_if(unknowns, unknowns + n, [&](const Unknown& u) { return u.stride == added.stride; });
    if (same == unknowns + n) {
      unknowns[n++] = added;
    } else {
      same->low += added.low;
      same->high += added.high;
    }
  }
}

Wide floor_divide(Wide a, Wide b) { return a / b - (a % b != 0 && a < 0 ? 1 : 0); }

// Is there a choice of the unknowns whose sum lies in [low, high]? Iterative depth-first; kUnknown where the budget
// ends.
class Search {
 public:
  Search(std::span<const Unknown> unknowns) : unknowns_(unknowns) {
    least_[unknowns.size()] = most_[unknowns.size()] = 0;
    for (size_t k = unknowns.size(); k-- > 0;) {
      least_[k] = least_[k + 1] + Wide{unknowns[k].low} * unknowns[k].stride;
      most_[k] = most_[k + 1] + Wide{unknowns[k].high} * unknowns[k].stride;
    }
  }

  Overlap run(Wide low, Wide high) {
    if (high < least_[0] || low > most_[0]) return Overlap::kNo;
    if (unknowns_.empty()) return Overlap::kYes;
    size_t depth = 0;
    low_[0] = low;
    high_[0] = high;
    enter(0);
    for (int steps = 0; steps < kSearchBudget; ++steps) {
      if (next_[depth] > last_[depth]) {
        if (depth-- == 0) return Overlap::kNo;
        continue;
      }
      const Wide taken = next_[depth]++ * unknowns_[depth].stride;
      if (depth + 1 == unknowns_.size()) return Overlap::kYes;
      low_[depth + 1] = low_[depth] - taken;
      high_[depth + 1] = high_[depth] - taken;
      enter(++depth);
    }
    return Overlap::kUnknown;
  }

 private:
  // The values of unknown k from which the rest can still reach [low, high].
  void enter(size_t k) {
    const Unknown& u = unknowns_[k];
    const Wide first = -floor_divide(-(low_[k] - most_[k + 1]), u.stride);
    const Wide last = floor_divide(high_[k] - least_[k + 1], u.stride);
    next_[k] = std::max<Wide>(first, u.low);
    last_[k] = std::min<Wide>(last, u.high);
  }

  std::span<const Unknown> unknowns_;
  Wide least_[2 * kMaxRank + 1], most_[2 * kMaxRank + 1];
  Wide low_[2 * kMaxRank + 1], high_[2 * kMaxRank + 1], next_[2 * kMaxRank + 1], last_[2 * kMaxRank + 1];
};

}  // namespace

bool same_layout(const bp_tensor& a, const bp_tensor& b) {
  return a.dtype == b.dtype && a.dl.byte_offset == b.dl.byte_offset && a.dl.ndim == b.dl.ndim &&
         std::equal(a.dl.shape, a.dl.shape + a.dl.ndim, b.dl.shape) &&
         std::equal(a.dl.strides, a.dl.strides + a.dl.ndim, b.dl.strides);
}

Overlap overlap(const bp_tensor& a, const bp_tensor& b) {
  if (is_empty(a) || is_empty(b)) return Overlap::kNo;
  if (same_layout(a, b)) return Overlap::kYes;
  const Bounds in_a = bounds_of(a), in_b = bounds_of(b);
  if (in_a.high <= in_b.low || in_b.high <= in_a.low) return Overlap::kNo;
  if (in_a.dense && in_b.dense) return Overlap::kYes;
  Unknown unknowns[2 * kMaxRank];
  int n = 0;
  add_unknowns(a, 1, unknowns, n);
  add_unknowns(b, -1, unknowns, n);
  std::sort(unknowns, unknowns + n, [](const Unknown& x, const Unknown& y) { return x.stride > y.stride; });
  const Wide apart = Wide{a.dl.byte_offset} - Wide{b.dl.byte_offset};
  const Wide low = -Wide{kItemSize[a.dtype]} + 1 - apart, high = Wide{kItemSize[b.dtype]} - 1 - apart;
  int64_t step = 0;
  for (int k = 0; k < n; ++k) step = std::gcd(step, unknowns[k].stride);
  // No multiple of the common step within reach: interleaved views, such as real and imaginary parts.
  if (step && floor_divide(high, step) < -floor_divide(-low, step)) return Overlap::kNo;
  return Search({unknowns, static_cast<size_t>(n)}).run(low, high);
}

bool clashes_within(const bp_tensor& target, const bp_tensor& input, bool in_place) {
  return same_layout(target, input) ? !in_place : overlap(target, input) != Overlap::kNo;
}

bool self_overlaps(const bp_tensor& a) {
  if (is_empty(a)) return false;
  struct Dim {
    uint64_t stride, last;
  } dims[kMaxRank];
  int n = 0;
  for (int32_t d = 0; d < a.dl.ndim; ++d) {
    const int64_t stride = a.dl.strides[d];
    if (a.dl.shape[d] > 1)
      dims[n++] = {static_cast<uint64_t>(stride < 0 ? -stride : stride), static_cast<uint64_t>(a.dl.shape[d] - 1)};
  }
  std::sort(dims, dims + n, [](const Dim& x, const Dim& y) { return x.stride < y.stride; });
  // A stride that steps over all that the smaller ones reach meets none of it again.
  Wide reach = 0;
  for (int k = 0; k < n; ++k) {
    if (Wide{dims[k].stride} <= reach) return true;
    reach += Wide{dims[k].stride} * dims[k].last;
  }
  return false;
}

}  // namespace backplane::core

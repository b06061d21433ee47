// How a reduction walks its tensor; see reduce_plan.hpp.
//
// The output is cut into groups: single elements where the fastest dimension is reduced, strips of it where it is kept,
// so that both directions run along memory. Partial results are merged as a binary tree (a cascade), which keeps the
// error of floating sums logarithmic. Groups run in parallel; few and long ones are cut at fixed places.
#include <algorithm>
#include <bit>
#include <cmath>
#include <complex>
#include <cstring>
#include <vector>

#include "kernels/reduction/reduce_plan.hpp"
#include "loops/cast_row.hpp"
#include "loops/column_reduction.hpp"
#include "runtime/scratch.hpp"

namespace backplane::cpu {
namespace {

constexpr int64_t kChunk = 512;  // elements converted to the accumulator's dtype at a time

// Merges equal-sized parts pairwise: level l holds the merger of 2^l parts, each `width` accumulators in at most Bytes.
// Untouched levels of its memory, kMemory bytes, cost nothing.
template <int64_t Bytes>
class Cascade {
  static constexpr int kLevels = 40;

 public:
  static constexpr int64_t kMemory = kLevels * Bytes;
  Cascade(const ReducePlan& plan, int64_t width, char* memory)
      : reducer_(*plan.reducer), width_(width), bytes_(width * plan.item), memory_(memory) {}
  // Takes a part; `part` is overwritten.
  void add(char* part) {
    int level = 0;
    for (uint64_t bits = parts_++; (bits & 1) != 0; bits >>= 1, ++level) reducer_.merge(part, at(level), width_);
    std::memcpy(at(level), part, static_cast<size_t>(bytes_));
  }
  void finish(char* result) const {
    bool first = true;
    for (int level = 0; level < kLevels; ++level) {
      if ((parts_ >> level & 1) == 0) continue;
      if (first)
        std::memcpy(result, at(level), static_cast<size_t>(bytes_));
      else
        reducer_.merge(result, at(level), width_);
      first = false;
    }
  }

 private:
  char* at(int level) const { return memory_ + level * Bytes; }
  const Reducer& reducer_;
  int64_t width_, bytes_;
  char* memory_;
  uint64_t parts_ = 0;
};

// Steps through reduced dimensions from row `begin`, keeping the offset into x.
class RowWalk {
 public:
  RowWalk(const ReduceDims& dims, int64_t begin) : dims_(dims) {
    for (int32_t d = dims.rank - 1; d >= 0; --d) {
      position_[d] = begin % dims.sizes[d];
      begin /= dims.sizes[d];
      offset_ += position_[d] * dims.x[d];
    }
  }
  int64_t offset() const { return offset_; }
  // Of one dimension: to this row.
  void jump(int64_t row) {
    position_[0] = row;
    offset_ = row * dims_.x[0];
  }
  void next() {
    for (int32_t d = dims_.rank - 1; d >= 0; --d) {
      offset_ += dims_.x[d];
      if (++position_[d] < dims_.sizes[d]) return;
      offset_ -= dims_.sizes[d] * dims_.x[d];
      position_[d] = 0;
    }
  }

 private:
  const ReduceDims& dims_;
  int64_t position_[kMaxRank];
  int64_t offset_ = 0;
};

// One row of x along the reduced inner dimension, to one accumulator.
void reduce_row(const ReducePlan& plan, const char* x, int64_t n, char* accumulator) {
  if (plan.x_dtype == plan.accumulator) return plan.reducer->row(x, plan.inner_x, n, accumulator);
  if (plan.half() != nullptr) return plan.half()->row(x, n, accumulator);
  alignas(64) char chunk[kChunk * 16];
  alignas(16) char part[16];
  alignas(16) char memory[Cascade<16>::kMemory];
  Cascade<16> cascade(plan, 1, memory);
  for (int64_t at = 0; at < n; at += kChunk) {
    const int64_t count = std::min(kChunk, n - at);
    cast_row(plan.x_dtype, x + at * plan.inner_x, plan.inner_x, plan.accumulator, chunk, plan.item, count);
    plan.reducer->row(chunk, plan.item, count, part);
    cascade.add(part);
  }
  cascade.finish(accumulator);
}

// Elements [begin, end) of the reduced dimensions of one output; the inner one is their last.
void reduce_element(const ReducePlan& plan, const char* x, int64_t begin, int64_t end, char* accumulator) {
  const int64_t n = plan.inner_size;
  if (plan.rows() == 1) return reduce_row(plan, x + begin * plan.inner_x, end - begin, accumulator);
  alignas(16) char memory[Cascade<16>::kMemory];
  Cascade<16> cascade(plan, 1, memory);
  alignas(16) char part[16];
  RowWalk walk(plan.reduced, begin / n);
  for (int64_t at = begin; at < end; walk.next()) {
    const int64_t first = at % n, count = std::min(n - first, end - at);
    reduce_row(plan, x + walk.offset() + first * plan.inner_x, count, part);
    cascade.add(part);
    at += count;
  }
  cascade.finish(accumulator);
}

// As many of the rows as go eight or four at a time; how many.
template <class MergeRows>
int64_t merge_even_rows(MergeRows merge_rows, const char* x, int64_t step, int64_t rows, int64_t width, char* into) {
  int64_t i = 0;
  for (int64_t some = 8; some >= 4; some /= 2)
    for (; i + some <= rows; i += some) merge_rows(into, x + i * step, step, some, i == 0, width);
  return i;
}

// Rows [begin, end) of a strip of `width` outputs along the kept inner dimension.
void reduce_strip(const ReducePlan& plan, const char* x, int64_t width, int64_t begin, int64_t end,
                  char* accumulators) {
  const bool direct = plan.x_dtype == plan.accumulator && plan.inner_x == plan.item;
  alignas(64) char converted[kStripBytes];
  alignas(64) char leaf[kStripBytes];
  const auto row_at = [&](int64_t offset) -> const char* {
    if (direct) return x + offset;
    cast_row(plan.x_dtype, x + offset, plan.inner_x, plan.accumulator, converted, plan.item, width);
    return converted;
  };
  RowWalk walk(plan.reduced, begin);
  int64_t at = begin;
  const bool even = (direct || plan.half() != nullptr) && plan.reduced.rank == 1;
  const auto merge_rows = direct ? plan.reducer->merge_rows : even ? plan.half()->merge_rows : nullptr;
  const auto add_rows = [&](int64_t count, char* into) {
    int64_t i = 0;
    if (even) {
      i = merge_even_rows(merge_rows, x + at * plan.reduced.x[0], plan.reduced.x[0], count, width, into);
      at += i;
      walk.jump(at);
    }
    at += count - i;
    if (i == 0) {
      std::memcpy(into, row_at(walk.offset()), static_cast<size_t>(width * plan.item));
      walk.next();
      i = 1;
    }
    for (; i < count; ++i, walk.next()) plan.reducer->merge(into, row_at(walk.offset()), width);
  };
  if (plan.exact() || end - begin <= kLeafRows) return add_rows(end - begin, accumulators);
  const Scratch<char> memory(Cascade<kStripBytes>::kMemory);
  Cascade<kStripBytes> cascade(plan, width, memory.get());
  while (at < end) {
    add_rows(std::min(kLeafRows, end - at), leaf);
    cascade.add(leaf);
  }
  cascade.finish(accumulators);
}

struct Group {
  const char* x;
  char* out;
  int64_t width;
};
Group group_at(const ReducePlan& plan, int64_t index) {
  const int64_t strip = index % plan.strips;
  int64_t rest = index / plan.strips;
  Group group{plan.x, plan.out, 1};
  for (int32_t d = plan.kept.rank - 1; d >= 0; --d) {
    const int64_t position = rest % plan.kept.sizes[d];
    rest /= plan.kept.sizes[d];
    group.x += position * plan.kept.x[d];
    group.out += position * plan.kept.out[d];
  }
  if (!plan.inner_reduced) {
    const int64_t first = strip * plan.strip();
    group.x += first * plan.inner_x;
    group.out += first * plan.inner_out;
    group.width = std::min(plan.strip(), plan.inner_size - first);
  }
  return group;
}
void reduce_steps(const ReducePlan& plan, const Group& group, int64_t begin, int64_t end, char* accumulators) {
  if (plan.inner_reduced)
    reduce_element(plan, group.x, begin, end, accumulators);
  else
    reduce_strip(plan, group.x, group.width, begin, end, accumulators);
}

// `step`: bytes between the outputs.
void store(const ReducePlan& plan, const Group& group, int64_t step, char* accumulators) {
  if (plan.op->mean) {
    plugin::dispatch_dtype<BP_DTYPE_BIT(BP_FLOAT32) | BP_DTYPE_BIT(BP_FLOAT64) | BP_MASK_COMPLEX>(
        plan.accumulator, [&]<class T>() {
          T* a = reinterpret_cast<T*>(accumulators);
          using Real = decltype(std::abs(T()));
          for (int64_t i = 0; i < group.width; ++i) a[i] /= static_cast<Real>(plan.divisor);
        });
  }
  cast_row(plan.accumulator, accumulators, plan.item, plan.out_dtype, group.out, step, group.width);
}

// Cuts one long group into pieces of fixed size, whose results are merged in order.
void reduce_in_pieces(const ReducePlan& plan, const Group& group) {
  const int64_t total = steps(plan);
  // Of rows, a whole subtree of the cascade: the cut does not show.
  const int64_t rows = std::max<int64_t>(kPieceElements / group.width, kLeafRows);
  const int64_t piece =
      plan.inner_reduced ? kPieceElements : static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(rows)));
  const int64_t pieces = (total + piece - 1) / piece;
  const int64_t bytes = group.width * plan.item;
  std::vector<char> results(static_cast<size_t>(pieces * bytes));
  plugin::parallel_for(plan.frame, 0, pieces, 1, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i)
      reduce_steps(plan, group, i * piece, std::min(total, (i + 1) * piece), results.data() + i * bytes);
  });
  for (int64_t apart = 1; apart < pieces; apart *= 2)
    for (int64_t i = 0; i + apart < pieces; i += 2 * apart)
      plan.reducer->merge(results.data() + i * bytes, results.data() + (i + apart) * bytes, group.width);
  store(plan, group, plan.inner_out, results.data());
}

// Groups [begin, end) of plain rows: results are stored many at a time.
void reduce_rows(const ReducePlan& plan, int64_t begin, int64_t end) {
  alignas(64) char accumulators[kStripBytes];
  const int64_t x_step = plan.kept.rank == 0 ? 0 : plan.kept.x[0],
                out_step = plan.kept.rank == 0 ? 0 : plan.kept.out[0];
  for (int64_t first = begin; first < end; first += plan.strip()) {
    const int64_t width = std::min(plan.strip(), end - first);
    for (int64_t i = 0; i < width; ++i)
      reduce_row(plan, plan.x + (first + i) * x_step, plan.inner_size, accumulators + i * plan.item);
    store(plan, {plan.x, plan.out + first * out_step, width}, out_step, accumulators);
  }
}

}  // namespace

void reduce_leaf(const Reducer& reducer, const char* x, int64_t step, int64_t rows, int64_t item, int64_t n,
                 char* accumulators) {
  int64_t i = merge_even_rows(reducer.merge_rows, x, step, rows, n, accumulators);
  if (i == 0) std::memcpy(accumulators, x, static_cast<size_t>(n * item)), i = 1;
  for (; i < rows; ++i) reducer.merge(accumulators, x + i * step, n);
}

void store_columns(const ReducePlan& plan, char* accumulators, int64_t n, char* out, int64_t step) {
  store(plan, {nullptr, out, n}, step, accumulators);
}

void run_reduction(const ReducePlan& plan) {
  const int64_t groups = plan.groups();
  const int64_t cost =
      std::max<int64_t>(steps(plan) * (plan.inner_reduced ? 1 : std::min(plan.strip(), plan.inner_size)), 1);
  if (groups < 8 && cost > 2 * kPieceElements) {
    for (int64_t i = 0; i < groups; ++i) reduce_in_pieces(plan, group_at(plan, i));
    return;
  }
  const auto range = [&](int64_t begin, int64_t end) {
    if (plan.plain_rows()) return reduce_rows(plan, begin, end);
    alignas(64) char accumulators[kStripBytes];
    for (int64_t i = begin; i < end; ++i) {
      const Group group = group_at(plan, i);
      reduce_steps(plan, group, 0, steps(plan), accumulators);
      store(plan, group, plan.inner_out, accumulators);
    }
  };
  const int64_t grain = std::max<int64_t>(kCheapGrain / cost, 1);
  if (groups <= grain) return range(0, groups);
  plugin::parallel_for(plan.frame, 0, groups, grain, range);
}

}  // namespace backplane::cpu

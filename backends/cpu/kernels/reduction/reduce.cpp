// sum, prod, max, min, any, all and mean: how a reduction walks its tensor.
//
// The output is cut into groups: single elements where the fastest dimension is reduced, strips of it where it is kept,
// so that both directions run along memory. Partial results are merged as a binary tree (a cascade), which keeps the
// error of floating sums logarithmic. Groups run in parallel; few and long ones are cut at fixed places, so that the
// result does not depend on how many threads there are.
#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "kernels/elementwise/cast.hpp"
#include "kernels/families.hpp"
#include "kernels/reduction/reducer.hpp"
#include "loops/elementwise.hpp"
#include "loops/loop.hpp"
#include "loops/strided.hpp"
#include "runtime/scratch.hpp"

namespace backplane::cpu {
namespace {

using plugin::kItemSize;

constexpr int64_t kStripBytes = 4096;      // accumulators of a group
constexpr int64_t kChunk = 512;            // elements converted to the accumulator's dtype at a time
constexpr int64_t kLeafRows = 16;          // rows added one by one before a level of the cascade is made
constexpr int64_t kPieceElements = 65536;  // of a long group that is cut: about 20 microseconds

struct ReduceOp {
  Reduction reduction;
  bool mean = false;
  bool needs_elements = false;
};

struct Dims {
  int32_t rank = 0;
  int64_t sizes[kMaxRank];
  int64_t x[kMaxRank];  // strides in bytes
  int64_t out[kMaxRank];
  int64_t count = 1;
  void add(int64_t size, int64_t x_stride, int64_t out_stride) {
    sizes[rank] = size;
    x[rank] = x_stride;
    out[rank++] = out_stride;
    count *= size;
  }
};

struct Plan {
  const bp_frame* frame;
  const ReduceOp* op;
  const Reducer* reducer;
  bp_dtype x_dtype, out_dtype, accumulator;
  int64_t item;  // of an accumulator
  const char* x;
  char* out;
  Dims kept, reduced;  // without the inner dimension
  bool inner_reduced;
  int64_t inner_size, inner_x, inner_out;
  int64_t strips;   // groups along a kept inner dimension
  int64_t divisor;  // of a mean

  int64_t strip() const { return kStripBytes / item; }  // outputs of a group
  int64_t rows() const { return reduced.count; }
  int64_t groups() const { return kept.count * strips; }
  // A group is one row that needs no conversion, and groups are evenly apart.
  bool plain_rows() const {
    return inner_reduced && rows() == 1 && kept.rank <= 1 && (x_dtype == accumulator || half() != nullptr);
  }
  // The loops that read half floats as they lie, else NULL.
  const Reducer::OfHalf* half() const { return inner_x == kItemSize[x_dtype] ? reducer->of(x_dtype) : nullptr; }
  // The order of the steps changes nothing.
  bool exact() const {
    return accumulator < BP_FLOAT16 || op->reduction == Reduction::kMax || op->reduction == Reduction::kMin;
  }
};

// Merges equal-sized parts pairwise: level l holds the merger of 2^l parts, each `width` accumulators in at most Bytes.
// Untouched levels of its memory, kMemory bytes, cost nothing.
template <int64_t Bytes>
class Cascade {
  static constexpr int kLevels = 40;

 public:
  static constexpr int64_t kMemory = kLevels * Bytes;
  Cascade(const Plan& plan, int64_t width, char* memory)
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
  RowWalk(const Dims& dims, int64_t begin) : dims_(dims) {
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
  const Dims& dims_;
  int64_t position_[kMaxRank];
  int64_t offset_ = 0;
};

// One row of x along the reduced inner dimension, to one accumulator.
void reduce_row(const Plan& plan, const char* x, int64_t n, char* accumulator) {
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
void reduce_element(const Plan& plan, const char* x, int64_t begin, int64_t end, char* accumulator) {
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

// Rows [begin, end) of a strip of `width` outputs along the kept inner dimension.
void reduce_strip(const Plan& plan, const char* x, int64_t width, int64_t begin, int64_t end, char* accumulators) {
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
      for (int64_t some = 8; some >= 4; some /= 2)
        for (; i + some <= count; i += some, at += some)
          merge_rows(into, x + at * plan.reduced.x[0], plan.reduced.x[0], some, i == 0, width);
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
Group group_at(const Plan& plan, int64_t index) {
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
// The steps of a group: elements where the inner dimension is reduced, rows where it is kept.
int64_t steps(const Plan& plan) { return plan.inner_reduced ? plan.rows() * plan.inner_size : plan.rows(); }

void reduce_steps(const Plan& plan, const Group& group, int64_t begin, int64_t end, char* accumulators) {
  if (plan.inner_reduced)
    reduce_element(plan, group.x, begin, end, accumulators);
  else
    reduce_strip(plan, group.x, group.width, begin, end, accumulators);
}

// `step`: bytes between the outputs.
void store(const Plan& plan, const Group& group, int64_t step, char* accumulators) {
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
void reduce_in_pieces(const Plan& plan, const Group& group) {
  const int64_t total = steps(plan);
  const int64_t piece = std::max<int64_t>(kPieceElements / group.width, 1);
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
void reduce_rows(const Plan& plan, int64_t begin, int64_t end) {
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

void run(const Plan& plan) {
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

bp_dtype accumulator_of(Reduction reduction, bp_dtype x, bp_dtype out) {
  const auto is = [](bp_dtype dtype, bp_dtype_mask mask) { return (BP_DTYPE_BIT(dtype) & mask) != 0; };
  switch (reduction) {
    case Reduction::kAny:
    case Reduction::kAll:
      return BP_BOOL;
    case Reduction::kMax:
    case Reduction::kMin:
      return is(x, BP_DTYPE_BIT(BP_FLOAT16) | BP_DTYPE_BIT(BP_BFLOAT16)) ? bp_dtype{BP_FLOAT32} : x;
    default:
      break;
  }
  const bp_dtype_mask wide = BP_DTYPE_BIT(BP_FLOAT64) | BP_DTYPE_BIT(BP_COMPLEX128) | BP_MASK_INTEGER | BP_MASK_BOOL;
  if (is(x, BP_MASK_COMPLEX) || is(out, BP_MASK_COMPLEX))
    return is(x, wide) || is(out, BP_DTYPE_BIT(BP_COMPLEX128)) ? BP_COMPLEX128 : BP_COMPLEX64;
  if (is(x, BP_MASK_FLOATING) || is(out, BP_MASK_FLOATING))
    return is(x, wide) || is(out, BP_DTYPE_BIT(BP_FLOAT64)) ? BP_FLOAT64 : BP_FLOAT32;
  return BP_INT64;
}

// The fastest dimension of x becomes the inner one.
void split_dims(Plan& plan, const bp_loop& loop) {
  const int64_t* out = loop.strides;
  const int64_t* x = loop.strides + loop.rank;
  int32_t inner = -1;
  for (int32_t d = 0; d < loop.rank; ++d)
    if (inner < 0 || std::llabs(x[d]) <= std::llabs(x[inner])) inner = d;
  plan.inner_reduced = inner < 0 || out[inner] == 0;
  plan.inner_size = inner < 0 ? 1 : loop.sizes[inner];
  plan.inner_x = inner < 0 ? plan.item : x[inner];
  plan.inner_out = inner < 0 ? 0 : out[inner];
  for (int32_t d = 0; d < loop.rank; ++d)
    if (d != inner) (out[d] == 0 ? plan.reduced : plan.kept).add(loop.sizes[d], x[d], out[d]);
  plan.strips = plan.inner_reduced ? 1 : (plan.inner_size + plan.strip() - 1) / plan.strip();
}

// Over no elements: 0, 1, false, true, NaN for a mean.
void fill_identity(const bp_frame* frame, const ReduceOp& op, const bp_tensor* out) {
  BP_CHECK(!op.needs_elements, VALUE, frame->op->name, ": there are no elements to choose from");
  const double identity[2] = {op.mean                                                               ? NAN
                              : op.reduction == Reduction::kProd || op.reduction == Reduction::kAll ? 1.0
                                                                                                    : 0.0,
                              0.0};
  for_each_strided_row(*out, [&](char* row, int64_t stride, int64_t n) {
    cast_row(BP_COMPLEX128, reinterpret_cast<const char*>(identity), 0, out->dtype, row, stride, n);
  });
}

bp_status BP_CALL reduce(const bp_frame* frame, const bp_value* args, int32_t, bp_value* outs, int32_t) {
  return plugin::guard(frame, [&] {
    const bp_tensor* x = plugin::as_tensor(args[0]);
    const bp_tensor* out = outs[0].u.t;
    const auto& op = *static_cast<const ReduceOp*>(frame->context);
    if (out->nbytes == 0) return;
    if (x->nbytes == 0) return fill_identity(frame, op, out);
    Plan plan;  // not zeroed: its arrays are large beside a small reduction
    plan.frame = frame;
    plan.op = &op;
    plan.x_dtype = x->dtype;
    plan.out_dtype = out->dtype;
    plan.accumulator = accumulator_of(op.reduction, x->dtype, out->dtype);
    plan.item = kItemSize[plan.accumulator];
    plan.reducer = &reducers().by[static_cast<int>(op.reduction)][plan.accumulator];
    plan.x = data_of(x);
    plan.out = data_of(out);
    split_dims(plan, *frame->loop);
    plan.divisor = steps(plan);
    run(plan);
  });
}

}  // namespace

const Family kReduce([](const Registrar& registrar) {
  static ReduceOp ops[] = {
      {Reduction::kSum}, {Reduction::kProd}, {Reduction::kMax, false, true}, {Reduction::kMin, false, true},
      {Reduction::kAny}, {Reduction::kAll},  {Reduction::kSum, true}};
  constexpr bp_dtype_mask kReal = BP_MASK_INTEGER | BP_MASK_FLOATING;
  const uint32_t flags = BP_KERNEL_STRIDED | BP_KERNEL_LOOP;
  reducers();
  registrar.kernel(BP_KERNEL("bp::sum", "cpu", reduce, .flags = flags, .context = &ops[0]));
  registrar.kernel(BP_KERNEL("bp::prod", "cpu", reduce, .flags = flags, .context = &ops[1]));
  registrar.kernel(BP_KERNEL("bp::max", "cpu", reduce, .dtypes = kReal, .flags = flags, .context = &ops[2]));
  registrar.kernel(BP_KERNEL("bp::min", "cpu", reduce, .dtypes = kReal, .flags = flags, .context = &ops[3]));
  registrar.kernel(BP_KERNEL("bp::any", "cpu", reduce, .flags = flags, .context = &ops[4]));
  registrar.kernel(BP_KERNEL("bp::all", "cpu", reduce, .flags = flags, .context = &ops[5]));
  registrar.kernel(BP_KERNEL("bp::mean", "cpu", reduce, .dtypes = BP_MASK_FLOATING | BP_MASK_COMPLEX, .flags = flags,
                             .context = &ops[6]));
});

}  // namespace backplane::cpu

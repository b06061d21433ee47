// index, index_put, take, take_put: reading and writing at positions that integer tensors give.
//
// take is index with one tensor. Reading runs in parallel; writing runs in order, so that of repeated positions the
// last value stays and sums do not depend on the number of threads.
#include <cstring>
#include <vector>

#include "kernels/families.hpp"
#include "kernels/indexing/accumulate.hpp"
#include "kernels/indexing/along_axis.hpp"
#include "kernels/indexing/apart.hpp"
#include "kernels/indexing/grouped.hpp"
#include "kernels/indexing/index_space.hpp"
#include "kernels/indexing/widened.hpp"
#include "loops/cast_row.hpp"
#include "loops/elementwise.hpp"
#include "loops/item_type.hpp"
#include "loops/lanes.hpp"
#include "loops/region.hpp"

namespace backplane::cpu {
namespace {

using plugin::kItemSize;

// The kept axes after the joint ones, as rows that copy together: `other` is the tensor of the indexed shape.
struct Inner {
  bp_loop loop{};
  int64_t sizes[kMaxRank];
  int64_t strides[2 * kMaxRank];  // x, other

  Inner(const IndexSpace& space, const int64_t* other_strides) {
    loop.header = BP_HEADER(bp_loop);
    loop.rank = space.kept_rank - space.before;
    loop.n_operands = 2;
    loop.count = 1;
    for (int32_t d = 0; d < loop.rank; ++d) {
      sizes[d] = space.kept_shape[space.before + d];
      strides[d] = space.kept_strides[space.before + d];
      strides[loop.rank + d] = other_strides[space.before + space.joint_rank + d];
      loop.count *= sizes[d];
    }
    loop.sizes = sizes;
    loop.strides = strides;
    merge();
  }
  Inner(const Inner&) = delete;

 private:
  // One row where both sides are without gaps.
  void merge() {
    const int32_t rank = loop.rank;
    for (int32_t d = rank - 1; d > 0; --d)
      if (strides[d - 1] != strides[d] * sizes[d] || strides[rank + d - 1] != strides[rank + d] * sizes[d]) return;
    if (rank < 2) return;
    const int64_t x = strides[rank - 1], other = strides[2 * rank - 1];
    sizes[0] = loop.count;
    strides[0] = x;
    strides[1] = other;
    loop.rank = 1;
  }
};

// Rows of `bytes`, one for each offset of [begin, end).
void gather(const char* from, const int64_t* offsets, int64_t begin, int64_t end, int64_t bytes, int64_t item,
            char* to) {
  if (bytes != item) {
    for (int64_t i = begin; i < end; ++i) std::memcpy(to + i * bytes, from + offsets[i], static_cast<size_t>(bytes));
    return;
  }
  with_item_type(item, [&]<class Item>() {
    Item* out = reinterpret_cast<Item*>(to);
    for (int64_t i = begin; i < end; ++i) out[i] = *reinterpret_cast<const Item*>(from + offsets[i]);
  });
}

// Positions [begin, end) of before_count() * joint positions, whose rows lie one after another in `to`.
void gather_rows(const char* from, const IndexSpace& space, int64_t begin, int64_t end, int64_t bytes, int64_t item,
                 char* to) {
  const auto joint = static_cast<int64_t>(space.offsets.size());
  while (begin < end) {
    const int64_t before = begin / joint, first = begin % joint, count = std::min(joint - first, end - begin);
    int64_t offset = 0, rest = before;
    for (int32_t d = space.before - 1; d >= 0; --d) {
      offset += rest % space.kept_shape[d] * space.kept_strides[d];
      rest /= space.kept_shape[d];
    }
    gather(from + offset, space.offsets.data(), first, first + count, bytes, item, to + before * joint * bytes);
    begin += count;
  }
}

// take of single elements from contiguous tensors: positions become elements in one pass.
template <class Item>
void take_elements(const bp_frame* frame, const Item* x, int64_t size, const bp_tensor* indices, int64_t count,
                   Item* out) {
  const int64_t stride = kItemSize[indices->dtype];
  const auto range = [&](int64_t begin, int64_t end) {
    take_neighbours(frame, indices->dtype, data_of(indices) + begin * stride, stride, end - begin, size, x,
                    out + begin);
  };
  constexpr int64_t kGrain = kCheapGrain / 4;
  if (count <= kGrain) return range(0, count);
  plugin::parallel_for(frame, 0, count, kGrain, range);
}

// `strides`, in bytes, of `out` along the dims of the selection.
void read(const bp_frame* frame, const bp_tensor* x, const IndexSpace& space, const int64_t* strides,
          const bp_tensor* out) {
  const int64_t item = kItemSize[x->dtype];
  const Inner inner(space, strides);
  const ScatterRow copy = scatter_of(x->dtype, x->dtype, false).row;
  char *from = data_of(x), *to = data_of(out);
  const bool dense =
      inner.loop.rank == 0 || (inner.loop.rank == 1 && inner.strides[0] == item && inner.strides[1] == item);
  // Then results lie one after another, in the order of the positions.
  const bool in_order = (out->flags & BP_TENSOR_CONTIGUOUS) != 0 && dense;
  const auto range = [&](int64_t begin, int64_t end) {
    if (in_order) return gather_rows(from, space, begin, end, inner.loop.count * item, item, to);
    for_each_position(space, strides, begin, end, [&](int64_t x_offset, int64_t out_offset) {
      if (dense && inner.loop.count > 1) {
        std::memcpy(to + out_offset, from + x_offset, static_cast<size_t>(inner.loop.count * item));
        return;
      }
      char* const bases[2] = {from + x_offset, to + out_offset};
      for_each_row<2>(inner.loop, bases, 0, inner.loop.count,
                      [&](char* const* p, const int64_t* s, int64_t n) -> const char* {
                        copy(p[0], s[0], p[1], s[1], n);
                        return nullptr;
                      });
    });
  };
  const int64_t total = space.before_count() * static_cast<int64_t>(space.offsets.size());
  const int64_t grain = std::max<int64_t>(kCheapGrain / (4 * std::max<int64_t>(inner.loop.count, 1)), 1);
  if (total <= grain) return range(0, total);
  plugin::parallel_for(frame, 0, total, grain, range);
}

// Do the values of the joint positions, in their order, lie a step apart?
bool joint_step(const IndexSpace& space, const int64_t* strides, int64_t* step) {
  *step = space.joint_rank == 0 ? 0 : strides[space.joint_rank - 1];
  int64_t expected = *step;
  for (int32_t d = space.joint_rank - 1; d >= 0; --d) {
    if (space.joint_shape[d] != 1 && strides[d] != expected) return false;
    expected *= space.joint_shape[d];
  }
  return true;
}

// Sums of values into a tensor of their own small dtype, those of one position in a wider one.
class GroupedSums {
 public:
  GroupedSums(const Inner& inner, bp_dtype narrow)
      : inner_(inner),
        narrow_(narrow),
        wide_(narrow == BP_COMPLEX64 ? BP_COMPLEX128 : BP_FLOAT64),
        add_(scatter_of(narrow, narrow, true).row),
        add_wide_(scatter_of(narrow, wide_, true).row),
        sums_(inner.loop.count * kItemSize[wide_]) {}

  // Values at the offsets `from`, in bytes, are added at the offsets `to`.
  void run(char* target, const std::vector<int64_t>& to, char* values, const std::vector<int64_t>& from) const {
    const auto at = [](const std::vector<int64_t>& offsets, int64_t i) { return offsets[static_cast<size_t>(i)]; };
    for_each_group(to.data(), static_cast<int64_t>(to.size()), [&](const int64_t* places, int64_t count) {
      char* const here = target + at(to, places[0]);
      if (count == 1)
        return rows(here, values + at(from, places[0]),
                    [&](char* const* p, const int64_t* s, int64_t n, char*) { add_(p[1], s[1], p[0], s[0], n); });
      rows(here, here, [&](char* const* p, const int64_t* s, int64_t n, char* sums) {
        cast_row(narrow_, p[0], s[0], wide_, sums, kItemSize[wide_], n);
      });
      for (int64_t i = 0; i < count; ++i)
        rows(here, values + at(from, places[i]), [&](char* const* p, const int64_t* s, int64_t n, char* sums) {
          add_wide_(p[1], s[1], sums, kItemSize[wide_], n);
        });
      rows(here, here, [&](char* const* p, const int64_t* s, int64_t n, char* sums) {
        cast_row(wide_, sums, kItemSize[wide_], narrow_, p[0], s[0], n);
      });
    });
  }

 private:
  // row(pointers, strides, n, sums of these elements)
  template <class Row>
  void rows(char* to, char* from, Row&& row) const {
    char* const bases[2] = {to, from};
    char* sums = sums_.get();
    for_each_row<2>(inner_.loop, bases, 0, inner_.loop.count,
                    [&](char* const* p, const int64_t* s, int64_t n) -> const char* {
                      row(p, s, n, sums);
                      sums += n * kItemSize[wide_];
                      return nullptr;
                    });
  }

  const Inner& inner_;
  bp_dtype narrow_, wide_;
  ScatterRow add_, add_wide_;
  Scratch<char> sums_;
};

void put_grouped(const IndexSpace& space, const Inner& inner, const bp_tensor* values, const int64_t* strides,
                 const bp_tensor* out) {
  std::vector<int64_t> to, from;
  for_each_position(space, strides, 0, space.before_count() * static_cast<int64_t>(space.offsets.size()),
                    [&](int64_t out_offset, int64_t value_offset) {
                      to.push_back(out_offset);
                      from.push_back(value_offset);
                    });
  GroupedSums(inner, out->dtype).run(data_of(out), to, data_of(values), from);
}

// `out` is of the dtype of `values`, or a widened one; `strides`, in bytes, of the values along the dims of the
// selection.
void put(const IndexSpace& space, const bp_tensor* values, const int64_t* strides, bool accumulate,
         const bp_tensor* out) {
  const Scatter scatter = scatter_of(values->dtype, out->dtype, accumulate);
  const Inner inner(space, strides);
  if (inner.loop.count == 0) return;
  const bool many = space.before_count() * static_cast<int64_t>(space.offsets.size()) > 1;
  if (accumulate && many && values->dtype == out->dtype && (BP_DTYPE_BIT(out->dtype) & kNarrow) != 0)
    return put_grouped(space, inner, values, strides, out);
  char *from = data_of(values), *to = data_of(out);
  int64_t step = 0;
  if (space.before == 0 && inner.loop.count == 1 && joint_step(space, strides, &step))
    return scatter.elements(from, step, to, space.offsets.data(), static_cast<int64_t>(space.offsets.size()));
  for_each_position(space, strides, 0, space.before_count() * static_cast<int64_t>(space.offsets.size()),
                    [&](int64_t out_offset, int64_t value_offset) {
                      char* const bases[2] = {to + out_offset, from + value_offset};
                      for_each_row<2>(inner.loop, bases, 0, inner.loop.count,
                                      [&](char* const* p, const int64_t* s, int64_t n) -> const char* {
                                        scatter.row(p[1], s[1], p[0], s[0], n);
                                        return nullptr;
                                      });
                    });
}

// x, and what put_into(target) makes of it, where `target` is `out` or stands for it. The positions have been checked:
// `out` may be x.
template <class PutInto>
void write(const bp_frame* frame, const bp_tensor* x, const bp_tensor* values, bool accumulate, const bp_tensor* out,
           PutInto&& put_into) {
  if (accumulate && pays_to_widen(x, values, out)) {
    const Widened sums(x);
    put_into(sums.get());
    return sums.round_to(out);
  }
  begin_as(frame, x, out);
  put_into(out);
}

// Are the sums kept in a wider tensor, whose items are how many times as large?
int64_t widening(const bp_tensor* x, const bp_tensor* values, bool accumulate, const bp_tensor* out) {
  return accumulate && pays_to_widen(x, values, out) ? kItemSize[Widened::dtype_of(out->dtype)] / kItemSize[out->dtype]
                                                     : 1;
}

// index(Tensor x, Tensor?[] indices)
bp_status BP_CALL index(const bp_frame* frame, const bp_value* args, int32_t, bp_value* outs, int32_t) {
  return plugin::guard(frame, [&] {
    if (frame->loop->count == 0) return check_positions(frame, args[1]);
    read(frame, plugin::as_tensor(args[0]), IndexSpace(frame, args[1]), frame->loop->strides, outs[0].u.t);
  });
}
// index_put(Tensor x, Tensor?[] indices, Tensor values, *, bool accumulate)
bp_status BP_CALL index_put(const bp_frame* frame, const bp_value* args, int32_t, bp_value* outs, int32_t) {
  return plugin::guard(frame, [&] {
    const bp_tensor *x = plugin::as_tensor(args[0]), *out = outs[0].u.t;
    const bp_loop& loop = *frame->loop;
    const bool accumulate = plugin::as_bool(args[3]);
    if (loop.count == 0) {
      check_positions(frame, args[1]);
      return begin_as(frame, x, out);
    }
    const Apart values(plugin::as_tensor(args[2]), out);
    const IndexSpace space(frame, args[1], widening(x, values.get(), accumulate, out));
    const int64_t* strides = loop.strides + static_cast<ptrdiff_t>(loop.n_operands - 1) * loop.rank;
    write(frame, x, values.get(), accumulate, out,
          [&](const bp_tensor* target) { put(space, values.get(), strides, accumulate, target); });
  });
}

// take(Tensor x, Tensor indices, *, Axis? axis)
bp_status BP_CALL take(const bp_frame* frame, const bp_value* args, int32_t, bp_value* outs, int32_t) {
  return plugin::guard(frame, [&] {
    const bp_tensor *x = plugin::as_tensor(args[0]), *indices = plugin::as_tensor(args[1]), *out = outs[0].u.t;
    if (x->dl.ndim == 1 && (x->flags & indices->flags & out->flags & BP_TENSOR_CONTIGUOUS) != 0)
      return with_item_type(kItemSize[x->dtype], [&]<class Item>() {
        take_elements(frame, reinterpret_cast<const Item*>(data_of(x)), x->dl.shape[0], indices,
                      static_cast<int64_t>(out->nbytes / sizeof(Item)), reinterpret_cast<Item*>(data_of(out)));
      });
    const IndexSpace space(frame, x, args[2].tag == BP_TAG_ABSENT ? 0 : axis_of(args[2]), indices);
    if (out->nbytes == 0) return;
    int64_t strides[kMaxRank];
    for (int32_t d = 0; d < out->dl.ndim; ++d) strides[d] = out->dl.strides[d] * kItemSize[out->dtype];
    read(frame, x, space, strides, out);
  });
}
// Byte strides of the values at the shape of what take reads, to which they broadcast.
void strides_of_taken(const bp_frame* frame, const bp_tensor* values, const bp_tensor* x, int32_t axis,
                      const bp_tensor* indices, int64_t* strides) {
  const int32_t joint = indices->dl.ndim, rank = x->dl.ndim - 1 + joint, missing = rank - values->dl.ndim;
  BP_CHECK(missing >= 0, SHAPE, frame->op->name, ": values has ", values->dl.ndim, " axes; the selection has ", rank);
  for (int32_t d = 0; d < rank; ++d) {
    const int64_t full = d < axis           ? x->dl.shape[d]
                         : d < axis + joint ? indices->dl.shape[d - axis]
                                            : x->dl.shape[d - joint + 1];
    const int64_t size = d < missing ? 1 : values->dl.shape[d - missing];
    BP_CHECK(size == 1 || size == full, SHAPE, frame->op->name, ": values has size ", size, " along axis ", d,
             " of the selection, which has ", full, "; it must have that or 1");
    strides[d] = size == 1 ? 0 : values->dl.strides[d - missing] * kItemSize[values->dtype];
  }
}
// take_put(Tensor x, Tensor indices, Tensor values, *, Axis axis, bool accumulate)
bp_status BP_CALL take_put(const bp_frame* frame, const bp_value* args, int32_t, bp_value* outs, int32_t) {
  return plugin::guard(frame, [&] {
    const bp_tensor *x = plugin::as_tensor(args[0]), *indices = plugin::as_tensor(args[1]), *out = outs[0].u.t;
    BP_CHECK(x->dl.ndim > 0, SHAPE, frame->op->name, ": argument 'x' has no dims to write along");
    const Apart values(plugin::as_tensor(args[2]), out);
    const int32_t axis = axis_of(args[3]);
    int64_t strides[kMaxRank];
    strides_of_taken(frame, values.get(), x, axis, indices, strides);
    const bool accumulate = plugin::as_bool(args[4]);
    const IndexSpace space(frame, out, axis, indices, widening(x, values.get(), accumulate, out));
    write(frame, x, values.get(), accumulate, out,
          [&](const bp_tensor* target) { put(space, values.get(), strides, accumulate, target); });
  });
}

}  // namespace

const Family kIndex([](const Registrar& registrar) {
  registrar.kernel(BP_KERNEL("bp::index", "cpu", index, .flags = BP_KERNEL_LOOP));
  registrar.kernel(BP_KERNEL("bp::index_put", "cpu", index_put, .flags = BP_KERNEL_LOOP | BP_KERNEL_INPLACE));
  registrar.kernel(BP_KERNEL("bp::take", "cpu", take, .flags = BP_KERNEL_STRIDED));
  registrar.kernel(BP_KERNEL("bp::take_put", "cpu", take_put, .flags = BP_KERNEL_STRIDED | BP_KERNEL_INPLACE));
});

}  // namespace backplane::cpu

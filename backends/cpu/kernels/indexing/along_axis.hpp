// What kernels share that read or write at positions of one axis, where the other axes broadcast.
#pragma once

#include <algorithm>
#include <vector>

#include "kernels/indexing/accumulate.hpp"
#include "kernels/indexing/apart.hpp"
#include "kernels/indexing/grouped.hpp"
#include "kernels/indexing/positions.hpp"
#include "kernels/indexing/widened.hpp"
#include "loops/cast_row.hpp"
#include "loops/lanes.hpp"
#include "loops/region.hpp"

namespace backplane::cpu {

// A tensor as an operand of a shape to which it broadcasts, axis by axis of one rank.
struct Broadcast {
  LaneOperand operand;
  int64_t strides[kMaxRank];

  Broadcast(const bp_tensor* t, int32_t rank) : operand(lane_operand(t)) {
    const int32_t missing = rank - t->dl.ndim;
    for (int32_t d = 0; d < rank; ++d)
      strides[d] = d < missing || t->dl.shape[d - missing] == 1 ? 0 : t->dl.strides[d - missing];
    operand.strides = strides;
  }
  Broadcast(const Broadcast&) = delete;
};

[[noreturn, gnu::cold, gnu::noinline]] inline void refuse_index(const bp_frame* frame, int64_t given, int64_t size,
                                                                bp_dtype dtype) {
  // An entry that takes no negative index casts to uint64: both readings report the value found.
  BP_CHECK(dtype != BP_UINT64 || given >= 0, DATA, frame->op->name, ": index ", static_cast<uint64_t>(given),
           " is out of range for an axis of size ", size, "; with a sign it is ", given);
  BP_CHECK(false, DATA, frame->op->name, ": index ", given, " is out of range for an axis of size ", size);
  __builtin_unreachable();
}

inline constexpr int64_t kIndexBlock = 512;

// n <= kIndexBlock indices as they lie where they are int64 without gaps, else widened into `block`.
inline const int64_t* wide_indices(bp_dtype dtype, const char* index, int64_t stride, int64_t n, int64_t* block) {
  if (dtype == BP_INT64 && stride == int64_t{sizeof(int64_t)}) return reinterpret_cast<const int64_t*>(index);
  cast_row(dtype, index, stride, BP_INT64, reinterpret_cast<char*>(block), sizeof(int64_t), n);
  return block;
}

// Those as positions in [0, size), counted from the end where they are negative: as given where they are so already,
// else in `block`, in which they may lie.
[[gnu::noinline]] inline const int64_t* checked_positions(const bp_frame* frame, bp_dtype dtype, const int64_t* given,
                                                          int64_t n, int64_t size, int64_t* block) {
  if (n >= 16 && all_inside(given, n, size)) return given;
  const int64_t wrap = dtype == BP_UINT64 ? 0 : size;  // one beyond int64 is out of range, not negative
  for (int64_t i = 0; i < n; ++i) {
    const int64_t at = given[i] < 0 ? given[i] + wrap : given[i];
    if (static_cast<uint64_t>(at) >= static_cast<uint64_t>(size)) [[unlikely]]
      refuse_index(frame, given[i], size, dtype);
    block[i] = at;
  }
  return block;
}

// some(positions, count, place of the first) for the indices of one lane, in order.
template <class Some>
[[gnu::always_inline]] inline void for_some_indices(const bp_frame* frame, bp_dtype dtype, const char* index,
                                                    int64_t stride, int64_t n, int64_t size, Some&& some) {
  int64_t block[kIndexBlock];
  for (int64_t first = 0; first < n; first += kIndexBlock) {
    const int64_t count = std::min(kIndexBlock, n - first);
    const int64_t* given = wide_indices(dtype, index + first * stride, stride, count, block);
    some(checked_positions(frame, dtype, given, count, size, block), count, first);
  }
}

// move(position in the indexed lane, place in the index lane) for each index of one lane.
template <class Move>
[[gnu::always_inline]] inline void for_each_index(const bp_frame* frame, bp_dtype dtype, const char* index,
                                                  int64_t stride, int64_t n, int64_t size, Move&& move) {
  for_some_indices(frame, dtype, index, stride, n, size, [&](const int64_t* positions, int64_t count, int64_t first) {
    for (int64_t i = 0; i < count; ++i) move(positions[i], first + i);
  });
}

// out[i] = x[index i].
template <class Item>
void take_neighbours(const bp_frame* frame, bp_dtype dtype, const char* index, int64_t stride, int64_t n, int64_t size,
                     const Item* x, Item* out) {
  int64_t block[kIndexBlock];
  for (int64_t first = 0; first < n; first += kIndexBlock) {
    const int64_t count = std::min(kIndexBlock, n - first);
    const int64_t* given = wide_indices(dtype, index + first * stride, stride, count, block);
    const int64_t taken = take_inside(x, size, given, count, out + first);
    if (taken == count) continue;
    Item* to = out + first + taken;
    const int64_t rest = count - taken;
    const int64_t* positions = checked_positions(frame, dtype, given + taken, rest, size, block);
    for (int64_t i = take_inside(x, size, positions, rest, to); i < rest; ++i) to[i] = x[positions[i]];
  }
}

// The result has x's shape, so nothing has compared the others with it yet: indices broadcast with x but for `axis`,
// values broadcast to the places that result.
inline void check_put(const bp_frame* frame, const bp_tensor& x, const bp_tensor& indices, const bp_tensor& values,
                      int axis) {
  const char* name = frame->op->name;
  BP_CHECK(indices.dl.ndim == x.dl.ndim, SHAPE, name, ": 'indices' has ", indices.dl.ndim, " dims, expected ",
           x.dl.ndim, ", as 'x' has");
  BP_CHECK(values.dl.ndim <= x.dl.ndim, SHAPE, name, ": 'values' has ", values.dl.ndim, " dims, expected at most ",
           x.dl.ndim, ", as 'x' has");
  for (int32_t d = 0; d < x.dl.ndim; ++d) {
    const int64_t size = x.dl.shape[d], index = indices.dl.shape[d], places = d == axis ? index : size;
    BP_CHECK(d == axis || index == size || index == 1, SHAPE, name, ": 'indices' has size ", index, " along axis ", d,
             ", expected 1 or ", size, ", as 'x' has");
    const int32_t own = d - (x.dl.ndim - values.dl.ndim);
    const int64_t value = own < 0 ? 1 : values.dl.shape[own];
    BP_CHECK(value == places || value == 1, SHAPE, name, ": 'values' has size ", value, " along axis ", d,
             ", expected 1 or ", places);
  }
}

// The arguments of an op (x, indices, values, axis, …) that puts values into x along an axis.
struct Put {
  const bp_tensor *indices, *values, *out;
  int32_t axis;

  bool empty() const { return out->nbytes == 0 || indices->dl.shape[axis] == 0; }
};

inline Put checked_put(const bp_frame* frame, const bp_value* args, const bp_tensor* out) {
  const bp_tensor* x = plugin::as_tensor(args[0]);
  Put put{plugin::as_tensor(args[1]), plugin::as_tensor(args[2]), out, 0};
  BP_CHECK(x->dl.ndim > 0, SHAPE, frame->op->name, ": argument 'x' has no dims to write along");
  put.axis = axis_of(args[3]);
  check_put(frame, *x, *put.indices, *put.values, put.axis);
  const int64_t* shape = x->dl.shape;
  if (shape[put.axis] == 0 && put.indices->nbytes != 0 && std::count(shape, shape + x->dl.ndim, 0) == 1) {
    int64_t first = 0;  // none fits, and no lane has an element whose walk would find that
    cast_row(put.indices->dtype, data_of(put.indices), 0, BP_INT64, reinterpret_cast<char*>(&first), 0, 1);
    refuse_index(frame, first, 0, put.indices->dtype);
  }
  return put;
}

// Refuses a position out of range before anything is written, where a write cannot be undone: the result
// lies in x.
inline void check_before_writing(const bp_frame* frame, const bp_tensor* x, const Put& put) {
  if (put.empty() || data_of(x) != data_of(put.out)) return;
  const bp_tensor* indices = put.indices;
  const int32_t rank = indices->dl.ndim;
  const int64_t n = indices->dl.shape[rank - 1], size = put.out->dl.shape[put.axis];
  const int64_t stride = indices->dl.strides[rank - 1] * plugin::kItemSize[indices->dtype];
  const Lanes<1> lanes(indices->dl.shape, rank, rank - 1, {lane_operand(indices)});
  lanes.run(frame, n, [&](char* const* p) -> const char* {
    for_some_indices(frame, indices->dtype, p[0], stride, n, size, [](const int64_t*, int64_t, int64_t) {});
    return nullptr;
  });
}

// The arguments of a put whose result may be the memory of one of them.
struct PutInPlace {
  Apart indices, values;
  Put put;

  PutInPlace(const bp_frame* frame, const bp_value* args, const bp_tensor* out)
      : indices(plugin::as_tensor(args[1]), out),
        values(plugin::as_tensor(args[2]), out),
        put(checked_put(frame, args, out)) {
    put.indices = indices.get();
    put.values = values.get();
    check_before_writing(frame, plugin::as_tensor(args[0]), put);
  }
};

// n <= kIndexBlock values as elements T, strides in elements: where they lie, or widened into `block`.
template <class T, class V>
struct ValueBlock {
  const T* at;
  int64_t step;
  T block[std::is_same_v<T, V> ? 1 : kIndexBlock];

  ValueBlock(const V* values, int64_t stride, int64_t n) : step(stride) {
    if constexpr (std::is_same_v<T, V>) {
      at = values;
    } else {
      cast_row(plugin::kDtypeOf<V>, reinterpret_cast<const char*>(values), stride * int64_t{sizeof(V)},
               plugin::kDtypeOf<T>, reinterpret_cast<char*>(block), sizeof(T), n);
      at = block, step = 1;
    }
  }
};

constexpr int64_t kPutColumns = 128;  // of a block that a thread combines: its rows of the result stay in the cache

// The same along another axis than the last, whose elements are neighbours: row by row of the indices, in blocks of
// columns. In order along a lane, too.
template <class T, class V, class Combine>
void put_rows(const bp_frame* frame, const Put& put, Combine&& combine) {
  const bp_tensor* out = put.out;
  const int32_t rank = out->dl.ndim, axis = put.axis, last = rank - 1;
  const int64_t *shape = out->dl.shape, *to = out->dl.strides;
  const Broadcast at(put.indices, rank), from(put.values, rank);
  const bp_dtype dtype = put.indices->dtype;
  const int64_t item = plugin::kItemSize[dtype], n = put.indices->dl.shape[axis];
  const int64_t blocks = (shape[last] + kPutColumns - 1) / kPutColumns;
  int64_t count = blocks;
  for (int32_t d = 0; d < last; ++d)
    if (d != axis) count *= shape[d];
  const auto block = [&](int64_t number) {
    const int64_t first = number % blocks * kPutColumns, columns = std::min(kPutColumns, shape[last] - first);
    int64_t target_at = first * to[last], value_at = first * from.strides[last], index_at = first * at.strides[last];
    int64_t rest = number / blocks;
    for (int32_t d = last - 1; d >= 0; --d) {
      if (d == axis) continue;
      const int64_t position = rest % shape[d];
      rest /= shape[d];
      target_at += position * to[d], value_at += position * from.strides[d], index_at += position * at.strides[d];
    }
    T* target = reinterpret_cast<T*>(data_of(out)) + target_at;
    for (int64_t i = 0; i < n; ++i) {
      const V* value = reinterpret_cast<const V*>(from.operand.base) + value_at + i * from.strides[axis];
      const ValueBlock<T, V> some(value, from.strides[last], columns);
      for_each_index(frame, dtype, at.operand.base + (index_at + i * at.strides[axis]) * item, at.strides[last] * item,
                     columns, shape[axis], [&](int64_t position, int64_t place) {
                       combine(target[position * to[axis] + place * to[last]], some.at[place * some.step]);
                     });
    }
  };
  const int64_t grain = std::max<int64_t>(kCheapGrain / (4 * n * kPutColumns), 1);
  plugin::parallel_for(frame, 0, count, grain, [&](int64_t begin, int64_t end) {
    for (int64_t number = begin; number < end; ++number) block(number);
  });
}

// combine(target, value) for each value, lane by lane of the result and in order along a lane: no two lanes of a result
// share elements, so they may run in parallel.
template <class T, class V, class Combine>
void put_lanes(const bp_frame* frame, const Put& put, Combine&& combine) {
  const bp_tensor* out = put.out;
  const int32_t rank = out->dl.ndim, axis = put.axis;
  if (axis < rank - 1 && out->dl.shape[rank - 1] >= 16) return put_rows<T, V>(frame, put, combine);
  const Broadcast at(put.indices, rank), from(put.values, rank);
  const int64_t n = put.indices->dl.shape[axis], size = out->dl.shape[axis];
  const int64_t to = out->dl.strides[axis], step = from.strides[axis];
  const bp_dtype dtype = put.indices->dtype;
  const int64_t index_stride = at.strides[axis] * plugin::kItemSize[dtype];
  const Lanes<3> lanes(out->dl.shape, rank, axis, {lane_operand(out), at.operand, from.operand});
  lanes.run(frame, 4 * n, [&](char* const* p) -> const char* {
    T* target = reinterpret_cast<T*>(p[0]);
    for_some_indices(frame, dtype, p[1], index_stride, n, size,
                     [&](const int64_t* positions, int64_t count, int64_t first) {
                       const ValueBlock<T, V> some(reinterpret_cast<const V*>(p[2]) + first * step, step, count);
                       if (to == 1 && some.step == 1)
                         for (int64_t i = 0; i < count; ++i) combine(target[positions[i]], some.at[i]);
                       else
                         for (int64_t i = 0; i < count; ++i) combine(target[positions[i] * to], some.at[i * some.step]);
                     });
    return nullptr;
  });
}

// The same where the values of one position are combined in a wider dtype: for small floats, and a few of them.
template <class T, class Combine>
void put_groups(const bp_frame* frame, const Put& put, Combine&& combine) {
  const bp_tensor* out = put.out;
  const int32_t rank = out->dl.ndim, axis = put.axis;
  const Broadcast at(put.indices, rank), from(put.values, rank);
  const int64_t n = put.indices->dl.shape[axis], size = out->dl.shape[axis];
  const int64_t to = out->dl.strides[axis], step = from.strides[axis];
  const bp_dtype dtype = put.indices->dtype;
  const int64_t index_stride = at.strides[axis] * plugin::kItemSize[dtype];
  const Lanes<3> lanes(out->dl.shape, rank, axis, {lane_operand(out), at.operand, from.operand});
  lanes.run(frame, 4 * n, [&](char* const* p) -> const char* {
    T* target = reinterpret_cast<T*>(p[0]);
    const T* value = reinterpret_cast<const T*>(p[2]);
    std::vector<int64_t> positions(static_cast<size_t>(n));
    for_each_index(frame, dtype, p[1], index_stride, n, size,
                   [&](int64_t position, int64_t place) { positions[static_cast<size_t>(place)] = position; });
    for_each_group(positions.data(), n, [&](const int64_t* places, int64_t count) {
      T& here = target[positions[static_cast<size_t>(places[0])] * to];
      auto all = static_cast<Wide<T>>(plugin::Compute<T>(here));
      for (int64_t i = 0; i < count; ++i)
        combine(all, static_cast<Wide<T>>(plugin::Compute<T>(value[places[i] * step])));
      here = T(static_cast<plugin::Compute<T>>(all));
    });
    return nullptr;
  });
}

// x, checked, is copied to the target, and body.operator()<T, V>(put) puts the values, V, into elements T of it.
template <bp_dtype_mask kAccepted, class Body>
void put_into(const bp_frame* frame, const bp_value* args, const bp_tensor* out, const Put& put, Body&& body) {
  const bp_tensor* x = plugin::as_tensor(args[0]);
  begin_as(frame, x, out);
  if (put.empty()) return;
  if constexpr ((kAccepted & BP_MASK_BOOL) != 0)
    if (out->dtype == BP_BOOL) return body.template operator()<BoolByte, BoolByte>(put);
  plugin::dispatch_dtype<kAccepted & ~BP_MASK_BOOL>(out->dtype,
                                                    [&]<class T>() { body.template operator()<T, T>(put); });
}

// The same where combine(target, value) rounds: small floats are combined in a wider dtype and rounded once.
template <bp_dtype_mask kAccepted, class Body, class Combine>
void accumulate_into(const bp_frame* frame, const bp_value* args, const bp_tensor* out, Body&& body,
                     Combine&& combine) {
  const bp_tensor* x = plugin::as_tensor(args[0]);
  PutInPlace in_place(frame, args, out);
  Put& put = in_place.put;
  const bool narrow = (BP_DTYPE_BIT(out->dtype) & kNarrow) != 0;
  if (put.empty() || !narrow) return put_into<kAccepted>(frame, args, out, put, body);
  if (!pays_to_widen(x, put.values, out))
    return put_into<kNarrow>(frame, args, out, put,
                             [&]<class T, class V>(const Put& few) { put_groups<T>(frame, few, combine); });
  const Widened sums(x);
  put.out = sums.get();
  plugin::dispatch_dtype<kNarrow>(out->dtype, [&]<class V>() { body.template operator()<Wide<V>, V>(put); });
  sums.round_to(out);
}

}  // namespace backplane::cpu

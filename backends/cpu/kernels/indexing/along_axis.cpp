// take_along_axis, put_along_axis, and argwhere.
//
// The axes other than `axis` broadcast; a lane is what lies along it.
#include "kernels/indexing/along_axis.hpp"

#include "kernels/families.hpp"
#include "kernels/indexing/accumulate.hpp"
#include "loops/item_type.hpp"
#include "loops/strided.hpp"

namespace backplane::cpu {
namespace {

using plugin::kItemSize;

// One lane of take_along_axis: n elements of the result, `to` apart, each from `along` times its position plus `beside`
// times its place.
struct Gather {
  int64_t n, size, to, along, beside, index_stride;
  bp_dtype index_dtype;

  template <class Item>
  void lane(const bp_frame* frame, const Item* x, const char* index, Item* out) const {
    if (to == 1 && along == 1 && beside == 0)
      return take_neighbours(frame, index_dtype, index, index_stride, n, size, x, out);
    for_each_index(frame, index_dtype, index, index_stride, n, size,
                   [&](int64_t position, int64_t place) { out[place * to] = x[position * along + place * beside]; });
  }
};

// take_along_axis(Tensor x, Tensor indices, *, Axis axis). It walks the last axis, whose elements are neighbours,
// unless that one is much shorter than `axis`.
bp_status BP_CALL take_along_axis(const bp_frame* frame, const bp_value* args, int32_t, bp_value* outs, int32_t) {
  return plugin::guard(frame, [&] {
    const bp_tensor *x = plugin::as_tensor(args[0]), *indices = plugin::as_tensor(args[1]), *out = outs[0].u.t;
    if (out->nbytes == 0) return;
    const int32_t rank = out->dl.ndim, axis = axis_of(args[2]);
    const int32_t walk = out->dl.shape[rank - 1] * 4 < out->dl.shape[axis] ? axis : rank - 1;
    Broadcast from(x, rank);
    const Broadcast at(indices, rank);
    from.strides[axis] = 0;
    const Gather gather{out->dl.shape[walk], x->dl.shape[axis],  out->dl.strides[walk],
                        x->dl.strides[axis], from.strides[walk], at.strides[walk] * kItemSize[indices->dtype],
                        indices->dtype};
    const Lanes<3> lanes(out->dl.shape, rank, walk, {lane_operand(out), from.operand, at.operand});
    with_item_type(kItemSize[x->dtype], [&]<class Item>() {
      lanes.run(frame, 4 * gather.n, [&](char* const* p) -> const char* {
        gather.lane(frame, reinterpret_cast<const Item*>(p[1]), p[2], reinterpret_cast<Item*>(p[0]));
        return nullptr;
      });
    });
  });
}

// put_along_axis(Tensor x, Tensor indices, Tensor values, *, Axis axis, bool accumulate)
bp_status BP_CALL put_along_axis(const bp_frame* frame, const bp_value* args, int32_t, bp_value* outs, int32_t) {
  return plugin::guard(frame, [&] {
    if (plugin::as_bool(args[4]))
      return combine_into<BP_MASK_ANY>(frame, args, outs, [&]<class T, class V>(const Put& put) {
        put_lanes<T, V>(frame, put, [](T& target, T value) { add_to(target, value); });
      });
    const bp_tensor *x = plugin::as_tensor(args[0]), *out = outs[0].u.t;
    const Put put = checked_put(frame, args, out);
    copy_region(frame, x->dtype, x->dl.ndim, x->dl.shape, {data_of(x), x->dl.strides}, {data_of(out), out->dl.strides});
    if (put.empty()) return;
    with_item_type(kItemSize[out->dtype], [&]<class Item>() {
      put_lanes<Item, Item>(frame, put, [](Item& target, const Item& value) { target = value; });
    });
  });
}

// argwhere(Tensor x): one row of coordinates per element other than 0; how many is found out by a first pass.
bp_status BP_CALL argwhere(const bp_frame* frame, const bp_value* args, int32_t, bp_value* outs, int32_t) {
  return plugin::guard(frame, [&] {
    const bp_tensor* x = plugin::as_tensor(args[0]);
    const int32_t rank = x->dl.ndim;
    constexpr int64_t kBlock = 512;
    uint8_t block[kBlock];
    // visit(number of the first element, count) with the block marking the elements that are other than 0.
    const auto for_each_block = [&](auto&& visit) {
      int64_t number = 0;
      for_each_strided_row(*x, [&](char* row, int64_t stride, int64_t n) {
        for (int64_t first = 0; first < n; first += kBlock) {
          const int64_t count = std::min(kBlock, n - first);
          cast_row(x->dtype, row + first * stride, stride, BP_BOOL, reinterpret_cast<char*>(block), 1, count);
          visit(number, count);
          number += count;
        }
      });
    };
    int64_t hits = 0;
    for_each_block([&](int64_t, int64_t count) {
      uint32_t sum = 0;
      for (int64_t i = 0; i < count; ++i) sum += block[i] != 0;
      hits += sum;
    });
    const int64_t shape[2] = {hits, rank};
    int64_t* row = static_cast<int64_t*>(plugin::OutSlot(frame, &outs[0]).allocate(BP_INT64, shape).data());
    for_each_block([&](int64_t number, int64_t count) {
      int64_t found[kBlock + 1], n = 0;
      // Without a branch, which would be guessed wrong half the time.
      for (int64_t i = 0; i < count; ++i) {
        found[n] = number + i;
        n += block[i] != 0;
      }
      if (rank == 1) {
        row = std::copy_n(found, n, row);
        return;
      }
      for (int64_t i = 0; i < n; ++i, row += rank)
        for (int32_t d = rank - 1; d >= 0; --d) {
          row[d] = found[i] % x->dl.shape[d];
          found[i] /= x->dl.shape[d];
        }
    });
  });
}

}  // namespace

const Family kAlongAxis([](const Registrar& registrar) {
  registrar.kernel(BP_KERNEL("bp::take_along_axis", "cpu", take_along_axis, .flags = BP_KERNEL_STRIDED));
  registrar.kernel(BP_KERNEL("bp::put_along_axis", "cpu", put_along_axis, .flags = BP_KERNEL_STRIDED));
  registrar.kernel(BP_KERNEL("bp::argwhere", "cpu", argwhere, .flags = BP_KERNEL_STRIDED));
});

}  // namespace backplane::cpu

// take_along_axis, put_along_axis, and argwhere.
//
// The axes other than `axis` broadcast; a lane is what lies along it.
#include "kernels/along_axis.hpp"

#include "kernels/accumulate.hpp"
#include "kernels/families.hpp"
#include "kernels/item_type.hpp"
#include "kernels/region.hpp"
#include "kernels/strided.hpp"

namespace backplane::cpu {
namespace {

using plugin::kItemSize;

// take_along_axis(Tensor x, Tensor indices, *, Axis axis)
bp_status BP_CALL take_along_axis(const bp_frame* frame, const bp_value* args, int32_t, bp_value* outs, int32_t) {
  return plugin::guard(frame, [&] {
    const bp_tensor *x = plugin::as_tensor(args[0]), *indices = plugin::as_tensor(args[1]), *out = outs[0].u.t;
    if (out->nbytes == 0) return;
    const int32_t rank = out->dl.ndim, axis = normalized_axis(plugin::as_int(args[2]), rank);
    const Broadcast from(x, rank), at(indices, rank);
    const int64_t item = kItemSize[x->dtype], n = out->dl.shape[axis], size = x->dl.shape[axis];
    const int64_t x_stride = x->dl.strides[axis] * item, to = out->dl.strides[axis] * item;
    const int64_t index_stride = at.strides[axis] * kItemSize[indices->dtype];
    const Lanes<3> lanes(out->dl.shape, rank, axis, {lane_operand(out), from.operand, at.operand});
    with_item_type(item, [&]<class Item>() {
      lanes.run(frame, 4 * n, [&](char* const* p) -> const char* {
        for_each_index(frame, indices->dtype, p[2], index_stride, n, size, [&](int64_t position, int64_t place) {
          *reinterpret_cast<Item*>(p[0] + place * to) = *reinterpret_cast<const Item*>(p[1] + position * x_stride);
        });
        return nullptr;
      });
    });
  });
}

// put_along_axis(Tensor x, Tensor indices, Tensor values, *, Axis axis, bool accumulate). Lanes of the output differ
// where the index's axes have x's sizes; lanes that repeat are written in order, on one thread.
bp_status BP_CALL put_along_axis(const bp_frame* frame, const bp_value* args, int32_t, bp_value* outs, int32_t) {
  return plugin::guard(frame, [&] {
    const bp_tensor *x = plugin::as_tensor(args[0]), *indices = plugin::as_tensor(args[1]);
    const bp_tensor *values = plugin::as_tensor(args[2]), *out = outs[0].u.t;
    const int32_t rank = out->dl.ndim;
    BP_CHECK(rank > 0, SHAPE, frame->op->name, ": argument 'x' has no dims to write along");
    const int32_t axis = normalized_axis(plugin::as_int(args[3]), rank);
    check_put(frame, *x, *indices, *values, axis);
    copy_region(frame, x->dtype, rank, x->dl.shape, {data_of(x), x->dl.strides}, {data_of(out), out->dl.strides});
    const int64_t n = indices->dl.shape[axis];
    if (out->nbytes == 0 || n == 0) return;
    const Broadcast at(indices, rank), from(values, rank);
    const int64_t item = kItemSize[x->dtype], size = out->dl.shape[axis], to = out->dl.strides[axis] * item;
    const int64_t index_stride = at.strides[axis] * kItemSize[indices->dtype], from_stride = from.strides[axis] * item;
    const ScatterRow put = scatter_row(x->dtype, plugin::as_bool(args[4]));
    const Lanes<3> lanes(out->dl.shape, rank, axis, {lane_operand(out), at.operand, from.operand});
    if (x->dtype == BP_FLOAT32 || x->dtype == BP_FLOAT64) {
      // The most frequent types in loops of their own, without a call per element.
      return plugin::dispatch_dtype<BP_DTYPE_BIT(BP_FLOAT32) | BP_DTYPE_BIT(BP_FLOAT64)>(x->dtype, [&]<class T>() {
        const bool add = plugin::as_bool(args[4]);
        lanes.run(frame, 4 * n, [&](char* const* p) -> const char* {
          for_each_index(frame, indices->dtype, p[1], index_stride, n, size, [&](int64_t position, int64_t place) {
            T& target = *reinterpret_cast<T*>(p[0] + position * to);
            const T value = *reinterpret_cast<const T*>(p[2] + place * from_stride);
            target = add ? target + value : value;
          });
          return nullptr;
        });
      });
    }
    lanes.run(frame, 4 * n, [&](char* const* p) -> const char* {
      for_each_index(frame, indices->dtype, p[1], index_stride, n, size, [&](int64_t position, int64_t place) {
        put(p[2] + place * from_stride, 0, p[0] + position * to, 0, 1);
      });
      return nullptr;
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
    // visit(number of the first element, count) with the block telling which elements are other than 0.
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
      for (int64_t i = 0; i < count; ++i) sum += block[i];
      hits += sum;
    });
    const int64_t shape[2] = {hits, rank};
    int64_t* row = static_cast<int64_t*>(plugin::OutSlot(frame, &outs[0]).allocate(BP_INT64, shape).data());
    for_each_block([&](int64_t number, int64_t count) {
      int64_t found[kBlock + 1], n = 0;
      // Without a branch, which would be guessed wrong half the time.
      for (int64_t i = 0; i < count; ++i) {
        found[n] = number + i;
        n += block[i];
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

void register_along_axis(const Registrar& registrar) {
  registrar.kernel(BP_KERNEL("bp::take_along_axis", "cpu", take_along_axis, .flags = BP_KERNEL_STRIDED));
  registrar.kernel(BP_KERNEL("bp::put_along_axis", "cpu", put_along_axis, .flags = BP_KERNEL_STRIDED));
  registrar.kernel(BP_KERNEL("bp::argwhere", "cpu", argwhere, .flags = BP_KERNEL_STRIDED));
}

}  // namespace backplane::cpu

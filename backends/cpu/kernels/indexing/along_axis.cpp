// take_along_axis and put_along_axis.
//
// The axes other than `axis` broadcast; a lane is the elements along it.
#include "kernels/indexing/along_axis.hpp"

#include "kernels/families.hpp"
#include "kernels/indexing/accumulate.hpp"
#include "loops/item_type.hpp"

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
    if (plugin::as_bool(args[4])) {
      const auto add = [](auto& target, auto value) { add_to(target, value); };
      return accumulate_into<BP_MASK_ANY>(
          frame, args, outs[0].u.t, [&]<class T, class V>(const Put& put) { put_lanes<T, V>(frame, put, add); }, add);
    }
    const bp_tensor *x = plugin::as_tensor(args[0]), *out = outs[0].u.t;
    const PutInPlace in_place(frame, args, out);
    const Put& put = in_place.put;
    begin_as(frame, x, out);
    if (put.empty()) return;
    with_item_type(kItemSize[out->dtype], [&]<class Item>() {
      put_lanes<Item, Item>(frame, put, [](Item& target, const Item& value) { target = value; });
    });
  });
}

}  // namespace

const Family kAlongAxis([](const Registrar& registrar) {
  registrar.kernel(BP_KERNEL("bp::take_along_axis", "cpu", take_along_axis, .flags = BP_KERNEL_STRIDED));
  registrar.kernel(
      BP_KERNEL("bp::put_along_axis", "cpu", put_along_axis, .flags = BP_KERNEL_STRIDED | BP_KERNEL_INPLACE));
});

}  // namespace backplane::cpu

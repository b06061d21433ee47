// concat, and slice_put: whole regions copied to their place.
#include <algorithm>
#include <cstring>
#include <vector>

#include "kernels/families.hpp"
#include "loops/elementwise.hpp"
#include "loops/item_type.hpp"
#include "loops/lanes.hpp"
#include "loops/region.hpp"

namespace backplane::cpu {
namespace {

using plugin::kItemSize;

// Slices of one item from each tensor: a loop per tensor over blocks that stay in the cache, in place of a call per
// item.
template <class Item>
void interleave(const bp_value& arrays, int64_t begin, int64_t end, char* to) {
  constexpr int64_t kBlock = 1024;
  const auto n = static_cast<int64_t>(arrays.count);
  for (int64_t first = begin; first < end; first += kBlock) {
    const int64_t last = std::min(first + kBlock, end);
    for (int64_t k = 0; k < n; ++k) {
      const Item* from = reinterpret_cast<const Item*>(data_of(arrays.u.tensors[k]));
      Item* out = reinterpret_cast<Item*>(to) + k;
      for (int64_t i = first; i < last; ++i) out[i * n] = from[i];
    }
  }
}

bool are_items(const bp_value& arrays, int64_t slices) {
  return std::all_of(arrays.u.tensors, arrays.u.tensors + arrays.count, [&](const bp_tensor* x) {
    return static_cast<int64_t>(x->nbytes) == slices * kItemSize[x->dtype];
  });
}

// Contiguous pieces of slices before the axis, slice by slice, so that the result is written from its beginning to its
// end. False where a tensor is not contiguous, or the first axis is joined: then whole tensors are copied.
bool join_slices(const bp_frame* frame, const bp_value& arrays, int32_t axis, const bp_tensor* out) {
  int64_t slices = 1, whole = kItemSize[out->dtype];
  for (int32_t d = 0; d < axis; ++d) slices *= out->dl.shape[d];
  for (int32_t d = axis; d < out->dl.ndim; ++d) whole *= out->dl.shape[d];
  if (slices == 1 || out->nbytes == 0 || (out->flags & BP_TENSOR_CONTIGUOUS) == 0) return false;
  for (uint32_t i = 0; i < arrays.count; ++i)
    if ((arrays.u.tensors[i]->flags & BP_TENSOR_CONTIGUOUS) == 0) return false;
  const bool items = are_items(arrays, slices);
  const auto range = [&](int64_t begin, int64_t end) {
    if (items)
      return with_item_type(kItemSize[out->dtype],
                            [&]<class Item>() { interleave<Item>(arrays, begin, end, data_of(out)); });
    char* to = data_of(out) + begin * whole;
    for (int64_t slice = begin; slice < end; ++slice)
      for (uint32_t i = 0; i < arrays.count; ++i) {
        const bp_tensor* x = arrays.u.tensors[i];
        const auto bytes = static_cast<int64_t>(x->nbytes) / slices;
        if (bytes == 0) continue;  // its data may be null
        std::memcpy(to, data_of(x) + slice * bytes, static_cast<size_t>(bytes));
        to += bytes;
      }
  };
  const int64_t grain = std::max<int64_t>(4 * kCheapGrain / whole, 1);
  if (slices <= grain)
    range(0, slices);
  else
    plugin::parallel_for(frame, 0, slices, grain, range);
  return true;
}

// concat(Tensor[] arrays, *, Axis axis)
bp_status BP_CALL concat(const bp_frame* frame, const bp_value* args, int32_t, bp_value* outs, int32_t) {
  return plugin::guard(frame, [&] {
    const bp_tensor* out = outs[0].u.t;
    const int32_t rank = out->dl.ndim, axis = axis_of(args[1]);
    if (join_slices(frame, args[0], axis, out)) return;
    char* to = data_of(out);
    for (uint32_t i = 0; i < args[0].count; ++i) {
      const bp_tensor* x = args[0].u.tensors[i];
      copy_region(frame, x->dtype, rank, x->dl.shape, {data_of(x), x->dl.strides}, {to, out->dl.strides});
      to += x->dl.shape[axis] * out->dl.strides[axis] * kItemSize[out->dtype];
    }
  });
}

// A tensor to copy from, or a number as one without axes.
class Source {
 public:
  Source(const bp_value& v, bp_dtype dtype) {
    if (v.tag == BP_TAG_TENSOR) {
      rank_ = v.u.t->dl.ndim;
      shape_ = v.u.t->dl.shape;
      from_ = {data_of(v.u.t), v.u.t->dl.strides};
    } else {
      store_number(dtype, v, number_);
    }
  }
  Source(const Source&) = delete;

  const char* data() const { return from_.data; }

  // Broadcasts to `shape`, which the shape rule has seen to fit.
  void copy_to(const bp_frame* frame, bp_dtype dtype, int32_t rank, const int64_t* shape, Region to) const {
    int64_t strides[kMaxRank];
    const int32_t missing = rank - rank_;
    for (int32_t d = 0; d < rank; ++d) {
      const int64_t size = d < missing ? 1 : shape_[d - missing];
      strides[d] = size == 1 ? 0 : from_.strides[d - missing];
    }
    copy_region(frame, dtype, rank, shape, {from_.data, strides}, to);
  }

  // Goes on with a copy in `room`, where its own elements will be written over.
  void set_apart(const bp_frame* frame, bp_dtype dtype, std::vector<char>& room) {
    int64_t count = 1;
    for (int32_t d = rank_; d-- > 0; count *= shape_[d]) own_strides_[d] = count;
    room.resize(static_cast<size_t>(count * kItemSize[dtype]));
    const Region to{room.data(), own_strides_};
    copy_region(frame, dtype, rank_, shape_, from_, to);
    from_ = to;
  }

 private:
  alignas(16) char number_[16];
  int32_t rank_ = 0;
  const int64_t* shape_ = nullptr;
  Region from_{number_, nullptr};
  int64_t own_strides_[kMaxRank];
};

// slice_put(Tensor x, Tensor value, Axes axes, Index?[] starts, Index?[] stops, Index[] steps): per axis start, count
// and step have arrived, and the shape rule has seen that the value broadcasts. The result may lie where x does, whose
// elements then stay, or where the value does.
bp_status BP_CALL slice_put(const bp_frame* frame, const bp_value* args, int32_t, bp_value* outs, int32_t) {
  return plugin::guard(frame, [&] {
    const bp_tensor* out = outs[0].u.t;
    const int32_t rank = out->dl.ndim;
    const Source x(args[0], out->dtype);
    Source value(args[1], out->dtype);
    std::vector<char> room;
    if (value.data() == data_of(out) && out->nbytes != 0) value.set_apart(frame, out->dtype, room);
    if (x.data() != data_of(out)) x.copy_to(frame, out->dtype, rank, out->dl.shape, {data_of(out), out->dl.strides});
    int64_t shape[kMaxRank], strides[kMaxRank];
    std::copy(out->dl.shape, out->dl.shape + rank, shape);
    std::copy(out->dl.strides, out->dl.strides + rank, strides);
    char* to = data_of(out);
    for (uint32_t i = 0; i < args[2].count; ++i) {
      const int64_t axis = args[2].u.ints[i], start = args[3].u.ints[i], step = args[5].u.ints[i];
      to += start * strides[axis] * kItemSize[out->dtype];
      shape[axis] = args[4].u.ints[i];
      if (shape[axis] > 1) strides[axis] *= step;  // else nobody steps, and the product may not be a number
    }
    value.copy_to(frame, out->dtype, rank, shape, {to, strides});
  });
}

}  // namespace

const Family kJoin([](const Registrar& registrar) {
  registrar.kernel(BP_KERNEL("bp::concat", "cpu", concat, .flags = BP_KERNEL_STRIDED));
  registrar.kernel(BP_KERNEL("bp::slice_put", "cpu", slice_put,
                             .flags = BP_KERNEL_STRIDED | BP_KERNEL_IMMEDIATES | BP_KERNEL_INPLACE));
});

}  // namespace backplane::cpu

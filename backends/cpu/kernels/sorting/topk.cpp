// topk: the k largest or smallest elements along an axis, by selection. NaN counts as largest; of equal elements the
// first come first.
#include <algorithm>
#include <limits>

#include "kernels/families.hpp"
#include "kernels/sorting/sort_keys.hpp"
#include "loops/lanes.hpp"
#include "runtime/scratch.hpp"

namespace backplane::cpu {
namespace {

using plugin::Compute;
using plugin::kItemSize;
constexpr bp_dtype_mask kReal = BP_MASK_INTEGER | BP_MASK_FLOATING;

template <class T>
T element(const char* x, int64_t stride, int64_t i) {
  return *reinterpret_cast<const T*>(x + i * stride);
}

// Half floats as integers in their order, NaN beyond the infinity of its sign: compared in float32 they took three
// times as long.
constexpr float kInfinity = std::numeric_limits<float>::infinity();
template <class T>
int16_t order_of(T value) {
  const auto bits = static_cast<int16_t>(value.bits);
  return static_cast<int16_t>(bits ^ ((bits >> 15) & 0x7fff));
}

// The k first of one lane: candidates are collected while they beat the k-th best so far, and thinned out when there
// are twice as many as needed.
template <class T, class Packed>
class Selection {
 public:
  Selection(int64_t k, bool largest) : k_(k), capacity_(2 * k + 256), largest_(largest), found_(capacity_) {}

  void take(const char* x, int64_t stride, int64_t n) {
    count_ = 0;
    bounded_ = false;
    constexpr int64_t kBlock = 32;
    for (int64_t first = 0; first < n; first += kBlock) {
      const int64_t last = std::min(first + kBlock, n);
      if (bounded_ && last - first == kBlock && stride == int64_t{sizeof(T)} && none_better(x + first * stride))
        continue;
      for (int64_t i = first; i < last; ++i) {
        const Packed candidate = pack<Packed>(element<T>(x, stride, i), i, largest_);
        if (!bounded_ || candidate < worst_) found_.get()[count_++] = candidate;
      }
      if (count_ + kBlock > capacity_) thin(x, stride);
    }
    std::nth_element(found_.get(), found_.get() + (k_ - 1), found_.get() + count_);
  }
  void sort(const bp_frame* frame) const { sort_keys(frame, found_.get(), k_); }
  int64_t position(int64_t i) const { return position_of(found_.get()[i]); }

 private:
  // For 32 adjacent elements. A NaN, or zeros of both signs, count as better, so that the caller looks closer.
  bool none_better(const char* x) const {
    const T* values = reinterpret_cast<const T*>(x);
    int better = 0;
    if constexpr (plugin::kIsHalf<T>) {
      const int16_t bound = bound_ != bound_ ? INT16_MAX : order_of(bound_), low = order_of(T(-kInfinity));
      for (int64_t j = 0; j < 32; ++j) {
        const int16_t order = order_of(values[j]);
        better |= largest_ ? (order > bound) | (order < low) : order < bound;
      }
      return better == 0;
    }
    const Compute<T> bound = bound_;
    for (int64_t j = 0; j < 32; ++j) {
      const Compute<T> value = values[j];
      better |= largest_ ? !(value <= bound) : !(value >= bound);
    }
    return better == 0;
  }
  void thin(const char* x, int64_t stride) {
    std::nth_element(found_.get(), found_.get() + (k_ - 1), found_.get() + count_);
    count_ = k_;
    worst_ = found_.get()[k_ - 1];
    bound_ = element<T>(x, stride, position_of(worst_));
    bounded_ = true;
  }

  int64_t k_, capacity_, count_ = 0;
  bool largest_, bounded_ = false;
  Packed worst_{};
  T bound_{};
  Scratch<Packed> found_;
};

template <class T, class Packed>
void topk_tensor(const bp_frame* frame, const bp_tensor* x, int32_t axis, int64_t k, bool largest,
                 const bp_value* outs) {
  // A result that is not wanted is absent.
  const bp_tensor* values = outs[0].tag == BP_TAG_TENSOR ? outs[0].u.t : nullptr;
  const bp_tensor* places = outs[1].tag == BP_TAG_TENSOR ? outs[1].u.t : nullptr;
  const int32_t rank = x->dl.ndim;
  const int64_t n = rank == 0 ? 1 : x->dl.shape[axis];
  const auto step = [&](const bp_tensor* t) {
    return rank == 0 || t == nullptr ? 0 : t->dl.strides[axis] * kItemSize[t->dtype];
  };
  const int64_t x_step = step(x), value_step = step(values), place_step = step(places);
  const Lanes<3> lanes(x->dl.shape, rank, axis,
                       {lane_operand(values != nullptr ? values : places),
                        lane_operand(places != nullptr ? places : values), lane_operand(x)});
  const auto range = [&](int64_t begin, int64_t end) {
    Selection<T, Packed> selection(k, largest);
    lanes.for_each(begin, end, [&](char* const* p) -> const char* {
      selection.take(p[2], x_step, n);
      selection.sort(frame);
      for (int64_t i = 0; i < k; ++i) {
        const int64_t at = selection.position(i);
        if (values != nullptr) *reinterpret_cast<T*>(p[0] + i * value_step) = element<T>(p[2], x_step, at);
        if (places != nullptr) *reinterpret_cast<int64_t*>(p[1] + i * place_step) = at;
      }
      return nullptr;
    });
  };
  const int64_t grain = std::max<int64_t>(kCheapGrain / std::max<int64_t>(2 * n, 1), 1);
  if (lanes.count() <= grain) return range(0, lanes.count());
  plugin::parallel_for(frame, 0, lanes.count(), grain, range);
}

// topk(Tensor x, Size k, *, Axis axis, bool largest) -> (values, indices)
bp_status BP_CALL topk(const bp_frame* frame, const bp_value* args, int32_t, bp_value* outs, int32_t) {
  return plugin::guard(frame, [&] {
    const bp_tensor* x = plugin::as_tensor(args[0]);
    const int32_t rank = x->dl.ndim, axis = axis_of(args[2]);
    const int64_t k = plugin::as_int(args[1]), n = rank == 0 ? 1 : x->dl.shape[axis];
    BP_CHECK(k <= n, SHAPE, frame->op->name, ": k is ", k, "; axis ", axis, " has ", n, " elements");
    if (k == 0 || x->nbytes == 0) return;
    plugin::dispatch_dtype<kReal>(x->dtype, [&]<class T>() {
      if (sizeof(T) == 8 || n > UINT32_MAX)
        topk_tensor<T, WidePacked>(frame, x, axis, k, plugin::as_bool(args[3]), outs);
      else if constexpr (sizeof(T) < 8)
        topk_tensor<T, uint64_t>(frame, x, axis, k, plugin::as_bool(args[3]), outs);
    });
  });
}

}  // namespace

const Family kTopk([](const Registrar& registrar) {
  registrar.kernel(BP_KERNEL("bp::topk", "cpu", topk, .dtypes = kReal, .flags = BP_KERNEL_STRIDED));
});

}  // namespace backplane::cpu

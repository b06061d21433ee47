// argsort and sort along one axis; NaN counts as largest. Sorting is stable, by keys that hold the positions.
#include <algorithm>
#include <bit>
#include <type_traits>

#include "kernels/families.hpp"
#include "kernels/sorting/lane_keys.hpp"
#include "kernels/sorting/radix_sort.hpp"
#include "kernels/sorting/short_sort.hpp"
#include "kernels/sorting/sort_keys.hpp"
#include "loops/lanes.hpp"
#include "runtime/scratch.hpp"

namespace backplane::cpu {
namespace {

using plugin::kItemSize;
constexpr bp_dtype_mask kSortable = BP_MASK_BOOL | BP_MASK_INTEGER | BP_MASK_FLOATING;

// Work of sorting a lane, in elements of a cheap loop.
int64_t sorting_cost(int64_t n) { return 16 * n; }

// The key of the order; a bool is true for any byte but 0.
template <class Given>
auto element(const char* at) {
  if constexpr (std::is_same_v<Given, bool>)
    return static_cast<uint8_t>(*at != 0);
  else
    return *reinterpret_cast<const Given*>(at);
}

// Keys put -0 before 0, which are equal and keep their order: zeros of a sorted lane are written again in the order of
// x. A search per lane finds out whether there is a -0 at all.
template <class T>
void keep_order_of_zeros(const char* x, int64_t x_stride, char* out, int64_t out_stride, int64_t n, bool descending) {
  using Bits = BitsOf<sizeof(T)>;
  const SortKey<T> zero = sort_key(T{}), minus_zero = zero - 1;
  const auto key = [&](int64_t i) { return sort_key(*reinterpret_cast<const T*>(out + i * out_stride)); };
  const auto before = [&](int64_t i, bool zeros_too) {
    return descending ? key(i) > (zeros_too ? minus_zero - 1 : zero) : key(i) < minus_zero + 2 * zeros_too;
  };
  const auto first_after = [&](int64_t begin, bool zeros_too) {
    for (int64_t size = n - begin; size > 0;) {
      const int64_t half = size / 2;
      const bool right = before(begin + half, zeros_too);
      begin = right ? begin + half + 1 : begin;
      size = right ? size - half - 1 : half;
    }
    return begin;
  };
  const int64_t begin = first_after(0, false);
  if (begin == n || key(begin) != (descending ? zero : minus_zero)) return;
  const int64_t end = first_after(begin, true);
  if (key(end - 1) == key(begin)) return;
  for (int64_t i = 0, to = begin; to < end; ++i) {
    const T value = *reinterpret_cast<const T*>(x + i * x_stride);
    if (static_cast<Bits>(std::bit_cast<Bits>(value) << 1) == 0) *reinterpret_cast<T*>(out + to++ * out_stride) = value;
  }
}

// Lanes longer than networks sort.
template <class T>
struct ValueLane {
  const bp_frame* frame;
  int64_t n, x_stride, out_stride;
  bool descending;

  int64_t room() const { return sorting_room(n); }
  void sort(const char* x, char* out, SortKey<T>* keys) const {
    constexpr bp_dtype kDtype = plugin::kDtypeOf<T>;
    plugin::parallel_for(frame, 0, n, kCheapGrain, [&](int64_t begin, int64_t end) {
      keys_of_lane(kDtype, x + begin * x_stride, x_stride, end - begin, descending, keys + begin);
    });
    sort_keys(frame, keys, n);
    plugin::parallel_for(frame, 0, n, kCheapGrain, [&](int64_t begin, int64_t end) {
      lane_of_keys(kDtype, keys + begin, end - begin, descending, out + begin * out_stride, out_stride);
    });
    if constexpr (!std::is_integral_v<T>) keep_order_of_zeros<T>(x, x_stride, out, out_stride, n, descending);
  }
};
template <class Given, class Packed>
struct PositionLane {
  const bp_frame* frame;
  int64_t n, x_stride, out_stride;
  bool descending;

  int64_t room() const { return sorting_room(n); }
  void sort(const char* x, char* out, Packed* keys) const {
    for (int64_t i = 0; i < n; ++i) keys[i] = pack<Packed>(element<Given>(x + i * x_stride), i, descending);
    sort_keys(frame, keys, n);
    for (int64_t i = 0; i < n; ++i) *reinterpret_cast<int64_t*>(out + i * out_stride) = position_of(keys[i]);
  }
};

// By a radix sort of keys of 32 bits (Item uint32_t), or of such above their positions (uint64_t).
template <class Given, class Item>
struct RadixLane {
  using T = decltype(element<Given>(nullptr));
  static constexpr bool kPositions = sizeof(Item) == 8;
  const bp_frame* frame;
  int64_t n, x_stride, out_stride;
  bool descending;

  int64_t room() const { return 2 * n; }
  void sort(const char* x, char* out, Item* items) const {
    const auto flip = static_cast<uint32_t>(descending ? ~uint32_t{0} : 0);
    const auto read = [&](int64_t i) -> Item {
      const T value = element<Given>(x + i * x_stride);
      if constexpr (kPositions)
        return pack<uint64_t>(value, i, descending);
      else
        return sort_key(value) ^ flip;
    };
    const auto write = [&](int64_t place, Item item) {
      char* to = out + place * out_stride;
      if constexpr (kPositions)
        *reinterpret_cast<int64_t*>(to) = position_of(item);
      else
        *reinterpret_cast<T*>(to) = value_of_key<T>(item ^ flip);
    };
    RadixSort<Item>(frame, n)(items, items + n, read, write);
    if constexpr (!kPositions && !std::is_integral_v<T>)
      keep_order_of_zeros<T>(x, x_stride, out, out_stride, n, descending);
  }
};

template <class T>
struct ShortLane {
  int64_t n, x_stride, out_stride;
  bool descending;

  int64_t room() const { return sorting_room(n); }
  void sort(const char* x, char* out, uint64_t* keys) const {
    sort_short_lane(plugin::kDtypeOf<T>, x, x_stride, out, out_stride, n, descending, keys);
    if constexpr (!std::is_integral_v<T>) keep_order_of_zeros<T>(x, x_stride, out, out_stride, n, descending);
  }
};

template <class Key, class Lane>
void sort_tensor(const bp_frame* frame, const bp_tensor* x, const bp_tensor* out, int32_t axis, const Lane& lane) {
  const Lanes<2> lanes(x->dl.shape, x->dl.ndim, axis, {lane_operand(out), lane_operand(x)});
  const auto range = [&](int64_t begin, int64_t end) {
    const Scratch<Key> keys(lane.room());
    lanes.for_each(begin, end, [&](char* const* p) -> const char* {
      lane.sort(p[1], p[0], keys.get());
      return nullptr;
    });
  };
  const int64_t grain = std::max<int64_t>(kCheapGrain / sorting_cost(lane.n), 1);
  if (lanes.count() <= grain) return range(0, lanes.count());
  plugin::parallel_for(frame, 0, lanes.count(), grain, range);
}

// (Tensor x, *, Axis axis, bool descending, bool stable)
template <bool Positions>
bp_status BP_CALL sort_kernel(const bp_frame* frame, const bp_value* args, int32_t, bp_value* outs, int32_t) {
  return plugin::guard(frame, [&] {
    const bp_tensor *x = plugin::as_tensor(args[0]), *out = outs[0].u.t;
    if (out->nbytes == 0) return;
    const int32_t rank = x->dl.ndim, axis = axis_of(args[1]);
    const int64_t n = rank == 0 ? 1 : x->dl.shape[axis];
    const int64_t x_stride = rank == 0 ? 0 : x->dl.strides[axis] * kItemSize[x->dtype];
    const int64_t out_stride = rank == 0 ? 0 : out->dl.strides[axis] * kItemSize[out->dtype];
    const bool descending = plugin::as_bool(args[2]);
    plugin::dispatch_dtype<kSortable>(x->dtype, [&]<class Given>() {
      using T = std::conditional_t<std::is_same_v<Given, bool>, uint8_t, Given>;
      const auto run = [&]<class Key, class Lane>(Key, Lane lane) { sort_tensor<Key>(frame, x, out, axis, lane); };
      if constexpr (Positions) {
        if constexpr (sizeof(T) < 8) {
          if (n <= kShortKeys)
            return run(uint64_t{}, PositionLane<Given, uint64_t>{frame, n, x_stride, out_stride, descending});
          if (n <= UINT32_MAX)
            return run(uint64_t{}, RadixLane<Given, uint64_t>{frame, n, x_stride, out_stride, descending});
        }
        run(WidePacked{}, PositionLane<Given, WidePacked>{frame, n, x_stride, out_stride, descending});
      } else {
        if (n <= kShortKeys) return run(uint64_t{}, ShortLane<T>{n, x_stride, out_stride, descending});
        if constexpr (sizeof(T) < 4) {
          if (n <= UINT32_MAX)
            return run(uint32_t{}, RadixLane<Given, uint32_t>{frame, n, x_stride, out_stride, descending});
        }
        run(SortKey<T>{}, ValueLane<T>{frame, n, x_stride, out_stride, descending});
      }
    });
  });
}

}  // namespace

const Family kSort([](const Registrar& registrar) {
  registrar.kernel(BP_KERNEL("bp::argsort", "cpu", sort_kernel<true>, .dtypes = kSortable, .flags = BP_KERNEL_STRIDED));
  registrar.kernel(BP_KERNEL("bp::sort", "cpu", sort_kernel<false>, .dtypes = kSortable, .flags = BP_KERNEL_STRIDED));
});

}  // namespace backplane::cpu

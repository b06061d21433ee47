// argmax and argmin along an axis or over all elements, alone or with the elements there: the first of equals, the
// first NaN where there is one.
//
// Neighbours go block by block: the block's largest by the vector loops of the reductions, its place only for the block
// that wins. Along another axis, lanes side by side keep their best in vectors (arg_columns.cpp).
#include <atomic>
#include <optional>
#include <vector>

#include "kernels/families.hpp"
#include "kernels/reduction/arg_columns.hpp"
#include "kernels/reduction/reducer.hpp"
#include "loops/lanes.hpp"
#include "loops/region.hpp"
#include "loops/row_major.hpp"

namespace backplane::cpu {
namespace {

using plugin::Compute;
using plugin::kItemSize;
constexpr bp_dtype_mask kReal = BP_MASK_INTEGER | BP_MASK_FLOATING;
constexpr int64_t kPiece = 65536;

template <class T, bool Largest>
struct Best {
  Compute<T> value{};
  int64_t position = -1;

  // A NaN wins once and is never beaten: it compares as false.
  bool beaten_by(Compute<T> candidate) const {
    const bool better = Largest ? candidate > value : candidate < value;
    return position < 0 || better || (candidate != candidate && value == value);
  }
  void look(const char* x, int64_t stride, int64_t first, int64_t n) {
    if (stride == int64_t{sizeof(T)}) return look_at_neighbours(x, first, n);
    for (int64_t i = 0; i < n; ++i) {
      const Compute<T> candidate = *reinterpret_cast<const T*>(x + i * stride);
      if (beaten_by(candidate)) *this = {candidate, first + i};
    }
  }

 private:
  // The first of n elements that is `value`, or the NaN that `value` is.
  int64_t place_of(const T* x, int64_t n) const {
    if constexpr (std::is_floating_point_v<Compute<T>>) {
      return arg_loops<T>().place(x, n, value);
    } else {
      constexpr int64_t kStep = 32;
      int64_t i = 0;
      for (; i + kStep <= n; i += kStep) {
        int found = 0;
        for (int64_t j = 0; j < kStep; ++j) found |= x[i + j] == value;
        if (found != 0) break;
      }
      while (x[i] != value) ++i;
      return i;
    }
  }
  void look_at_neighbours(const char* x, int64_t first, int64_t n) {
    const Reducer& top =
        reducers().by[static_cast<int>(Largest ? Reduction::kMax : Reduction::kMin)][plugin::kDtypeOf<Compute<T>>];
    const Reducer::OfHalf* half = top.of(plugin::kDtypeOf<T>);
    const int64_t block = n <= 8192 ? 256 : 1024;
    int64_t winner = -1;
    for (int64_t at = 0; at < n; at += block) {
      alignas(16) char result[16];
      const char* from = x + at * int64_t{sizeof(T)};
      const int64_t count = std::min(block, n - at);
      half != nullptr ? half->row(from, count, result) : top.row(from, sizeof(T), count, result);
      const Compute<T> candidate = *reinterpret_cast<const Compute<T>*>(result);
      if (!beaten_by(candidate)) continue;
      *this = {candidate, first + at};
      winner = at;
    }
    if (winner < 0) return;
    position = first + winner + place_of(reinterpret_cast<const T*>(x) + winner, std::min(block, n - winner));
  }
};

bool contiguous(const bp_tensor* x) {
  int64_t expected = 1;
  for (int32_t d = x->dl.ndim - 1; d >= 0; --d) {
    if (x->dl.shape[d] != 1 && x->dl.strides[d] != expected) return false;
    expected *= x->dl.shape[d];
  }
  return true;
}

// The best of each of `lines` lines of n elements, in order to store(its position): in pieces of fixed size, so that a
// long line is shared among threads and can be interrupted. look(line, first, count) is the best of a piece.
template <class Found, class Look, class Store>
void in_pieces(const bp_frame* frame, int64_t lines, int64_t n, Look&& look, Store&& store) {
  const int64_t pieces = (n + kPiece - 1) / kPiece;
  std::vector<Found> found(static_cast<size_t>(lines * pieces));
  plugin::parallel_for(frame, 0, lines * pieces, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = i % pieces * kPiece;
      found[static_cast<size_t>(i)] = look(i / pieces, first, std::min(kPiece, n - first));
    }
  });
  for (size_t i = 0; i < found.size();) {
    Found best = found[i++];
    for (int64_t more = 1; more < pieces; ++more, ++i)
      if (best.beaten_by(found[i].value)) best = found[i];
    store(best.position);
  }
}

template <class T, bool Largest>
void over_all(const bp_frame* frame, const bp_tensor* x, int64_t* out) {
  const RowMajor elements(x);
  const auto look = [&](int64_t, int64_t first, int64_t n) {
    Best<T, Largest> best;
    elements.for_each(first, n, [&](const char* row, int64_t stride, int64_t length) {
      best.look(row, stride, first, length);
      first += length;
    });
    return best;
  };
  if (elements.count() <= kPiece)
    *out = look(0, 0, elements.count()).position;
  else
    in_pieces<Best<T, Largest>>(frame, 1, elements.count(), look, [&](int64_t position) { *out = position; });
}

// Floating elements in one piece of memory, not along the last axis. True where it did the work.
template <class T, bool Largest>
bool along_columns(const bp_frame* frame, const bp_tensor* x, const bp_tensor* out, int32_t axis) {
  if constexpr (!std::is_floating_point_v<Compute<T>>) {
    return false;
  } else {
    int64_t outer = 1, inner = 1;
    for (int32_t d = 0; d < axis; ++d) outer *= x->dl.shape[d];
    for (int32_t d = axis + 1; d < x->dl.ndim; ++d) inner *= x->dl.shape[d];
    const int64_t n = x->dl.shape[axis];
    if (inner < 8 || n > kArgRows || !contiguous(x) || !contiguous(out)) return false;
    const int64_t width = std::min(inner, kArgColumns), strips = (inner + width - 1) / width;
    const auto range = [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t first = i % strips * width;
        arg_loops<T>().columns(Largest, reinterpret_cast<const T*>(data_of(x)) + i / strips * n * inner + first, n,
                               inner, std::min(width, inner - first),
                               reinterpret_cast<int64_t*>(data_of(out)) + i / strips * inner + first);
      }
    };
    const int64_t grain = std::max<int64_t>(kCheapGrain / (n * width), 1);
    if (outer * strips <= grain)
      range(0, outer * strips);
    else
      plugin::parallel_for(frame, 0, outer * strips, grain, range);
    return true;
  }
}

template <class T, bool Largest>
void along_axis(const bp_frame* frame, const bp_tensor* x, const bp_tensor* out, int32_t axis) {
  if (along_columns<T, Largest>(frame, x, out, axis)) return;
  // The output's strides, with the axis that it may have lost.
  int64_t strides[kMaxRank];
  const bool kept = out->dl.ndim == x->dl.ndim;
  for (int32_t d = 0, own = 0; d < x->dl.ndim; ++d) {
    strides[d] = d == axis ? 0 : out->dl.strides[own];
    own += d != axis || kept;
  }
  const LaneOperand target{data_of(out), strides, sizeof(int64_t)};
  const int64_t n = x->dl.shape[axis], stride = x->dl.strides[axis] * kItemSize[x->dtype];
  const Lanes<2> lanes(x->dl.shape, x->dl.ndim, axis, {target, lane_operand(x)});
  if (n <= kPiece) {
    lanes.run(frame, 2 * n, [&](char* const* p) -> const char* {
      Best<T, Largest> best;
      best.look(p[1], stride, 0, n);
      *reinterpret_cast<int64_t*>(p[0]) = best.position;
      return nullptr;
    });
    return;
  }
  const auto with_lane = [&](int64_t lane, auto&& use) {
    lanes.for_each(lane, lane + 1, [&](char* const* p) -> const char* {
      use(p);
      return nullptr;
    });
  };
  const auto look = [&](int64_t lane, int64_t first, int64_t count) {
    Best<T, Largest> best;
    with_lane(lane, [&](char* const* p) { best.look(p[1] + first * stride, stride, first, count); });
    return best;
  };
  int64_t lane = 0;
  in_pieces<Best<T, Largest>>(frame, lanes.count(), n, look, [&](int64_t position) {
    with_lane(lane++, [&](char* const* p) { *reinterpret_cast<int64_t*>(p[0]) = position; });
  });
}

// Bools as bytes of 0 and 1: x itself, unless it holds others, as memory that was lent may.
class ByteBools {
 public:
  ByteBools(const bp_frame* frame, const bp_tensor* x) : tensor_(*x) {
    tensor_.dtype = BP_UINT8;
    if (contiguous(x) && !has_others(frame, reinterpret_cast<const uint8_t*>(data_of(x)), x->nbytes)) return;
    bytes_.resize(x->nbytes);
    int64_t step = 1;
    for (int32_t d = x->dl.ndim; d-- > 0; step *= x->dl.shape[d]) strides_[d] = step;
    copy_region(frame, BP_UINT8, x->dl.ndim, x->dl.shape, {data_of(x), x->dl.strides},
                {reinterpret_cast<char*>(bytes_.data()), strides_});
    plugin::parallel_for(frame, 0, static_cast<int64_t>(bytes_.size()), kPiece, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) bytes_[static_cast<size_t>(i)] = bytes_[static_cast<size_t>(i)] != 0;
    });
    tensor_.dl.data = bytes_.data();
    tensor_.dl.byte_offset = 0;
    tensor_.dl.strides = strides_;
    tensor_.flags |= BP_TENSOR_CONTIGUOUS;
  }
  ByteBools(const ByteBools&) = delete;

  const bp_tensor* get() const { return &tensor_; }

 private:
  static bool has_others(const bp_frame* frame, const uint8_t* bytes, uint64_t n) {
    std::atomic<bool> found{false};
    plugin::parallel_for(frame, 0, static_cast<int64_t>(n), kPiece, [&](int64_t begin, int64_t end) {
      uint8_t all = 0;
      for (int64_t i = begin; i < end; ++i) all |= bytes[i];
      if (all > 1) found.store(true, std::memory_order_relaxed);
    });
    return found.load(std::memory_order_relaxed);
  }

  bp_tensor tensor_;
  int64_t strides_[kMaxRank];
  std::vector<uint8_t> bytes_;
};

// Where the largest or smallest elements are. x has elements; bools are bytes of 0 and 1.
template <bool Largest>
void find_places(const bp_frame* frame, const bp_tensor* x, bool all, int32_t axis, const bp_tensor* places) {
  plugin::dispatch_dtype<kReal>(x->dtype, [&]<class T>() {
    if (all)
      over_all<T, Largest>(frame, x, reinterpret_cast<int64_t*>(data_of(places)));
    else
      along_axis<T, Largest>(frame, x, places, axis);
  });
}

// (Tensor x, Axis? axis, *, bool keepdims)
template <bool Largest>
bp_status BP_CALL arg_reduce(const bp_frame* frame, const bp_value* args, int32_t, bp_value* outs, int32_t) {
  return plugin::guard(frame, [&] {
    const bp_tensor *x = plugin::as_tensor(args[0]), *out = outs[0].u.t;
    if (out->nbytes == 0) return;
    BP_CHECK(x->nbytes != 0, VALUE, frame->op->name, ": found no elements to choose from");
    const bool all = args[1].tag == BP_TAG_ABSENT || x->dl.ndim == 0;
    std::optional<ByteBools> bools;
    if (x->dtype == BP_BOOL) x = bools.emplace(frame, x).get();
    find_places<Largest>(frame, x, all, all ? 0 : axis_of(args[1]), out);
  });
}

// Of contiguous tensors with few results, by one thread, for which setting up lanes would cost more than the loop.
template <class T>
bool take_few(const bp_tensor* x, int32_t axis, const bp_tensor* places, const bp_tensor* values) {
  constexpr int64_t kFew = 1024;
  const auto count = static_cast<int64_t>(places->nbytes / sizeof(int64_t));
  if (count > kFew || !(x->flags & places->flags & values->flags & BP_TENSOR_CONTIGUOUS)) return false;
  int64_t inner = 1;
  for (int32_t d = axis + 1; d < x->dl.ndim; ++d) inner *= x->dl.shape[d];
  const int64_t line = x->dl.ndim == 0 ? 1 : x->dl.shape[axis] * inner;
  const auto* from = reinterpret_cast<const T*>(data_of(x));
  const auto* place = reinterpret_cast<const int64_t*>(data_of(places));
  auto* to = reinterpret_cast<T*>(data_of(values));
  for (int64_t begin = 0; begin < count; begin += inner, from += line)
    for (int64_t i = 0; i < inner; ++i) to[begin + i] = from[place[begin + i] * inner + i];
  return true;
}

template <class T>
void take_places(const bp_frame* frame, const bp_tensor* x, int32_t axis, const bp_tensor* places,
                 const bp_tensor* values) {
  if (take_few<T>(x, axis, places, values)) return;
  const int32_t rank = x->dl.ndim;
  const int64_t stride = rank == 0 ? 0 : x->dl.strides[axis];
  const auto take = [&](char* const* p) -> const char* {
    *reinterpret_cast<T*>(p[0]) = reinterpret_cast<const T*>(p[2])[*reinterpret_cast<const int64_t*>(p[1]) * stride];
    return nullptr;
  };
  // The results' strides, with the axis that they may have lost.
  int64_t strides[2][kMaxRank];
  const bool kept = places->dl.ndim == rank;
  for (int32_t d = 0, own = 0; d < rank; ++d) {
    strides[0][d] = d == axis ? 0 : values->dl.strides[own];
    strides[1][d] = d == axis ? 0 : places->dl.strides[own];
    own += d != axis || kept;
  }
  const Lanes<3> lanes(x->dl.shape, rank, axis,
                       {LaneOperand{data_of(values), strides[0], sizeof(T)},
                        LaneOperand{data_of(places), strides[1], sizeof(int64_t)}, lane_operand(x)});
  lanes.run(frame, 4, take);
}

// (Tensor x, Axis axis, *, bool keepdims) -> (Tensor values, Tensor indices)
template <bool Largest>
bp_status BP_CALL with_indices(const bp_frame* frame, const bp_value* args, int32_t, bp_value* outs, int32_t) {
  return plugin::guard(frame, [&] {
    const bp_tensor *x = plugin::as_tensor(args[0]), *values = outs[0].u.t, *places = outs[1].u.t;
    if (places->nbytes == 0) return;
    BP_CHECK(x->nbytes != 0, VALUE, frame->op->name, ": found no elements to choose from");
    const bool all = x->dl.ndim == 0;
    // The shape is a formula, so the axis arrives as the caller gave it.
    const int32_t given = axis_of(args[1]), axis = all ? 0 : given < 0 ? given + x->dl.ndim : given;
    std::optional<ByteBools> bools;
    if (x->dtype == BP_BOOL) x = bools.emplace(frame, x).get();
    find_places<Largest>(frame, x, all, axis, places);
    plugin::dispatch_dtype<kReal>(x->dtype, [&]<class T>() { take_places<T>(frame, x, axis, places, values); });
  });
}

}  // namespace

const Family kArgReduce([](const Registrar& registrar) {
  registrar.kernel(
      BP_KERNEL("bp::argmax", "cpu", arg_reduce<true>, .dtypes = kReal | BP_MASK_BOOL, .flags = BP_KERNEL_STRIDED));
  registrar.kernel(
      BP_KERNEL("bp::argmin", "cpu", arg_reduce<false>, .dtypes = kReal | BP_MASK_BOOL, .flags = BP_KERNEL_STRIDED));
  registrar.kernel(BP_KERNEL("bp::max_with_indices", "cpu", with_indices<true>, .dtypes = kReal | BP_MASK_BOOL,
                             .flags = BP_KERNEL_STRIDED));
  registrar.kernel(BP_KERNEL("bp::min_with_indices", "cpu", with_indices<false>, .dtypes = kReal | BP_MASK_BOOL,
                             .flags = BP_KERNEL_STRIDED));
});

}  // namespace backplane::cpu

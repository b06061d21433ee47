// cumsum and cumprod: running sums and products along an axis, in 64 bits for integers and in double for floating
// types.
#include <algorithm>
#include <bit>
#include <complex>
#include <type_traits>
#include <vector>

#include "kernels/families.hpp"
#include "loops/cast_row.hpp"
#include "loops/lanes.hpp"

namespace backplane::cpu {
namespace {

using plugin::kItemSize;
constexpr int64_t kStrip = 256, kBlock = 16;
constexpr uint64_t kSign = uint64_t{1} << 63;

// The biased exponents from the least on, 2^bits of them.
struct Exponents {
  int64_t least;
  int bits;
};
// The start value leaves the first element unchanged, a negative zero too. A block of doubles with exponents in
// kEach after one in kBefore may be joined in any order: nothing on the way over- or underflows.
struct Sum {
  static constexpr double kIdentity = -0.0;
  template <class T>
  static T join(T a, T b) {
    return a + b;
  }
  static constexpr Exponents kEach = {-25, 11}, kBefore = kEach;
};
struct Product {
  static constexpr double kIdentity = 1;
  template <class T>
  static T join(T a, T b) {
    return a * b;
  }
  static constexpr Exponents kEach = {1023 - 32, 6}, kBefore = {1023 - 256, 9};
};

template <class T, class Join>
void scan_lane(std::vector<char>& lane, int64_t n) {
  T* values = reinterpret_cast<T*>(lane.data());
  for (int64_t i = 1; i < n; ++i) values[i] = Join::join(values[i - 1], values[i]);
}

// Floating types, contiguous. Half floats pass through blocks of float32: `read` gives n elements as they are computed
// in, in `block` where they have to be converted; `written` is where results go that `write` puts into their place.
template <class S, class C = plugin::Compute<S>>
const C* read(const S* x, C* block, int64_t n) {
  if constexpr (std::is_same_v<S, C>) {
    return x;
  } else {
    cast_row(plugin::kDtypeOf<S>, reinterpret_cast<const char*>(x), sizeof(S), plugin::kDtypeOf<C>,
             reinterpret_cast<char*>(block), sizeof(C), n);
    return block;
  }
}
template <class S, class C = plugin::Compute<S>>
C* written(S* out, C* block) {
  if constexpr (std::is_same_v<S, C>)
    return out;
  else
    return block;
}
template <class S, class C = plugin::Compute<S>>
void write(const C* results, S* out, int64_t n) {
  if constexpr (!std::is_same_v<S, C>)
    cast_row(plugin::kDtypeOf<C>, reinterpret_cast<const char*>(results), sizeof(C), plugin::kDtypeOf<S>,
             reinterpret_cast<char*>(out), sizeof(S), n);
}

template <class T, class Join>
double join_in_turn(double before, const T* x, T* out, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    before = Join::join(before, static_cast<double>(x[i]));
    out[i] = static_cast<T>(before);
  }
  return before;
}
// Along the last axis four at a time, whose chains are half as long. Takes and returns what came before.
template <class T, class Join>
double join_fours(double before, const T* x, T* out, int64_t n) {
  int64_t i = 0;
  for (; i + 4 <= n; i += 4) {
    const double a = x[i], b = x[i + 1], c = x[i + 2], d = x[i + 3];
    const double two = Join::join(a, b), three = Join::join(two, c), four = Join::join(two, Join::join(c, d));
    out[i] = static_cast<T>(Join::join(before, a));
    out[i + 1] = static_cast<T>(Join::join(before, two));
    out[i + 2] = static_cast<T>(Join::join(before, three));
    before = Join::join(before, four);
    out[i + 3] = static_cast<T>(before);
  }
  return join_in_turn<T, Join>(before, x + i, out + i, n - i);
}
// An exponent outside the range leaves a bit above it in its distance from the least.
inline bool within(const double* x, int64_t n, Exponents range) {
  uint64_t offsets = 0;
  for (int64_t i = 0; i < n; ++i)
    offsets |= (std::bit_cast<uint64_t>(x[i]) & ~kSign) - (static_cast<uint64_t>(range.least) << 52);
  return offsets >> (52 + range.bits) == 0;
}
// float64 in blocks, each in turn where its values might leave the range; four float32 never leave that of double.
template <class T, class Join>
double join_neighbours(double before, const T* x, T* out, int64_t n) {
  if constexpr (std::is_same_v<T, double>) {
    int64_t i = 0;
    for (; i + kBlock <= n; i += kBlock) {
      const bool safe = within(x + i, kBlock, Join::kEach) && within(&before, 1, Join::kBefore);
      before = safe ? join_fours<T, Join>(before, x + i, out + i, kBlock)
                    : join_in_turn<T, Join>(before, x + i, out + i, kBlock);
    }
    return join_in_turn<T, Join>(before, x + i, out + i, n - i);
  } else {
    return join_fours<T, Join>(before, x, out, n);
  }
}
template <class S, class Join>
void scan_neighbours(const S* x, S* out, int64_t n) {
  using C = plugin::Compute<S>;
  const int64_t most = std::is_same_v<S, C> ? n : kStrip;
  C block[kStrip];
  double before = Join::kIdentity;
  for (int64_t at = 0; at < n; at += most) {
    const int64_t count = std::min(most, n - at);
    C* results = written(out + at, block);
    before = join_neighbours<C, Join>(before, read(x + at, block, count), results, count);
    write(results, out + at, count);
  }
}
// Along others row by row, over strips of lanes side by side.
template <class S, class Join>
void scan_strip(const S* x, S* out, int64_t n, int64_t stride, int64_t width) {
  using C = plugin::Compute<S>;
  double sums[kStrip];
  C block[kStrip];
  std::fill_n(sums, width, Join::kIdentity);
  for (int64_t i = 0; i < n; ++i) {
    const C* row = read(x + i * stride, block, width);
    C* results = written(out + i * stride, block);
    for (int64_t j = 0; j < width; ++j) {
      sums[j] = Join::join(sums[j], static_cast<double>(row[j]));
      results[j] = static_cast<C>(sums[j]);
    }
    write(results, out + i * stride, width);
  }
}
template <class T, class Join>
void scan_floating(const bp_frame* frame, const bp_tensor* x, const bp_tensor* out, int32_t axis) {
  int64_t outer = 1, inner = 1;
  for (int32_t d = 0; d < axis; ++d) outer *= x->dl.shape[d];
  for (int32_t d = axis + 1; d < x->dl.ndim; ++d) inner *= x->dl.shape[d];
  const T* from = reinterpret_cast<const T*>(data_of(x));
  T* to = reinterpret_cast<T*>(data_of(out));
  const int64_t n = x->dl.shape[axis], width = std::min(inner, kStrip), strips = (inner + width - 1) / width;
  const auto range = [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = i % strips * width, at = i / strips * n * inner + first;
      if (inner == 1)
        scan_neighbours<T, Join>(from + at, to + at, n);
      else
        scan_strip<T, Join>(from + at, to + at, n, inner, std::min(width, inner - first));
    }
  };
  const int64_t grain = std::max<int64_t>(kCheapGrain / (2 * n * width), 1);
  if (outer * strips <= grain) return range(0, outer * strips);
  plugin::parallel_for(frame, 0, outer * strips, grain, range);
}

// (Tensor x, Axis axis, *, Dtype? dtype)
template <class Join>
bp_status BP_CALL scan(const bp_frame* frame, const bp_value* args, int32_t, bp_value* outs, int32_t) {
  return plugin::guard(frame, [&] {
    const bp_tensor *x = plugin::as_tensor(args[0]), *out = outs[0].u.t;
    const int32_t rank = x->dl.ndim, axis = axis_of(args[1]);
    if (out->nbytes == 0) return;
    if (rank > 0 && x->dtype == out->dtype && (BP_DTYPE_BIT(x->dtype) & BP_MASK_FLOATING) != 0 &&
        (x->flags & out->flags & BP_TENSOR_CONTIGUOUS) != 0)
      return plugin::dispatch_dtype<BP_MASK_FLOATING>(x->dtype,
                                                      [&]<class T>() { scan_floating<T, Join>(frame, x, out, axis); });
    const bp_dtype_mask kinds = BP_DTYPE_BIT(x->dtype) | BP_DTYPE_BIT(out->dtype);
    const bp_dtype sum = (kinds & BP_MASK_COMPLEX) != 0    ? BP_COMPLEX128
                         : (kinds & BP_MASK_FLOATING) != 0 ? BP_FLOAT64
                                                           : BP_UINT64;
    const int64_t n = rank == 0 ? 1 : x->dl.shape[axis], item = kItemSize[sum];
    const int64_t from = rank == 0 ? 0 : x->dl.strides[axis] * kItemSize[x->dtype];
    const int64_t to = rank == 0 ? 0 : out->dl.strides[axis] * kItemSize[out->dtype];
    const Lanes<2> lanes(x->dl.shape, rank, axis, {lane_operand(out), lane_operand(x)});
    lanes.run(frame, 4 * n, [&](char* const* p) -> const char* {
      std::vector<char> lane(static_cast<size_t>(n * item));
      cast_row(x->dtype, p[1], from, sum, lane.data(), item, n);
      if (sum == BP_UINT64)
        scan_lane<uint64_t, Join>(lane, n);
      else if (sum == BP_FLOAT64)
        scan_lane<double, Join>(lane, n);
      else
        scan_lane<std::complex<double>, Join>(lane, n);
      cast_row(sum, lane.data(), item, out->dtype, p[0], to, n);
      return nullptr;
    });
  });
}

}  // namespace

const Family kScan([](const Registrar& registrar) {
  registrar.kernel(BP_KERNEL("bp::cumsum", "cpu", scan<Sum>, .flags = BP_KERNEL_STRIDED));
  registrar.kernel(BP_KERNEL("bp::cumprod", "cpu", scan<Product>, .flags = BP_KERNEL_STRIDED));
});

}  // namespace backplane::cpu

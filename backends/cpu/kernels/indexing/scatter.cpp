// scatter_max, scatter_min, scatter_prod: values combined into a tensor at positions along one axis.
#include <vector>

#include "kernels/families.hpp"
#include "kernels/indexing/along_axis.hpp"

namespace backplane::cpu {
namespace {

using plugin::Compute;
using plugin::kItemSize;

struct Larger {
  template <class T>
  static T call(T a, T b) {
    return (a > b) | (a != a) ? a : b;  // a NaN stays; without a branch, which data of no order would mispredict
  }
};
struct Smaller {
  template <class T>
  static T call(T a, T b) {
    return (a < b) | (a != a) ? a : b;
  }
};
struct Product {
  template <class T>
  static T call(T a, T b) {
    if constexpr (std::is_integral_v<T>)
      return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
    else
      return a * b;
  }
};

// Are the elements of each slice of `t` along axis 0 one after the other, and the slices of a result of x's sizes
// whole?
bool has_rows(const bp_tensor* t, const bp_tensor* out) {
  if (t->dl.ndim != out->dl.ndim) return false;
  int64_t step = 1;
  for (int32_t d = t->dl.ndim - 1; d > 0; --d) {
    if (t->dl.shape[d] != out->dl.shape[d] || t->dl.strides[d] != step) return false;
    step *= t->dl.shape[d];
  }
  return true;
}

// A value and its target are never the same memory.
template <class Combine, class T>
void combine_row(T* target, const T* value, int64_t n) {
#pragma GCC ivdep
  for (int64_t k = 0; k < n; ++k)
    target[k] = T(Combine::template call<Compute<T>>(Compute<T>(target[k]), Compute<T>(value[k])));
}

// Along axis 0 by one index for each slice, as segments have it: whole rows are combined, each thread some columns.
template <class Combine, class T, class V>
bool scatter_rows(const bp_frame* frame, const Put& put) {
  const auto& [indices, values, out, axis] = put;
  if (!has_rows(out, out) || !has_rows(values, out) || values->dl.shape[0] != indices->dl.shape[0]) return false;
  int64_t row = 1;
  for (int32_t d = 1; d < out->dl.ndim; ++d) {
    if (indices->dl.shape[d] != 1) return false;
    row *= out->dl.shape[d];
  }
  const int64_t n = indices->dl.shape[0], size = out->dl.shape[0];
  std::vector<int64_t> positions(static_cast<size_t>(n));
  for_each_index(frame, indices->dtype, data_of(indices), indices->dl.strides[0] * kItemSize[indices->dtype], n, size,
                 [&](int64_t position, int64_t place) { positions[static_cast<size_t>(place)] = position; });
  const auto columns = [&](int64_t begin, int64_t end) {
    for (int64_t i = 0; i < n; ++i) {
      T* target = reinterpret_cast<T*>(data_of(out)) + positions[static_cast<size_t>(i)] * out->dl.strides[0];
      const V* value = reinterpret_cast<const V*>(data_of(values)) + i * values->dl.strides[0];
      for (int64_t first = begin; first < end; first += kIndexBlock) {
        const int64_t count = std::min(kIndexBlock, end - first);
        const ValueBlock<T, V> some(value + first, 1, count);
        combine_row<Combine>(target + first, some.at, count);
      }
    }
  };
  plugin::parallel_for(frame, 0, row, std::max<int64_t>(kCheapGrain / std::max<int64_t>(n, 1), 256), columns);
  return true;
}

// (Tensor x, Tensor indices, Tensor values, *, Axis axis)
template <class Combine, bp_dtype_mask kAccepted>
bp_status BP_CALL scatter(const bp_frame* frame, const bp_value* args, int32_t, bp_value* outs, int32_t) {
  return plugin::guard(frame, [&] {
    const bp_tensor* out = outs[0].u.t;
    const auto combine = []<class T>(T& target, T value) {
      target = T(Combine::template call<Compute<T>>(Compute<T>(target), Compute<T>(value)));
    };
    const auto body = [&]<class T, class V>(const Put& put) {
      if (put.axis == 0 && put.out->dl.ndim > 1 && scatter_rows<Combine, T, V>(frame, put)) return;
      put_lanes<T, V>(frame, put, combine);
    };
    if constexpr (std::is_same_v<Combine, Product>)
      accumulate_into<kAccepted>(frame, args, out, body, combine);
    else
      put_into<kAccepted>(frame, args, out, PutInPlace(frame, args, out).put, body);
  });
}

constexpr bp_dtype_mask kReal = BP_MASK_INTEGER | BP_MASK_FLOATING;
constexpr bp_dtype_mask kNumeric = kReal | BP_MASK_COMPLEX;
constexpr uint32_t kFlags = BP_KERNEL_STRIDED | BP_KERNEL_INPLACE;

}  // namespace

const Family kScatter([](const Registrar& registrar) {
  registrar.kernel(BP_KERNEL("bp::scatter_max", "cpu", (scatter<Larger, kReal>), .dtypes = kReal, .flags = kFlags));
  registrar.kernel(BP_KERNEL("bp::scatter_min", "cpu", (scatter<Smaller, kReal>), .dtypes = kReal, .flags = kFlags));
  registrar.kernel(
      BP_KERNEL("bp::scatter_prod", "cpu", (scatter<Product, kNumeric>), .dtypes = kNumeric, .flags = kFlags));
});

}  // namespace backplane::cpu

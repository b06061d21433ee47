// full and iota: one element, or start + i * step, written over an output of any strides.
#include <algorithm>
#include <complex>
#include <cstring>
#include <utility>

#include "kernels/families.hpp"
#include "loops/cast_row.hpp"
#include "loops/elementwise.hpp"
#include "loops/strided.hpp"
#include "simd/half_rounding.hpp"

namespace backplane::cpu {
namespace {

using plugin::kItemSize;

// Repeats one element: writes it once, then doubles the written part, up to a block that caches hold.
void repeat(bp_dtype dtype, const char* element, char* out, int64_t n) {
  constexpr int64_t kBlock = 512;
  const int64_t item = kItemSize[dtype];
  if (n > 0) std::memcpy(out, element, static_cast<size_t>(item));
  for (int64_t done = 1; done < n;) {
    const int64_t more = std::min({done, n - done, kBlock});
    std::memcpy(out + done * item, out, static_cast<size_t>(more * item));
    done += more;
  }
}

// full(Shape shape, Scalar fill_value, *, Dtype? dtype, Device? device)
bp_status BP_CALL full(const bp_frame* frame, const bp_value* args, int32_t, bp_value* outs, int32_t) {
  const bp_tensor* out = outs[0].u.t;
  const bp_dtype dtype = out->dtype;
  const int64_t item = kItemSize[dtype];
  const int64_t count = static_cast<int64_t>(out->nbytes) / item;
  alignas(16) char element[16];
  store_number(dtype, args[1], element);
  char* data = data_of(out);
  if ((out->flags & BP_TENSOR_CONTIGUOUS) == 0) {
    for_each_strided_row(
        *out, [&](char* row, int64_t stride, int64_t n) { cast_row(dtype, element, 0, dtype, row, stride, n); });
    return BP_OK;
  }
  if (count <= kCheapGrain) {
    repeat(dtype, element, data, count);
    return BP_OK;
  }
  return plugin::guard(frame, [&] {
    plugin::parallel_for(frame, 0, count, kCheapGrain,
                         [&](int64_t begin, int64_t end) { repeat(dtype, element, data + begin * item, end - begin); });
  });
}

// Writes value(i) for each i, in order; elements that lie side by side are vectors to the compiler.
template <class T, class Value>
void write_each(char* out, int64_t stride, int64_t n, Value value) {
  if (stride == static_cast<int64_t>(sizeof(T))) {
    for (int64_t i = 0; i < n; ++i) reinterpret_cast<T*>(out)[i] = value(i);
  } else {
    for (int64_t i = 0; i < n; ++i) *reinterpret_cast<T*>(out + i * stride) = value(i);
  }
}

// Each value is rounded once, however long the range: integers in 64 bits, which wrap, floating types in double.
template <class T>
void fill_iota(const bp_value& start, const bp_value& step, char* out, int64_t stride, int64_t n) {
  if constexpr (std::is_integral_v<T>) {
    const auto first = static_cast<uint64_t>(plugin::as_int(start)), by = static_cast<uint64_t>(plugin::as_int(step));
    write_each<T>(out, stride, n,
                  [at = first, by](int64_t) mutable { return static_cast<T>(std::exchange(at, at + by)); });
  } else if constexpr (plugin::kIsComplex<T>) {
    const std::complex<double> first = plugin::as_complex(start), by = plugin::as_complex(step);
    write_each<T>(out, stride, n, [=](int64_t i) { return static_cast<T>(first + static_cast<double>(i) * by); });
  } else {
    const double first = plugin::as_double(start), by = plugin::as_double(step);
    write_each<T>(out, stride, n, [=](int64_t i) {
      const double value = first + static_cast<double>(i) * by;
      if constexpr (plugin::kIsHalf<T>)
        return T(before_half<T>(value));
      else
        return static_cast<T>(value);
    });
  }
}

// iota(Size n, *, Scalar start, Scalar step, Dtype? dtype, Device? device)
bp_status BP_CALL iota(const bp_frame* frame, const bp_value* args, int32_t, bp_value* outs, int32_t) {
  return plugin::guard(frame, [&] {
    const bp_tensor* out = outs[0].u.t;
    const int64_t stride = out->dl.strides[0] * kItemSize[out->dtype];
    const bool fractional = args[1].tag == BP_TAG_FLOAT || args[2].tag == BP_TAG_FLOAT;
    plugin::dispatch_dtype<BP_MASK_ANY & ~BP_MASK_BOOL>(out->dtype, [&]<class T>() {
      if constexpr (std::is_integral_v<T>) {
        if (fractional) {  // an integer dtype that was asked for: each value is truncated
          const double start = plugin::as_double(args[1]), step = plugin::as_double(args[2]);
          for (int64_t i = 0; i < out->dl.shape[0]; ++i) {
            const double value = start + static_cast<double>(i) * step;
            cast_row(BP_FLOAT64, reinterpret_cast<const char*>(&value), 0, out->dtype, data_of(out) + i * stride, 0, 1);
          }
          return;
        }
      }
      fill_iota<T>(args[1], args[2], data_of(out), stride, out->dl.shape[0]);
    });
  });
}

}  // namespace

const Family kFill([](const Registrar& registrar) {
  registrar.kernel(BP_KERNEL("bp::full", "cpu", full, .flags = BP_KERNEL_STRIDED));
  registrar.kernel(
      BP_KERNEL("bp::iota", "cpu", iota, .dtypes = BP_MASK_ANY & ~BP_MASK_BOOL, .flags = BP_KERNEL_STRIDED));
});

}  // namespace backplane::cpu

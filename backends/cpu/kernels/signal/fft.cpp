// Discrete Fourier transforms by pocketfft, one axis after another, on the host's threads.
//
// A pass over an axis is cut along another one; pocketfft transforms several lines of a piece in one vector, whose
// length depends on the target: therefore it is compiled once per target, each time under a name of
// its own. Strides are taken as they are, so nothing is copied. Plans are kept in pocketfft's cache, which any thread
// may use.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/signal/fft.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

// What pocketfft includes, outside the region of a target.
#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "kernels/families.hpp"
#include "loops/elementwise.hpp"
#include "loops/lanes.hpp"
#include "runtime/scratch.hpp"
#include "simd/chosen_table.hpp"

#ifndef BACKPLANE_CPU_FFT
#define BACKPLANE_CPU_FFT
#define POCKETFFT_NO_MULTITHREADING
#define POCKETFFT_CACHE_SIZE 16
namespace backplane::cpu {
using FftKernel = void (*)(const bp_frame* frame, const bp_value* args, const bp_tensor* out);
struct FftTable {
  FftKernel c2c[2], r2c[2], c2r[2];  // of float, of double
};
}  // namespace backplane::cpu
#endif

HWY_BEFORE_NAMESPACE();
#undef POCKETFFT_HDRONLY_H
#define pocketfft HWY_CONCAT(pocketfft_, HWY_NAMESPACE)
// pocketfft asks the compiler's macros for the length of a vector. g++ 12 reads the whole file before it obeys the
// pragma that sets the target, so the macro is set here for the header alone.
#if HWY_TARGET == HWY_AVX2 && !defined(__AVX__)
#define __AVX__ 1
#include <pocketfft_hdronly.h>
#undef __AVX__
#else
#include <pocketfft_hdronly.h>
#endif

namespace backplane::cpu {
namespace HWY_NAMESPACE {

using plugin::kItemSize;
using pocketfft::shape_t;
using pocketfft::stride_t;

// One operand: where its elements lie, in bytes.
struct Lines {
  char* data;
  stride_t strides;

  explicit Lines(const bp_tensor* t) : data(data_of(t)) {
    for (int32_t d = 0; d < t->dl.ndim; ++d) strides.push_back(t->dl.strides[d] * kItemSize[t->dtype]);
  }
  Lines(char* memory, const shape_t& shape, int64_t item) : data(memory), strides(shape.size()) {
    for (size_t d = shape.size(); d-- > 0; item *= static_cast<int64_t>(shape[d])) strides[d] = item;
  }
  char* from(size_t axis, int64_t position) const { return data + position * strides[axis]; }
};

shape_t shape_of(const bp_tensor* t) { return {t->dl.shape, t->dl.shape + t->dl.ndim}; }

// body(shape of a piece, its input, its output) over pieces of all lines along `axis`. `shape`: of the longer operand.
template <class Body>
void over_lines(const bp_frame* frame, const shape_t& shape, size_t axis, const Lines& in, const Lines& out,
                Body&& body) {
  constexpr int64_t kPieceWork = 16384;  // elements of a piece: some 100 us
  size_t cut = axis;
  int64_t total = 1;
  for (size_t d = 0; d < shape.size(); ++d) {
    total *= static_cast<int64_t>(shape[d]);
    if (d != axis && (cut == axis || shape[d] > shape[cut])) cut = d;
  }
  if (total == 0) return;
  if (cut == axis) return body(shape, in.data, out.data);
  const auto count = static_cast<int64_t>(shape[cut]);
  const int64_t grain = std::max<int64_t>(kPieceWork / std::max<int64_t>(total / count, 1), 1);
  const auto piece = [&](int64_t begin, int64_t end) {
    shape_t part = shape;
    part[cut] = static_cast<size_t>(end - begin);
    body(part, in.from(cut, begin), out.from(cut, begin));
  };
  if (count <= grain) return piece(0, count);
  plugin::parallel_for(frame, 0, count, grain, piece);
}

// The arguments that the three ops share. `shape`: of the tensor that holds all elements of each line.
struct Transform {
  const bp_frame* frame;
  shape_t shape;
  shape_t axes;
  double scale = 1;

  Transform(const bp_frame* f, const bp_tensor* whole, const bp_value& list, const bp_value& norm, bool forward)
      : frame(f), shape(shape_of(whole)) {
    const std::string_view word(norm.u.s, norm.count);
    BP_CHECK(word == "backward" || word == "ortho" || word == "forward", VALUE, f->op->name, ": argument norm: found '",
             word, "', expected backward, ortho or forward");
    BP_CHECK(list.count > 0, VALUE, f->op->name, ": argument axes: found no axis, expected one or more");
    double n = 1;
    for (uint32_t i = 0; i < list.count; ++i) {
      const auto axis = static_cast<size_t>(list.u.ints[i]);
      BP_CHECK(axis < shape.size(), INDEX, f->op->name, ": argument axes: found ", list.u.ints[i],
               " for a tensor without axes");
      BP_CHECK(shape[axis] > 0, VALUE, f->op->name, ": axis ", axis, " has no elements; a transform needs one or more");
      for (const size_t other : axes)
        BP_CHECK(other != axis, VALUE, f->op->name, ": argument axes: found axis ", axis, " twice");
      axes.push_back(axis);
      n *= static_cast<double>(shape[axis]);
    }
    scale = word == "ortho" ? 1 / std::sqrt(n) : (word == "forward") == forward ? 1 / n : 1;
  }

  // Complex to complex over axes[first..last) from `in` to `out`, each of `sizes`; in place from the second axis on.
  template <class T>
  void complex_axes(const shape_t& sizes, Lines in, const Lines& out, size_t last, bool forward, double factor) const {
    using C = std::complex<T>;
    for (size_t i = 0; i < last; ++i) {
      const size_t axis = axes[i];
      const T by = static_cast<T>(i == 0 ? factor : 1);
      over_lines(frame, sizes, axis, in, out, [&](const shape_t& part, const char* from, char* to) {
        pocketfft::c2c(part, in.strides, out.strides, {axis}, forward, reinterpret_cast<const C*>(from),
                       reinterpret_cast<C*>(to), by);
      });
      in = out;
    }
  }
};

// fft_c2c(Tensor x, Axes axes, *, str norm, bool forward)
struct ComplexToComplex {
  template <class T>
  static void run(const bp_frame* frame, const bp_value* args, const bp_tensor* out) {
    const bp_tensor* x = plugin::as_tensor(args[0]);
    const bool forward = plugin::as_bool(args[3]);
    const Transform t(frame, x, args[1], args[2], forward);
    t.complex_axes<T>(t.shape, Lines(x), Lines(out), t.axes.size(), forward, t.scale);
  }
};

// fft_r2c(Tensor x, Axes axes, *, str norm)
struct RealToComplex {
  template <class T>
  static void run(const bp_frame* frame, const bp_value* args, const bp_tensor* out) {
    const bp_tensor* x = plugin::as_tensor(args[0]);
    const Transform t(frame, x, args[1], args[2], true);
    const Lines in(x), to(out);
    const size_t axis = t.axes.back();
    over_lines(frame, t.shape, axis, in, to, [&](const shape_t& part, const char* from, char* at) {
      pocketfft::r2c(part, in.strides, to.strides, axis, true, reinterpret_cast<const T*>(from),
                     reinterpret_cast<std::complex<T>*>(at), static_cast<T>(t.scale));
    });
    t.complex_axes<T>(shape_of(out), to, to, t.axes.size() - 1, true, 1);
  }
};

// fft_c2r(Tensor x, Axes axes, Size n, *, str norm)
struct ComplexToReal {
  template <class T>
  static void run(const bp_frame* frame, const bp_value* args, const bp_tensor* out) {
    const bp_tensor* x = plugin::as_tensor(args[0]);
    const Transform t(frame, out, args[1], args[3], false);
    const size_t axis = t.axes.back(), half = t.shape[axis] / 2 + 1;
    const shape_t sizes = shape_of(x);
    BP_CHECK(sizes[axis] == half, SHAPE, frame->op->name, ": found ", sizes[axis], " elements along axis ", axis,
             ", expected ", half, " for n = ", t.shape[axis]);
    int64_t count = 1;
    for (const size_t size : sizes) count *= static_cast<int64_t>(size);
    const Lines in(x), to(out);
    const auto last_pass = [&](const Lines& source) {
      over_lines(frame, t.shape, axis, source, to, [&](const shape_t& part, const char* from, char* at) {
        pocketfft::c2r(part, source.strides, to.strides, axis, false, reinterpret_cast<const std::complex<T>*>(from),
                       reinterpret_cast<T*>(at), static_cast<T>(t.scale));
      });
    };
    if (t.axes.size() == 1) return last_pass(in);
    const Scratch<std::complex<T>> memory(count);
    const Lines between(reinterpret_cast<char*>(memory.get()), sizes, sizeof(std::complex<T>));
    t.complex_axes<T>(sizes, in, between, t.axes.size() - 1, false, 1);
    last_pass(between);
  }
};

template <class Op>
void fill(FftKernel (&of)[2]) {
  of[0] = Op::template run<float>;
  of[1] = Op::template run<double>;
}
void fill_fft(FftTable& t) {
  fill<ComplexToComplex>(t.c2c);
  fill<RealToComplex>(t.r2c);
  fill<ComplexToReal>(t.c2r);
}

}  // namespace HWY_NAMESPACE
}  // namespace backplane::cpu
#undef pocketfft
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace backplane::cpu {
HWY_EXPORT(fill_fft);
namespace {

const FftTable& table() {
  return chosen_table<FftTable>([](FftTable& t) { HWY_DYNAMIC_DISPATCH(fill_fft)(t); });
}

template <FftKernel (FftTable::*kernels)[2]>
bp_status BP_CALL kernel(const bp_frame* frame, const bp_value* args, int32_t, bp_value* outs, int32_t) {
  return plugin::guard(frame, [&] {
    const bool wide = frame->compute == BP_FLOAT64 || frame->compute == BP_COMPLEX128;
    (table().*kernels)[wide](frame, args, outs[0].u.t);
  });
}

}  // namespace

const Family kFft([](const Registrar& registrar) {
  table();
  constexpr bp_dtype_mask kReal = BP_DTYPE_BIT(BP_FLOAT32) | BP_DTYPE_BIT(BP_FLOAT64);
  constexpr auto kComplex = BP_MASK_COMPLEX;
  constexpr auto kFlags = BP_KERNEL_STRIDED;
  registrar.kernel(BP_KERNEL("bp::fft_c2c", "cpu", kernel<&FftTable::c2c>, .dtypes = kComplex, .flags = kFlags));
  registrar.kernel(BP_KERNEL("bp::fft_r2c", "cpu", kernel<&FftTable::r2c>, .dtypes = kReal, .flags = kFlags));
  registrar.kernel(BP_KERNEL("bp::fft_c2r", "cpu", kernel<&FftTable::c2r>, .dtypes = kComplex, .flags = kFlags));
});

}  // namespace backplane::cpu
#endif

// Sums over rows and strips for norms and variances, and the passes that apply them.
//
// S is the type in memory, C the one computed in. Tables are filled once and constant afterwards; the loops are pure.
#pragma once

#include <cstdint>

#include "backplane/plugin.hpp"

namespace backplane::cpu {

// Of the distances x[i] - shift.
struct Distances {
  double sum, squares;
  Distances& operator+=(const Distances& more) {
    sum += more.sum;
    squares += more.squares;
    return *this;
  }
};

inline constexpr int64_t kMomentStrip = 512;  // lanes of a strip at most

template <class S>
struct MomentLoops {
  using C = plugin::Compute<S>;
  // Blocks in the computing type, their results added in double.
  Distances (*distances)(const S* x, C shift, int64_t n);
  // The same for `width` lanes side by side, whose elements are `stride` apart: added to sums and squares.
  void (*distances_strip)(const S* x, const C* shifts, int64_t n, int64_t stride, int64_t width, double* sums,
                          double* squares);
  // out[i] = (x[i] - shift) * scale * weight[i] + bias[i]; weight and bias may be NULL, out may be x. They lie as
  // widen_in_pairs writes them.
  void (*normalize)(const S* x, C shift, C scale, const C* weight, const C* bias, S* out, int64_t n);
  // out[i] = (x[i] - shift) * scale + offset; out may be x.
  void (*normalize_channel)(const S* x, C shift, C scale, C offset, S* out, int64_t n);
  // out[i] = (x[i] - shifts[i]) * scales[i] + offsets[i]; out may be x.
  void (*normalize_lanes)(const S* x, const C* shifts, const C* scales, const C* offsets, S* out, int64_t n);
  // A row of n elements in the order in which `normalize` computes: bfloat16 by pairs of even and odd elements.
  void (*widen_in_pairs)(const S* x, C* out, int64_t n);
};

// For float16, bfloat16, float and double.
template <class S>
const MomentLoops<S>& moment_loops();
extern template const MomentLoops<plugin::float16>& moment_loops<plugin::float16>();
extern template const MomentLoops<plugin::bfloat16>& moment_loops<plugin::bfloat16>();
extern template const MomentLoops<float>& moment_loops<float>();
extern template const MomentLoops<double>& moment_loops<double>();

}  // namespace backplane::cpu

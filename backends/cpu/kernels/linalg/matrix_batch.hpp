// Stacks of matrices for LAPACK: sizes and their checks, loops over the stack, the names of matrices in errors.
//
// A contiguous matrix is its transpose in LAPACK's column-major order; kernels choose routines so that most need no
// other copy than the one that LAPACK overwrites.
#pragma once

#include <algorithm>
#include <climits>
#include <string>

#include "kernels/linalg/lapack.hpp"
#include "loops/elementwise.hpp"
#include "runtime/scratch.hpp"

namespace backplane::cpu {

inline constexpr bp_dtype_mask kLapackTypes = BP_DTYPE_BIT(BP_FLOAT32) | BP_DTYPE_BIT(BP_FLOAT64) | BP_MASK_COMPLEX;

struct MatrixBatch {
  const bp_tensor* tensor;
  int64_t count = 1, rows, cols;  // `count` matrices of rows x cols

  MatrixBatch(const bp_frame* frame, const bp_tensor* x) : tensor(x) {
    const int32_t rank = x->dl.ndim;
    BP_CHECK(rank >= 2, SHAPE, frame->op->name, ": found ", rank, " axes, expected a matrix or a stack of matrices");
    rows = x->dl.shape[rank - 2];
    cols = x->dl.shape[rank - 1];
    BP_CHECK(std::max(rows, cols) <= INT_MAX / 64, SHAPE, frame->op->name, ": found ", rows, " x ", cols,
             " matrices, which are larger than LAPACK takes");
    for (int32_t d = 0; d < rank - 2; ++d) count *= x->dl.shape[d];
  }
  void require_square(const bp_frame* frame) const {
    BP_CHECK(rows == cols, SHAPE, frame->op->name, ": found ", rows, " x ", cols, " matrices, expected square ones");
  }
  int64_t size() const { return rows * cols; }
  template <class T>
  T* at(int64_t i) const {
    return reinterpret_cast<T*>(data_of(tensor)) + i * size();
  }
};

// "the matrix", or "matrix [1, 3] of the stack".
inline std::string name_of_matrix(const bp_tensor* x, int64_t i) {
  std::string position;
  for (int32_t d = x->dl.ndim - 3; d >= 0; --d) {
    position = std::to_string(i % x->dl.shape[d]) + (position.empty() ? "" : ", ") + position;
    i /= x->dl.shape[d];
  }
  return position.empty() ? "the matrix" : "matrix [" + position + "] of the stack";
}
inline void require(const bp_frame* frame, bool ok, const MatrixBatch& x, int64_t i, const char* what) {
  BP_CHECK(ok, DATA, frame->op->name, ": ", name_of_matrix(x.tensor, i), " ", what);
}

// body(begin, end) over matrices; `work`: floating-point operations of one.
template <class Body>
void for_matrices(const bp_frame* frame, int64_t count, int64_t work, Body&& body) {
  constexpr int64_t kPieceWork = 100000;  // some 50 us in small matrices, where LAPACK's calls dominate
  const int64_t grain = std::max<int64_t>(kPieceWork / std::max<int64_t>(work, 1), 1);
  if (count <= grain) {
    if (count > 0) body(int64_t{0}, count);
    return;
  }
  plugin::parallel_for(frame, 0, count, grain, body);
}

// LAPACK loops forever, or stops the process, on some matrices with NaN.
template <class T>
bool all_finite(const T* x, int64_t n) {
  using R = lapack::Real<T>;
  const R* parts = reinterpret_cast<const R*>(x);
  R sum = 0;
  for (int64_t i = 0; i < n * static_cast<int64_t>(sizeof(T) / sizeof(R)); ++i) sum += parts[i] * 0;
  return sum == 0;
}

template <class T>
T conjugate(T x) {
  if constexpr (plugin::kIsComplex<T>)
    return std::conj(x);
  else
    return x;
}

// out[j, i] = f(x[i, j]) of square matrices, in blocks that stay in L1.
template <class T, class F>
void transpose_square(const T* x, T* out, int64_t n, F&& f) {
  constexpr int64_t kBlock = 16;
  for (int64_t row = 0; row < n; row += kBlock)
    for (int64_t col = 0; col < n; col += kBlock)
      for (int64_t i = row; i < std::min(row + kBlock, n); ++i)
        for (int64_t j = col; j < std::min(col + kBlock, n); ++j) out[j * n + i] = f(x[i * n + j]);
}

// out = (x + adjoint of x) / 2: what the ops on Hermitian matrices see of x, so that they are functions of all of it.
template <class T>
void hermitian_part(const T* x, T* out, int64_t n) {
  const lapack::Real<T> half = 0.5;
  transpose_square(x, out, n, [half](T v) { return conjugate(v) * half; });
  for (int64_t i = 0; i < n * n; ++i) out[i] += x[i] * half;
}

template <class T>
lapack::Int work_size(T query) {
  return static_cast<lapack::Int>(std::real(query));
}

// Inverts n x n matrices, n > 0, or solves with them, by their LU factors. For one thread at a time.
template <class T>
class Inverter {
 public:
  explicit Inverter(int64_t n) : n_(static_cast<lapack::Int>(n)), pivots_(n), size_(size_of(n_)), work_(size_) {}

  // False where the matrix is singular.
  bool factor(T* a) { return lapack::getrf(n_, a, pivots_.get()) == 0; }
  const lapack::Int* pivots() const { return pivots_.get(); }
  // `a` holds the factors.
  void invert(T* a) { lapack::getri(n_, a, pivots_.get(), work_.get(), size_); }
  // b = a^-1 b of column-major matrices, where `a` holds the factors.
  void solve(const T* a, T* b) { lapack::getrs(n_, n_, a, pivots_.get(), b); }

 private:
  static lapack::Int size_of(lapack::Int n) {
    T query = 0;
    lapack::getri(n, static_cast<T*>(nullptr), nullptr, &query, -1);
    return work_size(query);
  }

  lapack::Int n_;
  Scratch<lapack::Int> pivots_;
  lapack::Int size_;
  Scratch<T> work_;
};

// Op::run<T>(frame, args, outs) for the type that the call computes in.
template <class Op>
bp_status BP_CALL lapack_kernel(const bp_frame* frame, const bp_value* args, int32_t, bp_value* outs, int32_t) {
  return plugin::guard(frame, [&] {
    plugin::dispatch_dtype<kLapackTypes>(frame->compute, [&]<class T>() { Op::template run<T>(frame, args, outs); });
  });
}

}  // namespace backplane::cpu

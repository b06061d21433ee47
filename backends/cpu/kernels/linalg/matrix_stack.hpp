// Stacks of matrices as products take them: tensors of any strides, broadcast to each other; and parts of a matrix.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/linalg/gemm.hpp"
#include "loops/elementwise.hpp"
#include "loops/loop.hpp"

namespace backplane::cpu {

// A stack of matrices; strides in elements.
struct Stack {
  char* data;
  int64_t rows, cols, row_stride, col_stride;
  int32_t batch_rank;
  const int64_t* batch_shape;
  const int64_t* batch_strides;
};

inline Stack stack_of(const bp_tensor* t, bool left) {
  const int32_t rank = t->dl.ndim;
  const int64_t *shape = t->dl.shape, *strides = t->dl.strides;
  Stack s{data_of(t), 1, 1, 0, 0, std::max(rank - 2, 0), shape, strides};
  if (rank == 1) {
    (left ? s.cols : s.rows) = shape[0];
    (left ? s.col_stride : s.row_stride) = strides[0];
    return s;
  }
  s.rows = shape[rank - 2];
  s.cols = shape[rank - 1];
  s.row_stride = strides[rank - 2];
  s.col_stride = strides[rank - 1];
  return s;
}
// The result has lost the axes that vectors do not have.
inline Stack result_stack(const bp_tensor* out, const bp_tensor* x, const bp_tensor* y) {
  const int32_t lost = (x->dl.ndim == 1) + (y->dl.ndim == 1), rank = out->dl.ndim;
  const int64_t *shape = out->dl.shape, *strides = out->dl.strides;
  Stack s{data_of(out), 1, 1, 0, 0, rank - 2 + lost, shape, strides};
  int32_t last = rank - 1;
  if (y->dl.ndim != 1) {
    s.cols = shape[last];
    s.col_stride = strides[last--];
  }
  if (x->dl.ndim != 1) {
    s.rows = shape[last];
    s.row_stride = strides[last];
  }
  return s;
}

// The matrices of a stack in the order of the result's batch; missing and size-1 axes repeat.
class Walk {
 public:
  Walk(const Stack& of, const Stack& out, int64_t item, int64_t first)
      : matrix_{of.data, of.rows, of.cols, of.row_stride, of.col_stride},
        rank_(out.batch_rank),
        shape_(out.batch_shape) {
    for (int32_t d = rank_ - 1; d >= 0; --d) {
      const int32_t own = d - rank_ + of.batch_rank;
      steps_[d] = own >= 0 && of.batch_shape[own] != 1 ? of.batch_strides[own] * item : 0;
      position_[d] = first % shape_[d];
      first /= shape_[d];
      matrix_.data += position_[d] * steps_[d];
    }
  }
  const Matrix& matrix() const { return matrix_; }
  void next() {
    for (int32_t d = rank_ - 1; d >= 0; --d) {
      matrix_.data += steps_[d];
      if (++position_[d] < shape_[d]) return;
      matrix_.data -= position_[d] * steps_[d];
      position_[d] = 0;
    }
  }

 private:
  Matrix matrix_;
  int32_t rank_;
  const int64_t* shape_;
  int64_t steps_[kMaxRank], position_[kMaxRank];
};

inline Matrix rows_of(Matrix m, int64_t begin, int64_t end, int64_t item) {
  m.data += begin * m.row_stride * item;
  m.rows = end - begin;
  return m;
}

inline Matrix columns_of(Matrix m, int64_t begin, int64_t end, int64_t item) {
  m.data += begin * m.col_stride * item;
  m.cols = end - begin;
  return m;
}

}  // namespace backplane::cpu

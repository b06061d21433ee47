// What the kernels of attention read and write: matrices (*batch, rows, cols) of any strides, in blocks of rows of the
// type that is computed in; and the mask as numbers added to scores.
#pragma once

#include <algorithm>
#include <limits>
#include <vector>

#include "kernels/linalg/gemm.hpp"
#include "loops/cast_row.hpp"
#include "loops/elementwise.hpp"
#include "runtime/scratch.hpp"

namespace backplane::cpu {

// A tensor whose last `cores` axes (1 or 2) are a vector's or a matrix's, and whose others broadcast to batch dims.
struct HeadTensor {
  char* data = nullptr;
  bp_dtype dtype = 0;
  int64_t item = 1, rows = 1, cols = 1, row_stride = 0, col_stride = 0;
  int32_t missing = 0, batch_ndim = 0;
  const int64_t *shape = nullptr, *strides = nullptr;

  HeadTensor() = default;
  HeadTensor(const bp_tensor* t, int32_t batch_rank, int32_t cores)
      : data(data_of(t)),
        dtype(t->dtype),
        item(plugin::kItemSize[t->dtype]),
        shape(t->dl.shape),
        strides(t->dl.strides) {
    const int32_t n = t->dl.ndim;
    batch_ndim = std::max(n - cores, 0);
    missing = batch_rank - batch_ndim;
    if (n >= 1 && cores == 2) {
      cols = shape[n - 1];
      col_stride = strides[n - 1];
    }
    const int32_t row_axis = n - cores;
    if (row_axis >= 0) {
      rows = shape[row_axis];
      row_stride = strides[row_axis];
    }
  }

  // Of matrix number `at`, counted over the batch dims.
  char* matrix(int64_t at, const std::vector<int64_t>& batch) const {
    int64_t offset = 0;
    for (auto d = static_cast<int32_t>(batch.size()) - 1; d >= 0; --d) {
      const int64_t i = at % batch[static_cast<size_t>(d)];
      at /= batch[static_cast<size_t>(d)];
      const int32_t own = d - missing;
      if (own >= 0 && shape[own] != 1) offset += i * strides[own];
    }
    return data + offset * item;
  }
};

// Rows [first, first + count) of a matrix as T: where they lie if gemm can read them, else in `storage`.
template <class T>
Matrix rows_as(const HeadTensor& t, char* matrix, int64_t first, int64_t count, T* storage) {
  char* start = matrix + first * t.row_stride * t.item;
  const Matrix there{start, count, t.cols, t.row_stride, t.col_stride};
  if (t.dtype == plugin::kDtypeOf<T> && t.col_stride == 1 && fits_blas(there)) return there;
  for (int64_t i = 0; i < count; ++i)
    cast_row(t.dtype, start + i * t.row_stride * t.item, t.col_stride * t.item, plugin::kDtypeOf<T>,
             reinterpret_cast<char*>(storage + i * t.cols), sizeof(T), t.cols);
  return {reinterpret_cast<char*>(storage), count, t.cols, t.cols, 1};
}

template <class T>
void write_rows(const T* values, const HeadTensor& t, char* matrix, int64_t first, int64_t count) {
  for (int64_t i = 0; i < count; ++i)
    cast_row(plugin::kDtypeOf<T>, reinterpret_cast<const char*>(values + i * t.cols), sizeof(T), t.dtype,
             matrix + (first + i) * t.row_stride * t.item, t.col_stride * t.item, t.cols);
}

// What the mask adds to the scores of one row over keys [first, first + count): 0 or -inf from a bool, the number
// itself otherwise. Null without a mask.
template <class T>
const T* bias_of(const HeadTensor& mask, const char* matrix, int64_t row, int64_t first, int64_t count, T* storage) {
  if (mask.data == nullptr) return nullptr;
  const int64_t step = mask.cols == 1 ? 0 : mask.col_stride * mask.item;
  const char* start = matrix + (mask.rows == 1 ? 0 : row * mask.row_stride * mask.item) + first * step;
  if (mask.dtype == plugin::kDtypeOf<T> && step == mask.item) return reinterpret_cast<const T*>(start);
  cast_row(mask.dtype, start, step, plugin::kDtypeOf<T>, reinterpret_cast<char*>(storage), sizeof(T), count);
  if (mask.dtype == BP_BOOL)
    for (int64_t i = 0; i < count; ++i) storage[i] = storage[i] != T(0) ? T(0) : -std::numeric_limits<T>::infinity();
  return storage;
}

}  // namespace backplane::cpu

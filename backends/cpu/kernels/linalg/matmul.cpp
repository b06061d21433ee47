// matmul: the array API's product of stacks of matrices, broadcast; a vector is a row on the left, a column on the
// right. matmul_add: the same plus a tensor, which is added to a piece of the product while that is in the cache.
//
// Operands that OpenBLAS (oneDNN for bfloat16) can address are multiplied where they lie, transposed or not; others are
// copied first, on the thread that needs them. Work is cut into blocks of rows or columns of single products and runs
// on the host's threads.
#include <algorithm>
#include <vector>

#include "kernels/families.hpp"
#include "kernels/linalg/dnn_matmul.hpp"
#include "kernels/linalg/gemm.hpp"
#include "kernels/linalg/half_dots.hpp"
#include "kernels/linalg/matrix_stack.hpp"
#include "kernels/linalg/small_gemm.hpp"
#include "loops/cast_row.hpp"
#include "loops/elementwise.hpp"
#include "loops/loop.hpp"

namespace backplane::cpu {
namespace {

using plugin::kItemSize;

// Multiply-adds of a piece: about 15 microseconds of float32, with a vector too, where each waits for memory.
constexpr int64_t kPieceWork = int64_t{3} << 18, kPieceWorkOfVector = int64_t{1} << 18;
constexpr int64_t kLongWork = int64_t{1} << 36;  // about a second: more is cut, so that it can be interrupted

void copy_matrix(bp_dtype dtype, const Matrix& from, const Matrix& to) {
  const int64_t item = kItemSize[dtype];
  for (int64_t i = 0; i < from.rows; ++i)
    cast_row(dtype, from.data + i * from.row_stride * item, from.col_stride * item, dtype,
             to.data + i * to.row_stride * item, to.col_stride * item, from.cols);
}

Matrix dense(const Matrix& m, int64_t item, std::vector<char>& storage) {
  storage.resize(static_cast<size_t>(m.rows * m.cols * item));
  return {storage.data(), m.rows, m.cols, m.cols, 1};
}

// Buffers of one thread's piece, for operands that BLAS cannot address.
struct Copies {
  std::vector<char> a, b, c;
};

void multiply(bp_dtype dtype, Matrix a, Matrix b, const Matrix& c, Copies& copies) {
  const int64_t item = kItemSize[dtype];
  // A result of other strides is computed beside it, in the same way, so that it has the same bits.
  const bool by_rows =
      c.cols == 1 ? c.rows == 1 || c.row_stride == 1 : c.col_stride == 1 && (c.rows == 1 || c.row_stride >= c.cols);
  const bool compact = is_blas_type(dtype) || (dtype == BP_BFLOAT16 && dnn_has_bfloat16());
  if (half_dots(dtype, a, b, c)) return;
  if (!by_rows && compact) {
    const Matrix result = dense(c, item, copies.c);
    multiply(dtype, a, b, result, copies);
    return copy_matrix(dtype, result, c);
  }
  if (small_gemm(dtype, a, b, c)) return;
  if (!compact) return gemm(dtype, a, b, c);
  if (!fits_blas(a)) {
    const Matrix copy = dense(a, item, copies.a);
    copy_matrix(dtype, a, copy);
    a = copy;
  }
  if (!fits_blas(b)) {
    const Matrix copy = dense(b, item, copies.b);
    copy_matrix(dtype, b, copy);
    b = copy;
  }
  if (dtype == BP_BFLOAT16 && dnn_matmul(a, b, c)) return;
  gemm(dtype, a, b, c);
}

// A stack over one matrix on the right, in one piece of memory, is a single tall product.
bool flatten(Stack& x, const Stack& y, Stack& out) {
  if (out.batch_rank == 0 || y.batch_rank != 0 || x.batch_rank != out.batch_rank) return false;
  const auto stacked = [](const Stack& s) {
    int64_t expected = s.rows * s.row_stride;
    for (int32_t d = s.batch_rank - 1; d >= 0; --d) {
      if (s.batch_shape[d] != 1 && s.batch_strides[d] != expected) return false;
      expected *= s.batch_shape[d];
    }
    return s.col_stride == 1 || s.cols == 1;
  };
  if (!stacked(x) || !stacked(out)) return false;
  int64_t batch = 1;
  for (int32_t d = 0; d < out.batch_rank; ++d) batch *= out.batch_shape[d];
  x.rows *= batch;
  out.rows *= batch;
  x.batch_rank = out.batch_rank = 0;
  return true;
}

// Element for element, rounded as the sum of two tensors is.
void add_matrix(bp_dtype dtype, const Matrix& from, const Matrix& to) {
  plugin::dispatch_dtype<BP_MASK_FLOATING | BP_MASK_COMPLEX>(dtype, [&]<class T>() {
    using C = plugin::Compute<T>;
    for (int64_t i = 0; i < to.rows; ++i) {
      const T* x = reinterpret_cast<const T*>(from.data) + i * from.row_stride;
      T* out = reinterpret_cast<T*>(to.data) + i * to.row_stride;
      if (from.col_stride == 1 && to.col_stride == 1)
        for (int64_t j = 0; j < to.cols; ++j) out[j] = T(C(out[j]) + C(x[j]));
      else
        for (int64_t j = 0; j < to.cols; ++j)
          out[j * to.col_stride] = T(C(out[j * to.col_stride]) + C(x[j * from.col_stride]));
    }
  });
}

// A tensor broadcast to another one's shape: the same elements.
struct Broadcast {
  int64_t shape[kMaxRank], strides[kMaxRank];
  bp_tensor tensor;

  Broadcast(const bp_frame* frame, const bp_tensor* of, const bp_tensor* to) : tensor(*of) {
    const int32_t rank = to->dl.ndim, lacking = rank - of->dl.ndim;
    bool fits = lacking >= 0;
    for (int32_t d = 0; fits && d < rank; ++d) {
      const int64_t own = d < lacking ? 1 : of->dl.shape[d - lacking];
      shape[d] = to->dl.shape[d];
      strides[d] = own == 1 ? 0 : of->dl.strides[d - lacking];
      fits = own == 1 || own == shape[d];
    }
    BP_CHECK(fits, SHAPE, frame->op->name, ": argument z: found a tensor that does not broadcast to the product");
    tensor.dl.ndim = rank, tensor.dl.shape = shape, tensor.dl.strides = strides;
  }
  Broadcast(const Broadcast&) = delete;
};

// The addend of a product, as `matrices` of its stack; its blocks may be blocks of one taller matrix.
struct Addition {
  bp_dtype dtype;
  Stack added, matrices;

  // The product's stack has become one matrix.
  void flatten(const Stack& out) {
    const auto none = [](int64_t stride) { return stride == 0; };
    if (added.row_stride != 0 || !std::all_of(added.batch_strides, added.batch_strides + added.batch_rank, none))
      return;
    matrices = out;
    added.batch_rank = 0, added.rows = out.rows;
  }
  // To a block that begins at this row, counted through the matrices, and column.
  void add_to(const Matrix& block, int64_t first, int64_t column) const {
    const int64_t item = kItemSize[dtype];
    for (int64_t done = 0; done < block.rows;) {
      const int64_t row = (first + done) % matrices.rows, n = std::min(block.rows - done, matrices.rows - row);
      const Walk at(added, matrices, item, (first + done) / matrices.rows);
      add_matrix(dtype, columns_of(rows_of(at.matrix(), row, row + n, item), column, column + block.cols, item),
                 rows_of(block, done, done + n, item));
      done += n;
    }
  }
};

// `addend`: of the result's shape, or nullptr.
void matmul(const bp_frame* frame, const bp_tensor* x_tensor, const bp_tensor* y_tensor, const bp_tensor* addend,
            const bp_tensor* out_tensor) {
  const bp_dtype dtype = out_tensor->dtype;
  const int64_t item = kItemSize[dtype];
  if (out_tensor->nbytes == 0) return;
  Stack x = stack_of(x_tensor, true);
  const Stack y = stack_of(y_tensor, false);
  Stack out = result_stack(out_tensor, x_tensor, y_tensor);
  Addition addition{dtype, addend ? result_stack(addend, x_tensor, y_tensor) : Stack{}, out};
  if (flatten(x, y, out)) addition.flatten(out);
  int64_t batch = 1;
  for (int32_t d = 0; d < out.batch_rank; ++d) batch *= out.batch_shape[d];

  const int64_t work = std::max<int64_t>(out.rows * out.cols * x.cols, 1);  // of one product
  const int64_t piece_work = std::min(out.rows, out.cols) == 1 ? kPieceWorkOfVector : kPieceWork;
  // Blocks along the longer side, as few as keep the threads busy: OpenBLAS packs the other operand anew for each.
  const int64_t threads = frame->host->worker_count();
  const bool by_rows = out.rows >= out.cols;
  const int64_t length = by_rows ? out.rows : out.cols;
  const int64_t wanted = batch >= threads ? 1 : (threads + batch - 1) / batch;
  const int64_t blocks =
      std::clamp<int64_t>(std::max(std::min(wanted, work / piece_work), work / kLongWork), 1, (length + 15) / 16);
  // `first`: the block's row among those of all matrices.
  const auto multiply_block = [&](const Matrix& a, const Matrix& b, const Matrix& c, int64_t first, int64_t column,
                                  Copies& copies) {
    multiply(dtype, a, b, c, copies);
    if (addend) addition.add_to(c, first, column);
  };
  const auto block_of = [&](const Matrix& a, const Matrix& b, const Matrix& c, int64_t matrix, int64_t block,
                            Copies& copies) {
    const int64_t first = matrix * out.rows;
    if (blocks == 1) return multiply_block(a, b, c, first, 0, copies);
    const int64_t begin = length * block / blocks / 16 * 16;
    const int64_t end = block + 1 == blocks ? length : length * (block + 1) / blocks / 16 * 16;
    if (by_rows)
      return multiply_block(rows_of(a, begin, end, item), b, rows_of(c, begin, end, item), first + begin, 0, copies);
    multiply_block(a, columns_of(b, begin, end, item), columns_of(c, begin, end, item), first, begin, copies);
  };
  const auto piece = [&](int64_t begin, int64_t end) {
    Copies copies;
    const int64_t first = begin / blocks;
    Walk left(x, out, item, first), right(y, out, item, first), result(out, out, item, first);
    for (int64_t at = begin, block = begin - first * blocks; at < end; ++at) {
      block_of(left.matrix(), right.matrix(), result.matrix(), at / blocks, block, copies);
      if (++block < blocks) continue;
      block = 0;
      left.next(), right.next(), result.next();
    }
  };
  const int64_t grain = std::max<int64_t>(piece_work / std::max<int64_t>(work / blocks, 1), 1);
  if (batch * blocks <= grain) return piece(0, batch * blocks);
  plugin::parallel_for(frame, 0, batch * blocks, grain, piece);
}

bp_status BP_CALL matmul_kernel(const bp_frame* frame, const bp_value* args, int32_t, bp_value* outs, int32_t) {
  return plugin::guard(
      frame, [&] { matmul(frame, plugin::as_tensor(args[0]), plugin::as_tensor(args[1]), nullptr, outs[0].u.t); });
}

bp_status BP_CALL matmul_add_kernel(const bp_frame* frame, const bp_value* args, int32_t, bp_value* outs, int32_t) {
  return plugin::guard(frame, [&] {
    const Broadcast z(frame, plugin::as_tensor(args[2]), outs[0].u.t);
    matmul(frame, plugin::as_tensor(args[0]), plugin::as_tensor(args[1]), &z.tensor, outs[0].u.t);
  });
}

// A product of half floats is rounded before z is added, and may overflow where the sum fits: the decomposition, in
// float32, rounds once. Declined but for products of bfloat16 so large that the instruction of oneDNN pays; bfloat16
// has float32's range.
bp_status BP_CALL supports_matmul_add(const bp_frame* frame, const bp_value* args, int32_t, bp_value*, int32_t) {
  constexpr int64_t kLargeWork = int64_t{1} << 21;
  const auto half = [](const bp_value& v) {
    return v.tag == BP_TAG_TENSOR && (v.u.t->dtype == BP_FLOAT16 || v.u.t->dtype == BP_BFLOAT16);
  };
  if (!half(args[0]) || !half(args[1])) return BP_OK;
  const bp_tensor *x = args[0].u.t, *y = args[1].u.t;
  const int64_t columns = y->dl.ndim == 0 ? 1 : y->dl.shape[y->dl.ndim - 1];
  const bool large = static_cast<int64_t>(x->nbytes) / 2 * columns >= kLargeWork;
  if (x->dtype == BP_BFLOAT16 && y->dtype == BP_BFLOAT16 && large && dnn_has_bfloat16()) return BP_OK;
  frame->host->set_error(BP_ERROR_NOT_IMPLEMENTED, "rounds products of half floats before z is added");
  return BP_ERROR_NOT_IMPLEMENTED;
}

}  // namespace

const Family kMatmul([](const Registrar& registrar) {
  registrar.kernel(
      BP_KERNEL("bp::matmul", "cpu", matmul_kernel, .dtypes = BP_MASK_ANY & ~BP_MASK_BOOL, .flags = BP_KERNEL_STRIDED));
  registrar.kernel(BP_KERNEL("bp::matmul_add", "cpu", matmul_add_kernel, .dtypes = BP_MASK_FLOATING | BP_MASK_COMPLEX,
                             .flags = BP_KERNEL_STRIDED, .supports = supports_matmul_add));
});

}  // namespace backplane::cpu

// What stands around factorisations of matrices: their operands and results, determinants, and triangular systems.
// Matrices lie by rows, one behind the other. Compiled once per dtype, as typed.cu is.
#include "kernels/device/element.cuh"

namespace backplane::cuda {
namespace {

template <class T>
__device__ T conjugate(T x) {
  if constexpr (kIsComplex<T>) x.im = -x.im;
  return x;
}
template <class T>
__device__ T half_of(T x) {
  if constexpr (kIsComplex<T>)
    return T{x.re / 2, x.im / 2};
  else
    return x / 2;
}
template <class T>
__device__ T negative(T x) {
  if constexpr (kIsComplex<T>)
    return T{-x.re, -x.im};
  else
    return -x;
}
template <class T>
__device__ T number(int x) {
  if constexpr (kIsComplex<T>)
    return T{static_cast<decltype(T{}.re)>(x), 0};
  else
    return static_cast<T>(x);
}
template <class T>
__device__ bool is_zero(T x) {
  if constexpr (kIsComplex<T>)
    return x.re == 0 && x.im == 0;
  else
    return x == 0;
}
// Not of NaN and infinity, of which a zeroth part is NaN.
template <class T>
__device__ bool is_finite(T x) {
  if constexpr (kIsComplex<T>)
    return x.re * 0 == 0 && x.im * 0 == 0;
  else
    return x * 0 == 0;
}

template <class T, class Real>
__device__ T divided(T x, Real by) {
  if constexpr (kIsComplex<T>)
    return T{x.re / by, x.im / by};
  else
    return x / by;
}

// The sum of a warp's lanes, for all of them; in an order of its own.
template <class T>
__device__ T sum_of_lanes(T x) {
#pragma unroll
  for (int step = kWarp / 2; step > 0; step /= 2) {
    if constexpr (kIsComplex<T>)
      x = add(x, T{__shfl_xor_sync(0xffffffffu, x.re, step), __shfl_xor_sync(0xffffffffu, x.im, step)});
    else
      x = add(x, __shfl_xor_sync(0xffffffffu, x, step));
  }
  return x;
}

using T = BP_CUDA_ELEMENT;

// body(matrix, row, column, its result) for the elements of all results; rows of blocks take matrices in turn.
template <class Body>
__device__ void for_each_element(const Matrices& call, Body body) {
  const int64_t size = call.rows * call.columns;
  for (int64_t matrix = blockIdx.y; matrix < call.count; matrix += gridDim.y)
    for (int64_t e = first_index(); e < size; e += index_step())
      body(matrix, e / call.columns, e % call.columns, reinterpret_cast<T*>(call.out)[matrix * size + e]);
}
__device__ T given(const Matrices& call, int64_t matrix, int64_t row, int64_t column) {
  return reinterpret_cast<const T*>(call.x)[matrix * call.x_matrix + row * call.x_row + column * call.x_column];
}

// The system of one row: what the rows before have given is in y.
__device__ void substitute_row(const Substitution& call, const T* a, T* y, int64_t k) {
  const int64_t n = call.n, i = call.upper ? n - 1 - k : k;
  T sum = number<T>(0);
  for (int64_t before = threadIdx.x % kWarp; before < k; before += kWarp) {
    const int64_t j = call.upper ? n - 1 - before : before;
    sum = add(sum, multiply(a[i * n + j], y[j]));
  }
  sum = sum_of_lanes(sum);
  if (threadIdx.x % kWarp == 0) {
    const T rest = add(y[i], negative(sum));
    y[i] = call.unit ? rest : scalar::divide::of(rest, a[i * n + i]);
  }
  __syncwarp();
}

}  // namespace

// The Hermitian part: half of x and its adjoint.
extern "C" __global__ void hermitian(const __grid_constant__ Matrices call) {
  for_each_element(call, [&](int64_t matrix, int64_t row, int64_t column, T& out) {
    const T part = add(half_of(conjugate(given(call, matrix, column, row))), half_of(given(call, matrix, row, column)));
    out = call.conjugated ? conjugate(part) : part;
  });
}

// One triangle of x with the diagonal, and zeros.
extern "C" __global__ void triangle(const __grid_constant__ Matrices call) {
  for_each_element(call, [&](int64_t matrix, int64_t row, int64_t column, T& out) {
    const bool kept = call.upper ? row <= column : column <= row;
    out = kept ? given(call, matrix, row, column) : number<T>(0);
  });
}

extern "C" __global__ void identity(const __grid_constant__ Matrices call) {
  for_each_element(call, [&](int64_t, int64_t row, int64_t column, T& out) { out = number<T>(row == column); });
}

// info: which of the matrices, that are both operand and result, hold what is not finite; those become 0 after that.
extern "C" __global__ void find_infinite(const __grid_constant__ Matrices call) {
  for_each_element(call, [&](int64_t matrix, int64_t, int64_t, T& out) {
    if (!is_finite(out)) call.info[matrix] = 1;
  });
}
extern "C" __global__ void blank(const __grid_constant__ Matrices call) {
  for_each_element(call, [&](int64_t matrix, int64_t, int64_t, T& out) {
    if (call.info[matrix] != 0) out = number<T>(0);
  });
}

// info: which of x have a zero on the diagonal.
extern "C" __global__ void find_zero_diagonal(const __grid_constant__ Matrices call) {
  for (int64_t matrix = blockIdx.y; matrix < call.count; matrix += gridDim.y)
    for (int64_t d = first_index(); d < call.rows; d += index_step())
      if (is_zero(given(call, matrix, d, d))) call.info[matrix] = 1;
}

// By one warp: the first matrix of which info is above 0.
extern "C" __global__ void report_matrix(const int32_t* info, int64_t count, int32_t fault, DataError* error) {
  int64_t first = count;
  for (int64_t i = threadIdx.x; i < count && first == count; i += kWarp)
    if (info[i] > 0) first = i;
#pragma unroll
  for (int step = kWarp / 2; step > 0; step /= 2) {
    const int64_t other = __shfl_xor_sync(0xffffffffu, first, step);
    first = other < first ? other : first;
  }
  if (threadIdx.x == 0 && first < count) report(error, static_cast<DataFault>(fault), first);
}

// Of LU factors with the rows that were exchanged, from 1 on. Behind a pivot of 0, which info names, nothing counts.
extern "C" __global__ void determinant(const __grid_constant__ Determinants call) {
  for (int64_t matrix = first_index(); matrix < call.count; matrix += index_step()) {
    const T* a = reinterpret_cast<const T*>(call.factors) + matrix * call.n * call.n;
    const int64_t* pivots = call.pivots + matrix * call.n;
    const int64_t last = call.info[matrix] > 0 ? call.info[matrix] : call.n;
    T value = number<T>(1);
    for (int64_t d = 0; d < last; ++d) {
      const T pivot = a[d * call.n + d];
      value = multiply(value, pivots[d] == d + 1 ? pivot : negative(pivot));
    }
    reinterpret_cast<T*>(call.value)[matrix] = value;
  }
}
// The product of the pivots' signs (phases), and the sum of their logarithms. Either result may be missing.
extern "C" __global__ void sign_and_log(const __grid_constant__ Determinants call) {
  using Real = decltype(scalar::abs::of(T{}));
  for (int64_t matrix = first_index(); matrix < call.count; matrix += index_step()) {
    const T* a = reinterpret_cast<const T*>(call.factors) + matrix * call.n * call.n;
    const int64_t* pivots = call.pivots + matrix * call.n;
    T sign = number<T>(1);
    Real log = 0;
    for (int64_t d = 0; d < call.n; ++d) {
      const T pivot = a[d * call.n + d];
      const Real size = scalar::abs::of(pivot);
      if (size == 0) {
        sign = number<T>(0), log = -INFINITY;
        break;
      }
      const T direction = divided(pivot, size);
      sign = multiply(sign, pivots[d] == d + 1 ? direction : negative(direction));
      log += scalar::log::of(size);
    }
    if (call.value) reinterpret_cast<T*>(call.value)[matrix] = sign;
    if (call.log) reinterpret_cast<Real*>(call.log)[matrix] = log;
  }
}

// y of a y = y by rows, a warp for each column of y, whose columns lie side by side. Lanes share the sum of a row.
extern "C" __global__ void substitute(const __grid_constant__ Substitution call) {
  const int64_t warps = blockDim.x / kWarp;
  for (uint32_t matrix = blockIdx.y; matrix < call.stack.count; matrix += gridDim.y) {
    const T* a = reinterpret_cast<const T*>(call.a + place(call.stack, matrix).x);
    for (int64_t column = blockIdx.x * warps + threadIdx.x / kWarp; column < call.columns;
         column += gridDim.x * warps) {
      T* y = reinterpret_cast<T*>(call.y) + (matrix * call.columns + column) * call.n;
      for (int64_t k = 0; k < call.n; ++k) substitute_row(call, a, y, k);
    }
  }
}

}  // namespace backplane::cuda

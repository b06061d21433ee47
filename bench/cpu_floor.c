// What no library can beat: plain loops that only move the bytes, into an output whose pages were touched before, and a
// direct call of OpenBLAS. cpu_times.py compiles this and calls it; as many threads as set_threads was given.
#include <cblas.h>
#include <stdint.h>

static int threads = 1;

void set_threads(int count) { threads = count; }

void floor_copy(const float* restrict x, float* restrict out, int64_t n) {
#pragma omp parallel for simd schedule(static) num_threads(threads) if (n > 65536)
  for (int64_t i = 0; i < n; ++i) out[i] = x[i] + 1.0f;
}

void floor_add(const float* restrict x, const float* restrict y, float* restrict out, int64_t n) {
#pragma omp parallel for simd schedule(static) num_threads(threads) if (n > 65536)
  for (int64_t i = 0; i < n; ++i) out[i] = x[i] + y[i];
}

// `count` products, each of m x k by k x n. The kernels under test keep OpenBLAS on one thread, so that is restored.
void floor_matmul(const float* x, const float* y, float* out, int64_t count, int m, int n, int k, int x_transposed,
                  int y_transposed) {
  if (openblas_get_num_threads() != threads) openblas_set_num_threads(threads);
  for (int64_t i = 0; i < count; ++i)
    cblas_sgemm(CblasRowMajor, x_transposed ? CblasTrans : CblasNoTrans, y_transposed ? CblasTrans : CblasNoTrans, m, n,
                k, 1.0f, x + i * m * k, x_transposed ? m : k, y + i * k * n, y_transposed ? k : n, 0.0f,
                out + i * m * n, n);
}

void end_matmul(void) { openblas_set_num_threads(1); }

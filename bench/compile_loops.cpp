// What fusing can reach: the first cases of compile_cases.py as loops written by hand, one pass over memory each, with
// the compiler's own vectors and its library's vector functions. compile_times.py compiles this for the machine, with
// -ffast-math, and calls it; outputs are the caller's, whose pages were touched before.
#include <algorithm>
#include <cmath>
#include <cstdint>

namespace {

int threads = 1;

// The elements of one block stay in the first cache, where a row is read more than once.
template <class Body>
void for_rows(int64_t rows, Body body) {
#pragma omp parallel for schedule(static) num_threads(threads)
  for (int64_t i = 0; i < rows; ++i) body(i);
}

constexpr float kA = 0.7978845608F, kB = 0.044715F;

}  // namespace

extern "C" {

void set_threads(int count) { threads = count; }

void gelu(const float* x, float* out, int64_t n) {
#pragma omp parallel for simd schedule(static) num_threads(threads)
  for (int64_t i = 0; i < n; ++i) out[i] = 0.5F * x[i] * (1 + tanhf(kA * (x[i] + kB * x[i] * x[i] * x[i])));
}

void gelu_backward(const float* x, const float* g, float* out, float* dx, int64_t n) {
#pragma omp parallel for simd schedule(static) num_threads(threads)
  for (int64_t i = 0; i < n; ++i) {
    const float t = tanhf(kA * (x[i] + kB * x[i] * x[i] * x[i]));
    out[i] = 0.5F * x[i] * (1 + t);
    dx[i] = g[i] * (0.5F * (1 + t) + 0.5F * x[i] * (1 - t * t) * kA * (1 + 3 * kB * x[i] * x[i]));
  }
}

void layer_norm(const float* x, const float* weight, const float* bias, float* out, int64_t rows, int64_t n) {
  for_rows(rows, [=](int64_t row) {
    const float* a = x + row * n;
    float sum = 0, squares = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t j = 0; j < n; ++j) sum += a[j];
    const float mean = sum / static_cast<float>(n);
#pragma omp simd reduction(+ : squares)
    for (int64_t j = 0; j < n; ++j) squares += (a[j] - mean) * (a[j] - mean);
    const float scale = 1 / std::sqrt(squares / static_cast<float>(n) + 1e-5F);
#pragma omp simd
    for (int64_t j = 0; j < n; ++j) out[row * n + j] = (a[j] - mean) * scale * weight[j] + bias[j];
  });
}

// The weight's and the bias's gradients are added up per thread in `sums`, 2 n floats for each.
void layer_norm_backward(const float* x, const float* weight, const float* bias, const float* g, float* out, float* dx,
                         float* dweight, float* dbias, float* sums, int64_t rows, int64_t n) {
  std::fill(sums, sums + threads * 2 * n, 0.0F);
#pragma omp parallel for schedule(static) num_threads(threads)
  for (int64_t part = 0; part < threads; ++part) {
    float *dw = sums + part * 2 * n, *db = dw + n;
    for (int64_t row = rows * part / threads; row < rows * (part + 1) / threads; ++row) {
      const float *a = x + row * n, *c = g + row * n;
      float sum = 0, squares = 0, of_g = 0, of_gx = 0;
#pragma omp simd reduction(+ : sum)
      for (int64_t j = 0; j < n; ++j) sum += a[j];
      const float mean = sum / static_cast<float>(n);
#pragma omp simd reduction(+ : squares)
      for (int64_t j = 0; j < n; ++j) squares += (a[j] - mean) * (a[j] - mean);
      const float scale = 1 / std::sqrt(squares / static_cast<float>(n) + 1e-5F);
#pragma omp simd reduction(+ : of_g, of_gx)
      for (int64_t j = 0; j < n; ++j) {
        const float normal = (a[j] - mean) * scale, gw = c[j] * weight[j];
        out[row * n + j] = normal * weight[j] + bias[j];
        dw[j] += c[j] * normal;
        db[j] += c[j];
        of_g += gw;
        of_gx += gw * normal;
      }
      of_g /= static_cast<float>(n);
      of_gx /= static_cast<float>(n);
#pragma omp simd
      for (int64_t j = 0; j < n; ++j)
        dx[row * n + j] = scale * (c[j] * weight[j] - of_g - (a[j] - mean) * scale * of_gx);
    }
  }
  for (int64_t j = 0; j < n; ++j) dweight[j] = dbias[j] = 0;
  for (int part = 0; part < threads; ++part)
    for (int64_t j = 0; j < n; ++j) {
      dweight[j] += sums[part * 2 * n + j];
      dbias[j] += sums[part * 2 * n + n + j];
    }
}

namespace {

// The loss of one row; with `dx` also its gradient, times `g`.
float row_loss(const float* x, const float* target, float* dx, float g, int64_t n) {
  float most = x[0], sum = 0, dot = 0, targets = 0;
#pragma omp simd reduction(max : most)
  for (int64_t j = 0; j < n; ++j) most = std::max(most, x[j]);
#pragma omp simd reduction(+ : sum, dot, targets)
  for (int64_t j = 0; j < n; ++j) {
    sum += expf(x[j] - most);
    dot += target[j] * (x[j] - most);
    targets += target[j];
  }
  if (dx != nullptr) {
#pragma omp simd
    for (int64_t j = 0; j < n; ++j) dx[j] = g * (expf(x[j] - most) / sum * targets - target[j]);
  }
  return targets * std::log(sum) - dot;
}

}  // namespace

void cross_entropy(const float* x, const float* targets, float* out, int64_t rows, int64_t n) {
  float loss = 0;
#pragma omp parallel for schedule(static) num_threads(threads) reduction(+ : loss)
  for (int64_t i = 0; i < rows; ++i) loss += row_loss(x + i * n, targets + i * n, nullptr, 0, n);
  *out = loss / static_cast<float>(rows);
}

void cross_entropy_backward(const float* x, const float* targets, const float* g, float* out, float* dx, int64_t rows,
                            int64_t n) {
  float loss = 0;
  const float share = *g / static_cast<float>(rows);
#pragma omp parallel for schedule(static) num_threads(threads) reduction(+ : loss)
  for (int64_t i = 0; i < rows; ++i) loss += row_loss(x + i * n, targets + i * n, dx + i * n, share, n);
  *out = loss / static_cast<float>(rows);
}

// One tensor of the step.
void adam(const float* p, const float* g, const float* mean, const float* square, const float* step, float* new_p,
          float* new_mean, float* new_square, int64_t n) {
  const float a = 1 / (1 - powf(0.9F, *step)), b = 1 / (1 - powf(0.999F, *step));
#pragma omp parallel for simd schedule(static) num_threads(threads)
  for (int64_t i = 0; i < n; ++i) {
    new_mean[i] = 0.9F * mean[i] + 0.1F * g[i];
    new_square[i] = 0.999F * square[i] + 0.001F * g[i] * g[i];
    new_p[i] = p[i] - 1e-3F * (new_mean[i] * a) / (std::sqrt(new_square[i] * b) + 1e-8F);
  }
}

}  // extern "C"

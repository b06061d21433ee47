// matrix_exp: the exponential of each matrix, by scaling, a Padé approximant, and squaring (N. Higham, "The scaling and
// squaring method for the matrix exponential revisited", 2005).
//
// All matrices of one computation are polynomials of one another and commute, so it does not matter that LAPACK sees
// transposes.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/families.hpp"
#include "kernels/linalg/gemm.hpp"
#include "kernels/linalg/matrix_batch.hpp"

namespace backplane::cpu {
namespace {

// The diagonal approximant of a degree: coefficients of the even and odd powers, and the norm up to which it is exact
// to rounding (Higham's table 2.3).
struct Pade {
  double limit;
  std::vector<double> coefficients;
};
template <class R>
Pade pade() {
  if constexpr (sizeof(R) == 4) return {3.925724783138660, {17297280, 8648640, 1995840, 277200, 25200, 1512, 56, 1}};
  return {5.371920351148152,
          {64764752532480000., 32382376266240000., 7771770303897600., 1187353796428800., 129060195264000.,
           10559470521600., 670442572800., 33522128640., 1323241920., 40840800., 960960., 16380., 182., 1.}};
}

template <class T>
class Exponential {
 public:
  using R = lapack::Real<T>;
  explicit Exponential(int64_t n)
      : n_(n), square_(n * n), power_(n * n), next_(n * n), odd_(n * n), even_(n * n), inverter_(n) {}

  // out = exp(x); a matrix that is not finite gives NaN.
  void run(const T* x, T* out) {
    const R norm = largest_column_sum(x);
    if (!all_finite(x, n_ * n_) || !std::isfinite(norm)) {
      std::fill_n(out, n_ * n_, T(std::numeric_limits<R>::quiet_NaN()));
      return;
    }
    const int halvings = norm > static_cast<R>(pade_.limit)
                             ? static_cast<int>(std::ceil(std::log2(norm / static_cast<R>(pade_.limit))))
                             : 0;
    for (int64_t i = 0; i < n_ * n_; ++i) out[i] = x[i] * std::ldexp(R(1), -halvings);
    approximate(out);
    for (int i = 0; i < halvings; ++i) {
      std::copy_n(out, n_ * n_, power_.get());
      product(power_.get(), power_.get(), out);
    }
  }

 private:
  R largest_column_sum(const T* x) const {
    R largest = 0;
    for (int64_t column = 0; column < n_; ++column) {
      R sum = 0;
      for (int64_t row = 0; row < n_; ++row) sum += std::abs(x[row * n_ + column]);
      largest = std::max(largest, sum);
    }
    return largest;
  }
  void product(const T* a, const T* b, T* out) const {
    const auto matrix = [&](const T* data) {
      return Matrix{reinterpret_cast<char*>(const_cast<T*>(data)), n_, n_, n_, 1};
    };
    gemm(plugin::kDtypeOf<T>, matrix(a), matrix(b), matrix(out));
  }
  void add(double coefficient, const T* from, T* to) const {
    for (int64_t i = 0; i < n_ * n_; ++i) to[i] += from[i] * static_cast<R>(coefficient);
  }
  // a = (V - U)^-1 (V + U), where U has the odd powers of a and V the even ones.
  void approximate(T* a) {
    const std::vector<double>& b = pade_.coefficients;
    T *square = square_.get(), *power = power_.get(), *odd = odd_.get(), *even = even_.get();
    std::fill_n(odd, n_ * n_, T(0));
    std::fill_n(even, n_ * n_, T(0));
    for (int64_t i = 0; i < n_; ++i) {
      odd[i * (n_ + 1)] = static_cast<R>(b[1]);
      even[i * (n_ + 1)] = static_cast<R>(b[0]);
    }
    product(a, a, square);
    std::copy_n(square, n_ * n_, power);
    for (size_t k = 2; k < b.size(); k += 2) {
      if (k > 2) {
        product(power, square, next_.get());
        std::copy_n(next_.get(), n_ * n_, power);
      }
      add(b[k], power, even);
      add(b[k + 1], power, odd);
    }
    product(a, odd, power);
    for (int64_t i = 0; i < n_ * n_; ++i) {
      const T u = power[i], v = even[i];
      even[i] = v + u;
      odd[i] = v - u;
    }
    inverter_.factor(odd);
    inverter_.invert(odd);
    product(odd, even, a);
  }

  int64_t n_;
  Pade pade_ = pade<R>();
  Scratch<T> square_, power_, next_, odd_, even_;
  Inverter<T> inverter_;
};

struct MatrixExp {
  template <class T>
  static void run(const bp_frame* frame, const bp_value* args, bp_value* outs) {
    const MatrixBatch x(frame, plugin::as_tensor(args[0])), out(frame, outs[0].u.t);
    x.require_square(frame);
    const int64_t n = x.rows;
    for_matrices(frame, n == 0 ? 0 : x.count, 20 * n * n * n, [&](int64_t begin, int64_t end) {
      Exponential<T> exponential(n);
      for (int64_t i = begin; i < end; ++i) exponential.run(x.at<T>(i), out.at<T>(i));
    });
  }
};

}  // namespace

const Family kMatrixExp([](const Registrar& registrar) {
  registrar.kernel(BP_KERNEL("bp::matrix_exp", "cpu", lapack_kernel<MatrixExp>, .dtypes = kLapackTypes));
});

}  // namespace backplane::cpu

// adjugate: the determinant times the inverse, which exists for singular matrices too.
//
// Of a regular matrix it is just that, from one LU factorisation. Of one that has a zero pivot it has rank 1 or is 0,
// and follows from an elimination with pivots from the whole rest, whose last pivot alone is 0. Row-major matrices are
// transposes to LAPACK, which the adjugate does not mind.
#include <cmath>
#include <cstring>
#include <numeric>
#include <utility>
#include <vector>

#include "kernels/families.hpp"
#include "kernels/matrix_batch.hpp"

namespace backplane::cpu {
namespace {

using lapack::Int;

// The factors of a matrix whose rows and columns are exchanged: L below the diagonal, U on it and above.
template <class T>
class Eliminated {
 public:
  Eliminated(const T* x, int64_t n)
      : n_(n), a_(x, x + n * n), rows_(static_cast<size_t>(n)), cols_(static_cast<size_t>(n)) {
    std::iota(rows_.begin(), rows_.end(), 0);
    std::iota(cols_.begin(), cols_.end(), 0);
    for (int64_t k = 0; k + 1 < n; ++k) {
      bring_largest(k);
      if (at(k, k) == T(0)) return;
      for (int64_t i = k + 1; i < n; ++i) {
        at(i, k) /= at(k, k);
        for (int64_t j = k + 1; j < n; ++j) at(i, j) -= at(i, k) * at(k, j);
      }
    }
  }

  // The adjugate of U with a last pivot of 0 is p y e', that of L its inverse, and so out = sign p (Q y) (z' P).
  void store_adjugate(T* out) const {
    const auto last = static_cast<size_t>(n_ - 1);
    std::vector<T> y(last + 1, T(1)), z(last + 1, T(1));
    T product = sign_;
    for (int64_t i = 0; i + 1 < n_; ++i) product *= at(i, i);
    std::fill_n(out, n_ * n_, T(0));
    if (product == T(0)) return;
    for (int64_t after = n_ - 1; after > 0; --after) {
      const int64_t i = after - 1;
      T right = 0, below = 0;
      for (int64_t j = after; j < n_; ++j) {
        right += at(i, j) * y[static_cast<size_t>(j)];
        below += at(j, i) * z[static_cast<size_t>(j)];
      }
      y[static_cast<size_t>(i)] = -right / at(i, i);
      z[static_cast<size_t>(i)] = -below;
    }
    for (size_t i = 0; i <= last; ++i)
      for (size_t j = 0; j <= last; ++j) out[cols_[i] * n_ + rows_[j]] = product * y[i] * z[j];
  }

 private:
  T& at(int64_t i, int64_t j) { return a_[static_cast<size_t>(i * n_ + j)]; }
  const T& at(int64_t i, int64_t j) const { return a_[static_cast<size_t>(i * n_ + j)]; }

  void bring_largest(int64_t k) {
    int64_t row = k, col = k;
    for (int64_t i = k; i < n_; ++i)
      for (int64_t j = k; j < n_; ++j)
        if (std::abs(at(i, j)) > std::abs(at(row, col))) row = i, col = j;
    if (row != k) {
      for (int64_t j = 0; j < n_; ++j) std::swap(at(row, j), at(k, j));
      std::swap(rows_[static_cast<size_t>(row)], rows_[static_cast<size_t>(k)]);
      sign_ = -sign_;
    }
    if (col != k) {
      for (int64_t i = 0; i < n_; ++i) std::swap(at(i, col), at(i, k));
      std::swap(cols_[static_cast<size_t>(col)], cols_[static_cast<size_t>(k)]);
      sign_ = -sign_;
    }
  }

  int64_t n_;
  std::vector<T> a_;
  std::vector<int64_t> rows_, cols_;
  T sign_ = 1;
};

// adjugate(Tensor x)
struct Adjugate {
  template <class T>
  static void run(const bp_frame* frame, const bp_value* args, bp_value* outs) {
    const MatrixBatch x(frame, plugin::as_tensor(args[0])), out(frame, outs[0].u.t);
    x.require_square(frame);
    const auto n = static_cast<Int>(x.rows);
    if (n == 0) return;
    T query = 0;
    lapack::getri(n, static_cast<T*>(nullptr), nullptr, &query, -1);
    for_matrices(frame, x.count, 2 * x.size() * n, [&](int64_t begin, int64_t end) {
      const Scratch<T> work(work_size(query));
      std::vector<Int> pivots(static_cast<size_t>(n));
      for (int64_t i = begin; i < end; ++i) {
        T* a = out.at<T>(i);
        std::memcpy(a, x.at<T>(i), static_cast<size_t>(x.size()) * sizeof(T));
        if (lapack::getrf(n, a, pivots.data()) != 0) {
          Eliminated<T>(x.at<T>(i), n).store_adjugate(a);
          continue;
        }
        T det = 1;
        for (Int d = 0; d < n; ++d) det *= pivots[static_cast<size_t>(d)] == d + 1 ? a[d * n + d] : -a[d * n + d];
        lapack::getri(n, a, pivots.data(), work.get(), work_size(query));
        for (int64_t k = 0; k < x.size(); ++k) a[k] *= det;
      }
    });
  }
};

}  // namespace

void register_adjugate(const Registrar& registrar) {
  registrar.kernel(BP_KERNEL("bp::adjugate", "cpu", lapack_kernel<Adjugate>, .dtypes = kLapackTypes));
}

}  // namespace backplane::cpu

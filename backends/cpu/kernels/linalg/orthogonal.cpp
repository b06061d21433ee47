// qr and singular values.
//
// The row-major matrix A is its transpose to LAPACK, whose LQ factors are R and Q by rows, and whose left singular
// vectors are the rows of Vh: nothing is transposed.
#include <cstring>

#include "kernels/families.hpp"
#include "kernels/linalg/matrix_batch.hpp"

namespace backplane::cpu {
namespace {

using lapack::Int;

// Where result i of matrix `at` goes: NULL where nobody wants it.
template <class T>
T* result_at(const bp_value& slot, int64_t at, int64_t size) {
  return slot.tag == BP_TAG_TENSOR ? reinterpret_cast<T*>(data_of(slot.u.t)) + at * size : nullptr;
}

template <class T>
void set_identity(T* x, int64_t n) {
  std::fill_n(x, n * n, T(0));
  for (int64_t i = 0; i < n; ++i) x[i * n + i] = 1;
}

// ---- qr ----

struct QrSizes {
  int64_t m, n, k, q;  // x is m x n; k = min(m, n); Q has q columns, R q rows
};

// R by rows: the lower triangle of LAPACK's L, with zeros in the place of its reflectors.
template <class T>
void store_r(const QrSizes& s, const T* l, T* r) {
  std::memcpy(r, l, static_cast<size_t>(s.k * s.n) * sizeof(T));
  for (int64_t i = 0; i < s.q; ++i) std::fill_n(r + i * s.n, i < s.k ? i : s.n, T(0));
}

template <class T>
void qr_matrix(const QrSizes& s, const T* x, T* q, T* r, T* copy, T* tau, T* work, Int lwork) {
  // The factorisation may run in Q's own memory where that is of x's form.
  T* l = s.q == s.n && q != nullptr ? q : copy;
  std::memcpy(l, x, static_cast<size_t>(s.m * s.n) * sizeof(T));
  lapack::gelqf(static_cast<Int>(s.n), static_cast<Int>(s.m), l, tau, work, lwork);
  if (r != nullptr) store_r(s, l, r);
  if (q == nullptr) return;
  if (l != q)
    for (int64_t row = 0; row < s.m; ++row) std::copy_n(l + row * s.n, std::min(s.n, s.q), q + row * s.q);
  lapack::unglq(static_cast<Int>(s.q), static_cast<Int>(s.m), static_cast<Int>(s.k), q, tau, work, lwork);
}

// qr_reduced(Tensor x) -> (Q, R), and qr_complete
template <bool Complete>
struct Qr {
  template <class T>
  static void run(const bp_frame* frame, const bp_value* args, bp_value* outs) {
    const MatrixBatch x(frame, plugin::as_tensor(args[0]));
    const int64_t k = std::min(x.rows, x.cols);
    const QrSizes s{x.rows, x.cols, k, Complete ? x.rows : k};
    T query[2] = {};
    if (k > 0) {
      lapack::gelqf(static_cast<Int>(s.n), static_cast<Int>(s.m), static_cast<T*>(nullptr), nullptr, &query[0], -1);
      lapack::unglq(static_cast<Int>(s.q), static_cast<Int>(s.m), static_cast<Int>(k), static_cast<T*>(nullptr),
                    nullptr, &query[1], -1);
    }
    const Int lwork = std::max(work_size(query[0]), work_size(query[1]));
    for_matrices(frame, x.count, 4 * s.m * s.n * k, [&](int64_t begin, int64_t end) {
      const Scratch<T> copy(x.size()), tau(k), work(lwork);
      for (int64_t i = begin; i < end; ++i) {
        T* q = result_at<T>(outs[0], i, s.m * s.q);
        if (k > 0)
          qr_matrix(s, x.at<T>(i), q, result_at<T>(outs[1], i, s.q * s.n), copy.get(), tau.get(), work.get(), lwork);
        else if (q != nullptr && s.q > 0)
          set_identity(q, s.q);
      }
    });
  }
};

// ---- singular values ----

enum class Vectors { kNone, kReduced, kFull };

// Sizes of the memory that LAPACK works in.
struct SvdWork {
  Int lwork, real, integers;

  template <class T>
  static SvdWork of(char job, int64_t m, int64_t n) {
    using R = lapack::Real<T>;
    const int64_t k = std::min(m, n), top = std::max(m, n);
    T query = 0;
    const Int ldvt = static_cast<Int>(std::max<int64_t>(job == 'A' ? m : k, 1));
    lapack::gesdd(job, static_cast<Int>(n), static_cast<Int>(m), static_cast<T*>(nullptr), static_cast<R*>(nullptr),
                  static_cast<T*>(nullptr), static_cast<T*>(nullptr), ldvt, &query, -1, static_cast<R*>(nullptr),
                  static_cast<Int*>(nullptr));
    const int64_t real = job == 'N' ? 7 * k : k * std::max(5 * k + 7, 2 * top + 2 * k + 1);
    return {work_size(query), static_cast<Int>(real), static_cast<Int>(8 * k)};
  }
};

// svd_reduced(Tensor x) -> (U, S, Vh), svd_full(Tensor x) -> (U, S, Vh), and svdvals(Tensor x) -> S
template <Vectors kind>
struct Svd {
  template <class T>
  static void run(const bp_frame* frame, const bp_value* args, bp_value* outs) {
    using R = lapack::Real<T>;
    constexpr bool kValues = kind == Vectors::kNone;
    const MatrixBatch x(frame, plugin::as_tensor(args[0]));
    const int64_t m = x.rows, n = x.cols, k = std::min(m, n);
    const int64_t u_cols = kind == Vectors::kFull ? m : k, v_rows = kind == Vectors::kFull ? n : k;
    constexpr char kJob = kValues ? 'N' : kind == Vectors::kFull ? 'A' : 'S';
    const SvdWork sizes = k > 0 ? SvdWork::of<T>(kJob, m, n) : SvdWork{1, 1, 1};
    for_matrices(frame, x.count, 20 * m * n * k, [&](int64_t begin, int64_t end) {
      const Scratch<T> a(m * n), spare_u(kValues ? 1 : m * u_cols), spare_v(kValues ? 1 : v_rows * n),
          work(sizes.lwork);
      const Scratch<R> spare_s(k), rwork(sizes.real);
      const Scratch<Int> iwork(sizes.integers);
      for (int64_t i = begin; i < end; ++i) {
        T *u = spare_u.get(), *v = spare_v.get();
        R* s = result_at<R>(outs[kValues ? 0 : 1], i, k);
        if constexpr (!kValues) {
          if (outs[0].tag == BP_TAG_TENSOR) u = result_at<T>(outs[0], i, m * u_cols);
          if (outs[2].tag == BP_TAG_TENSOR) v = result_at<T>(outs[2], i, v_rows * n);
        }
        if (k == 0) {  // LAPACK leaves the vectors of an empty matrix alone
          if (kind == Vectors::kFull) set_identity(u, m), set_identity(v, n);
          continue;
        }
        require(frame, all_finite(x.at<T>(i), x.size()), x, i, "holds NaN or infinity; finite elements were expected");
        std::memcpy(a.get(), x.at<T>(i), static_cast<size_t>(x.size()) * sizeof(T));
        const Int info = lapack::gesdd(
            kJob, static_cast<Int>(n), static_cast<Int>(m), a.get(), s != nullptr ? s : spare_s.get(), v, u,
            static_cast<Int>(std::max<int64_t>(u_cols, 1)), work.get(), sizes.lwork, rwork.get(), iwork.get());
        require(frame, info == 0, x, i, "has singular values that did not converge");
      }
    });
  }
};

}  // namespace

const Family kOrthogonal([](const Registrar& registrar) {
  registrar.kernel(BP_KERNEL("bp::qr_reduced", "cpu", lapack_kernel<Qr<false>>, .dtypes = kLapackTypes));
  registrar.kernel(BP_KERNEL("bp::qr_complete", "cpu", lapack_kernel<Qr<true>>, .dtypes = kLapackTypes));
  registrar.kernel(BP_KERNEL("bp::svdvals", "cpu", lapack_kernel<Svd<Vectors::kNone>>, .dtypes = kLapackTypes));
  registrar.kernel(BP_KERNEL("bp::svd_reduced", "cpu", lapack_kernel<Svd<Vectors::kReduced>>, .dtypes = kLapackTypes));
  registrar.kernel(BP_KERNEL("bp::svd_full", "cpu", lapack_kernel<Svd<Vectors::kFull>>, .dtypes = kLapackTypes));
});

}  // namespace backplane::cpu

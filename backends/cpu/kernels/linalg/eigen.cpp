// Eigenvalues and eigenvectors: eigh and eigvalsh of Hermitian matrices, eig and eigvals of general ones.
//
// Eigenvectors have norm 1; their phases are LAPACK's.
#include <cstring>

#include "kernels/families.hpp"
#include "kernels/linalg/matrix_batch.hpp"

namespace backplane::cpu {
namespace {

using lapack::Int;
constexpr const char* kFinite = "holds NaN or infinity; finite elements were expected";
constexpr const char* kConverged = "has eigenvalues that did not converge";

struct EigenWork {
  Int lwork, real, integers;

  template <class T>
  static EigenWork of(char job, int64_t n) {
    using R = lapack::Real<T>;
    T work = 0;
    R real = 0;
    Int integer = 0;
    lapack::heevd(job, static_cast<Int>(n), static_cast<T*>(nullptr), static_cast<R*>(nullptr), &work, -1, &real, -1,
                  &integer, -1);
    return {work_size(work), std::max<Int>(work_size(real), 1), integer};
  }
};

// eigh(Tensor x) -> (eigenvalues, eigenvectors), eigvalsh(Tensor x) -> eigenvalues
template <bool Vectors>
struct Hermitian {
  template <class T>
  static void run(const bp_frame* frame, const bp_value* args, bp_value* outs) {
    using R = lapack::Real<T>;
    const MatrixBatch x(frame, plugin::as_tensor(args[0]));
    x.require_square(frame);
    const int64_t n = x.rows;
    if (n == 0) return;
    constexpr char kJob = Vectors ? 'V' : 'N';
    const EigenWork sizes = EigenWork::of<T>(kJob, n);
    for_matrices(frame, x.count, 9 * n * n * n, [&](int64_t begin, int64_t end) {
      const Scratch<T> a(n * n), work(sizes.lwork);
      const Scratch<R> rwork(sizes.real), spare(n);
      const Scratch<Int> iwork(sizes.integers);
      for (int64_t i = begin; i < end; ++i) {
        require(frame, all_finite(x.at<T>(i), x.size()), x, i, kFinite);
        hermitian_part(x.at<T>(i), a.get(), n);
        R* w = outs[0].tag == BP_TAG_TENSOR ? reinterpret_cast<R*>(data_of(outs[0].u.t)) + i * n : spare.get();
        const Int info = lapack::heevd(kJob, static_cast<Int>(n), a.get(), w, work.get(), sizes.lwork, rwork.get(),
                                       sizes.real, iwork.get(), sizes.integers);
        require(frame, info == 0, x, i, kConverged);
        // LAPACK saw the conjugate, and has a column where we have a row.
        if constexpr (Vectors)
          if (outs[1].tag == BP_TAG_TENSOR)
            transpose_square(a.get(), reinterpret_cast<T*>(data_of(outs[1].u.t)) + i * n * n, n,
                             [](T v) { return conjugate(v); });
      }
    });
  }
};

// Eigenvalues of a real matrix come as parts, and of a conjugate pair the eigenvectors as parts of the first.
template <class R>
void store_values(int64_t n, const R* w, std::complex<R>* out) {
  for (int64_t j = 0; j < n; ++j) out[j] = {w[j], w[n + j]};
}
template <class R>
void store_vectors(int64_t n, const R* w, const R* v, std::complex<R>* out) {
  for (int64_t j = 0; j < n; ++j) {
    const bool pair = w[n + j] != 0 && j + 1 < n;
    for (int64_t i = 0; i < n; ++i) {
      const R re = v[j * n + i], im = pair ? v[(j + 1) * n + i] : 0;
      out[i * n + j] = {re, im};
      if (pair) out[i * n + j + 1] = {re, -im};
    }
    j += pair;
  }
}
template <class R>
void store_values(int64_t n, const std::complex<R>* w, std::complex<R>* out) {
  std::copy_n(w, n, out);
}
template <class R>
void store_vectors(int64_t n, const std::complex<R>*, const std::complex<R>* v, std::complex<R>* out) {
  transpose_square(v, out, n, [](std::complex<R> x) { return x; });
}

// eig(Tensor x) -> (eigenvalues, eigenvectors), eigvals(Tensor x) -> eigenvalues
template <bool Vectors>
struct General {
  template <class T>
  static void run(const bp_frame* frame, const bp_value* args, bp_value* outs) {
    using R = lapack::Real<T>;
    using C = std::complex<R>;
    const MatrixBatch x(frame, plugin::as_tensor(args[0]));
    x.require_square(frame);
    const int64_t n = x.rows;
    if (n == 0) return;
    constexpr char kJob = Vectors ? 'V' : 'N';
    // LAPACK writes to some of these also when it is only asked for the size of its work array.
    T query = 0, unused[2] = {};
    R unused_real[2] = {};
    lapack::geev(kJob, static_cast<Int>(n), unused, unused, unused, &query, -1, unused_real);
    for_matrices(frame, x.count, 25 * n * n * n, [&](int64_t begin, int64_t end) {
      const Scratch<T> a(n * n), v(Vectors ? n * n : 1), w(2 * n), work(work_size(query));
      const Scratch<R> rwork(2 * n);
      for (int64_t i = begin; i < end; ++i) {
        require(frame, all_finite(x.at<T>(i), x.size()), x, i, kFinite);
        transpose_square(x.at<T>(i), a.get(), n, [](T e) { return e; });
        const Int info = lapack::geev(kJob, static_cast<Int>(n), a.get(), w.get(), v.get(), work.get(),
                                      work_size(query), rwork.get());
        require(frame, info == 0, x, i, kConverged);
        if (outs[0].tag == BP_TAG_TENSOR) store_values(n, w.get(), reinterpret_cast<C*>(data_of(outs[0].u.t)) + i * n);
        if constexpr (Vectors)
          if (outs[1].tag == BP_TAG_TENSOR)
            store_vectors(n, w.get(), v.get(), reinterpret_cast<C*>(data_of(outs[1].u.t)) + i * n * n);
      }
    });
  }
};

}  // namespace

const Family kEigen([](const Registrar& registrar) {
  registrar.kernel(BP_KERNEL("bp::eigh", "cpu", lapack_kernel<Hermitian<true>>, .dtypes = kLapackTypes));
  registrar.kernel(BP_KERNEL("bp::eigvalsh", "cpu", lapack_kernel<Hermitian<false>>, .dtypes = kLapackTypes));
  registrar.kernel(BP_KERNEL("bp::eig", "cpu", lapack_kernel<General<true>>, .dtypes = kLapackTypes));
  registrar.kernel(BP_KERNEL("bp::eigvals", "cpu", lapack_kernel<General<false>>, .dtypes = kLapackTypes));
});

}  // namespace backplane::cpu

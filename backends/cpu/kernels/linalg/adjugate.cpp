// adjugate: the determinant times the inverse, which exists for singular matrices too.
//
// Of most regular matrices it is just that, from one LU factorisation. If the inverse does not exist, or a factor
// leaves the range of normal numbers, it comes from an elimination with pivots from the whole rest, whose last pivot
// is kept out of the determinant. Row-major matrices are transposes to LAPACK, which the adjugate does not mind.
#include <cstring>

#include "kernels/families.hpp"
#include "kernels/linalg/eliminated.hpp"

namespace backplane::cpu {
namespace {

// The factors `a` become determinant times inverse. False where digits may be lost on the way.
template <class T>
bool multiplied_inverse(int64_t n, T* a, Inverter<T>& inverter) {
  const int64_t count = n * n;
  T det = 1;
  bool whole = true;
  for (int64_t d = 0; d < n; ++d) {
    det *= inverter.pivots()[d] == d + 1 ? a[d * n + d] : -a[d * n + d];
    whole &= det != T(0) && has_all_digits(det);
  }
  inverter.invert(a);
  for (int64_t k = 0; k < count; ++k) {
    whole &= has_all_digits(a[k]);
    a[k] *= det;
    whole &= has_all_digits(a[k]);
  }
  return whole;
}

// adjugate(Tensor x)
struct Adjugate {
  template <class T>
  static void run(const bp_frame* frame, const bp_value* args, bp_value* outs) {
    const MatrixBatch x(frame, plugin::as_tensor(args[0])), out(frame, outs[0].u.t);
    x.require_square(frame);
    const int64_t n = x.rows;
    if (n == 0) return;
    for_matrices(frame, x.count, 2 * x.size() * n, [&](int64_t begin, int64_t end) {
      Inverter<T> inverter(n);
      for (int64_t i = begin; i < end; ++i) {
        T* a = out.at<T>(i);
        std::memcpy(a, x.at<T>(i), static_cast<size_t>(x.size()) * sizeof(T));
        if (!inverter.factor(a)) {
          Eliminated<T>(x.at<T>(i), n).store_adjugate(a);
          continue;
        }
        if (multiplied_inverse(n, a, inverter)) continue;
        if (all_finite(x.at<T>(i), x.size())) Eliminated<T>(x.at<T>(i), n).store_adjugate(a);
      }
    });
  }
};

}  // namespace

const Family kAdjugate([](const Registrar& registrar) {
  registrar.kernel(BP_KERNEL("bp::adjugate", "cpu", lapack_kernel<Adjugate>, .dtypes = kLapackTypes));
});

}  // namespace backplane::cpu

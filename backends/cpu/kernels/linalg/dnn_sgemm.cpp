// See dnn_sgemm.hpp.
#ifdef BACKPLANE_ONEDNN

#include "kernels/linalg/dnn_sgemm.hpp"

#include <dnnl.hpp>

#include "runtime/blas.hpp"
#include "runtime/dnn.hpp"

namespace backplane::cpu {
namespace {

// Multiply-adds below which a call costs more than faster kernels gain: on OpenBLAS's without AVX-512, and with it.
constexpr int64_t kLeastWork = int64_t{1} << 17, kLeastWorkBesideAvx512 = int64_t{1} << 19;
// With both operands transposed oneDNN packs both, which few rows do not pay for, nor products of less than twice that.
constexpr int64_t kFewRows = 32;

}  // namespace

bool has_dnn_sgemm() {
  static const bool has = [] {
    const auto needed = static_cast<unsigned>(dnnl::cpu_isa::avx512_core);
    return (static_cast<unsigned>(dnnl::get_effective_cpu_isa()) & needed) == needed;
  }();
  return has;
}

bool dnn_sgemm(const Matrix& a, const Matrix& b, const Matrix& c, bool accumulate) {
  if (!has_dnn_sgemm()) return false;
  const BlasOperand x = blas_operand(a), y = blas_operand(b);
  const bool packs_both = x.transposed && y.transposed;
  const int64_t work = c.rows * c.cols * a.cols;
  if (work < (blas_has_avx512() ? kLeastWorkBesideAvx512 << packs_both : kLeastWork)) return false;
  if (packs_both && c.rows < kFewRows) return false;
  const DnnCall call;
  return dnnl_sgemm(x.transposed ? 'T' : 'N', y.transposed ? 'T' : 'N', c.rows, c.cols, a.cols, 1.0F,
                    reinterpret_cast<const float*>(a.data), x.leading, reinterpret_cast<const float*>(b.data),
                    y.leading, accumulate ? 1.0F : 0.0F, reinterpret_cast<float*>(c.data),
                    leading_of_rows(c)) == dnnl_success;
}

}  // namespace backplane::cpu

#endif

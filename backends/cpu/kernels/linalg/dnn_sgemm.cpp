// See dnn_sgemm.hpp.
#ifdef BACKPLANE_ONEDNN

#include "kernels/linalg/dnn_sgemm.hpp"

#include <cblas.h>

#include <algorithm>
#include <dnnl.hpp>
#include <string_view>

#include "runtime/dnn.hpp"

namespace backplane::cpu {
namespace {

// Multiply-adds below which a call costs more than faster kernels gain.
constexpr int64_t kLeastWork = int64_t{1} << 17;
// With both operands transposed oneDNN packs both, which few rows do not pay for.
constexpr int64_t kFewRows = 32;

// OpenBLAS says what it has chosen by name alone.
const bool kBlasLacksAvx512 = [] {
  const auto needed = static_cast<unsigned>(dnnl::cpu_isa::avx512_core);
  if ((static_cast<unsigned>(dnnl::get_effective_cpu_isa()) & needed) != needed) return false;
  const std::string_view chosen = openblas_get_corename();
  constexpr std::string_view kWith[] = {"SkylakeX", "Cooperlake", "SapphireRapids"};
  return std::find(std::begin(kWith), std::end(kWith), chosen) == std::end(kWith);
}();

}  // namespace

bool dnn_sgemm(const Matrix& a, const Matrix& b, const Matrix& c, bool accumulate) {
  if (!kBlasLacksAvx512 || c.rows * c.cols * a.cols < kLeastWork) return false;
  const BlasOperand x = blas_operand(a), y = blas_operand(b);
  if (x.transposed && y.transposed && c.rows < kFewRows) return false;
  const DnnCall call;
  return dnnl_sgemm(x.transposed ? 'T' : 'N', y.transposed ? 'T' : 'N', c.rows, c.cols, a.cols, 1.0F,
                    reinterpret_cast<const float*>(a.data), x.leading, reinterpret_cast<const float*>(b.data),
                    y.leading, accumulate ? 1.0F : 0.0F, reinterpret_cast<float*>(c.data),
                    leading_of_rows(c)) == dnnl_success;
}

}  // namespace backplane::cpu

#endif

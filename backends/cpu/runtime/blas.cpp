// See blas.hpp.
#include "runtime/blas.hpp"

#include <cblas.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <string_view>

// What OpenBLAS's own start and end call, where it was built for many processors; its headers do not declare them. The
// first looks at the environment, and at the processor.
extern "C" {
__attribute__((weak)) void gotoblas_dynamic_init();
__attribute__((weak)) void gotoblas_dynamic_quit();
}

namespace backplane::cpu {
namespace {

// OpenBLAS's name for better kernels than the `chosen` ones, or null.
const char* better_kernels([[maybe_unused]] std::string_view chosen) {
#ifdef __x86_64__
  // What 0.3.21 takes for processors that it does not know: kernels for SSE3, or on AMD's for AVX2.
  const bool fallback = chosen == "Prescott";
  if (!fallback && chosen != "Haswell") return nullptr;
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl")) {
    return "SkylakeX";
  }
  if (fallback && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return "Haswell";
#endif
  return nullptr;
}

}  // namespace

void set_up_blas() {
  openblas_set_num_threads(1);
  constexpr const char* kVariable = "OPENBLAS_CORETYPE";
  const char* better = better_kernels(openblas_get_corename());
  if (better == nullptr || gotoblas_dynamic_init == nullptr || gotoblas_dynamic_quit == nullptr ||
      std::getenv(kVariable) != nullptr || setenv(kVariable, better, 0) != 0) {
    return;
  }
  gotoblas_dynamic_quit();  // forgets the choice, and nothing else
  gotoblas_dynamic_init();
  unsetenv(kVariable);  // processes that this one starts may have another OpenBLAS
}

bool blas_has_avx512() {
  static const bool has = [] {
    const std::string_view chosen = openblas_get_corename();
    constexpr std::string_view kWith[] = {"SkylakeX", "Cooperlake", "SapphireRapids"};
    return std::find(std::begin(kWith), std::end(kWith), chosen) != std::end(kWith);
  }();
  return has;
}

}  // namespace backplane::cpu

// OpenBLAS as this backend uses it: on the calling thread alone, by the best kernels that it has for the processor.
#pragma once

namespace backplane::cpu {

// Before the first product. The host's pool is then the only one on the cores; and an OpenBLAS that is older than the
// processor, and has taken kernels without its vector instructions, is switched to better ones, unless the user has
// named some (OPENBLAS_CORETYPE).
void set_up_blas();

// Whether OpenBLAS's current kernels use AVX-512.
bool blas_has_avx512();

}  // namespace backplane::cpu

// The simulator's kernels: one table of rows per file of this folder. Primitives only: everything else reaches the
// devices by decomposition.
#pragma once

#include "../call.hpp"

namespace sim {

Table convert_kernels();
Table elementwise_kernels();
Table creation_kernels();
Table reduction_kernels();
Table matmul_kernels();
Table indexing_kernels();
Table placement_kernels();
Table sort_kernels();
Table random_kernels();

inline auto all_kernels() {
  return std::array{creation_kernels(),  convert_kernels(), elementwise_kernels(),
                    reduction_kernels(), matmul_kernels(),  indexing_kernels(),
                    placement_kernels(), sort_kernels(),    random_kernels()};
}

}  // namespace sim

// What kernels along an axis receive; the same text for nvcc and for the host's compiler.
#pragma once

#include "runtime/arguments.hpp"

namespace backplane::cuda {

// Lines cut into chunks of `chunk_size` elements; the last may be shorter. With more than one, the best of
// each go to `partial`, [line][chunk], 16 bytes for each.
struct ArgExtreme {
  Lines lines;
  char* partial;
  uint32_t chunks;
  int64_t chunk_size;
};

}  // namespace backplane::cuda

// Copies between two strided regions of one shape and dtype.
#pragma once

#include <cstdint>

#include "backplane/abi/host.h"

namespace backplane::cpu {

struct Region {
  char* data;
  const int64_t* strides;  // in elements
};

// Neighbouring axes that lie alike on both sides are merged; long copies run in parallel. May throw plugin::Failed.
void copy_region(const bp_frame* frame, bp_dtype dtype, int32_t rank, const int64_t* shape, Region from, Region to);

}  // namespace backplane::cpu

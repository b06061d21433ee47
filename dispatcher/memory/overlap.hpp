// Do tensors share bytes? Pure.
#pragma once

#include "backplane/abi/value.h"

namespace backplane::core {

// kUnknown must be treated as kYes.
enum class Overlap { kNo, kYes, kUnknown };
Overlap overlap(const bp_tensor& a, const bp_tensor& b);  // of one storage, by bounds then by strides; exact for
                                                          // all but tangled strides
bool self_overlaps(const bp_tensor& a);                   // two indices may address one element (zero strides, windows)

}  // namespace backplane::core

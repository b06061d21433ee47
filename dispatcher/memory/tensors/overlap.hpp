// Do tensors share bytes? Pure.
#pragma once

#include "backplane/abi/value.h"

namespace backplane::core {

// kUnknown must be treated as kYes.
enum class Overlap { kNo, kYes, kUnknown };
Overlap overlap(const bp_tensor& a, const bp_tensor& b);  // of one storage, by bounds then by strides; exact for
                                                          // all but tangled strides
bool self_overlaps(const bp_tensor& a);                   // two indices may address one element (zero strides, windows)

// Of one storage: see clashes.
bool clashes_within(const bp_tensor& target, const bp_tensor& input, bool in_place);

// Of one storage: the same bytes in the same order?
bool same_layout(const bp_tensor& a, const bp_tensor& b);

// Would a kernel that writes `target` overwrite unread elements of `input`? For the same elements, only one that
// does not run in place.
inline bool clashes(const bp_tensor& target, const bp_tensor& input, bool in_place) {
  if (target.storage != input.storage) return false;
  return &target == &input ? !in_place : clashes_within(target, input, in_place);
}

}  // namespace backplane::core

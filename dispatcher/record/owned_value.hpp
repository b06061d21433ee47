// Values that own their contents, as formulas and calls return them.
//
// TENSOR: one reference. TENSOR_LIST: the array, from `make_owned_list`, and a reference per element that is not NULL.
// Every other tag owns nothing. The holder of such a value releases it once, from any thread.
#pragma once

#include <cstdlib>
#include <new>

#include "backplane/abi/value.h"

namespace backplane::core {

// A TENSOR_LIST of `count` NULLs. Throws std::bad_alloc.
inline bp_value make_owned_list(uint32_t count) {
  void* array = std::calloc(count ? count : 1, sizeof(bp_tensor*));
  if (!array) throw std::bad_alloc();
  bp_value value{};
  value.tag = BP_TAG_TENSOR_LIST;
  value.count = count;
  value.u.p = array;
  return value;
}
inline bp_tensor** owned_tensors(const bp_value& list) { return const_cast<bp_tensor**>(list.u.tensors); }

// Leaves ABSENT behind.
template <class Release>
void release_owned(bp_value& value, Release release) {
  if (value.tag == BP_TAG_TENSOR) {
    release(value.u.t);
  } else if (value.tag == BP_TAG_TENSOR_LIST) {
    for (uint32_t i = 0; i < value.count; ++i)
      if (value.u.tensors[i]) release(value.u.tensors[i]);
    std::free(const_cast<void*>(value.u.p));
  }
  value = bp_value{};
}

}  // namespace backplane::core

// Copies of a call's values other than tensors, with their strings and lists in memory of the owner: a node, a
// view's record.
#pragma once

#include <cstddef>
#include <cstring>

#include "backplane/abi/value.h"

namespace backplane::core {

// Of what a value points to, rounded up to what keeps the next one aligned.
inline size_t extra_bytes(const bp_value& v) {
  switch (v.tag) {
    case BP_TAG_STRING:
      return (v.count + 8u) & ~size_t{7};
    case BP_TAG_COMPLEX:
      return 2 * sizeof(double);
    case BP_TAG_GENERATOR:
      return sizeof(bp_generator_state);
    case BP_TAG_INT_LIST:
      return v.count * sizeof(int64_t);
    case BP_TAG_FLOAT_LIST:
      return v.count * sizeof(double);
    case BP_TAG_BOOL_LIST:
      return (v.count + 7u) & ~size_t{7};
    case BP_TAG_VALUE_LIST:
      return v.count * sizeof(bp_value);
    default:
      return 0;
  }
}

// What a value points to moves behind `place`.
inline bp_value copy_plain(const bp_value& v, char*& place) {
  bp_value copy = v;
  size_t bytes = extra_bytes(v);
  if (bytes == 0) return copy;
  size_t exact = v.tag == BP_TAG_STRING ? v.count + 1u : v.tag == BP_TAG_BOOL_LIST ? v.count : bytes;
  std::memcpy(place, v.u.p, exact);
  copy.u.p = place;
  place += bytes;
  return copy;
}

// The same type and the same bits, including strings and lists.
inline bool same_plain(const bp_value& a, const bp_value& b) {
  if (a.tag != b.tag || a.flags != b.flags || a.count != b.count) return false;
  switch (a.tag) {
    case BP_TAG_ABSENT:
      return true;
    case BP_TAG_STRING:
    case BP_TAG_BOOL_LIST:
      return std::memcmp(a.u.p, b.u.p, a.count) == 0;
    case BP_TAG_VALUE_LIST:
      for (uint32_t i = 0; i < a.count; ++i)
        if (a.u.values[i].tag != b.u.values[i].tag || a.u.values[i].u.i != b.u.values[i].u.i) return false;
      return true;
    default:
      return extra_bytes(a) != 0 ? std::memcmp(a.u.p, b.u.p, extra_bytes(a)) == 0 : a.u.i == b.u.i;
  }
}

}  // namespace backplane::core

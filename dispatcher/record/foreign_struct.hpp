// Structs that come from a plugin, of an older or newer minor: read within their own size, with their flags understood.
#pragma once

#include <algorithm>
#include <cstring>

#include "backplane/abi/base.h"
#include "backplane/error.hpp"

namespace backplane::core {

// In this minor's form: fields that the writer lacks are zero, fields that only the writer knows are left out.
// `smallest`: the size that every writer has.
template <class Struct>
Struct read_struct(const Struct& given, size_t smallest, const char* what) {
  const uint32_t size = given.header.struct_size;
  BP_CHECK(size >= smallest && size <= BP_MAX_STRUCT_SIZE && size % 8 == 0, VERSION, what, ": its struct_size is ",
           size, "; expected a multiple of 8 from ", smallest, " to ", BP_MAX_STRUCT_SIZE);
  Struct own{};
  std::memcpy(static_cast<void*>(&own), &given, std::min<size_t>(size, sizeof own));
  own.header.struct_size = static_cast<uint32_t>(std::min<size_t>(size, sizeof own));
  return own;
}

// The bits of a word whose flags lie side by side from the first on.
constexpr uint64_t flags_up_to(uint64_t last) { return 2 * last - 1; }

// `hints`: the bits of the word that may be unknown; see BP_HINTS_OF_32.
template <class... What>
void check_flags(uint64_t flags, uint64_t known, uint64_t hints, const What&... what) {
  const uint64_t unknown = flags & ~known & ~hints;
  BP_CHECK(!unknown, VERSION, what..., ": bit ", __builtin_ctzll(unknown),
           " of its flags is not known to this host of contract ", BP_ABI_MAJOR, ".", BP_ABI_MINOR,
           ", and must be understood; update backplane, or build for this contract with NEEDS_MINOR ", BP_ABI_MINOR);
}

}  // namespace backplane::core

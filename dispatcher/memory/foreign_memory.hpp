// Memory that another library or the caller describes by address, shape and strides: believed only where every element
// lies in one piece of the address space.
#pragma once

#include <cstdint>

#include "backplane/tensor.hpp"

namespace backplane::core {

struct ForeignMemory {
  void* begin;           // of the lowest element
  uint64_t size;         // bytes, to the end of the highest one
  uint64_t byte_offset;  // of the first element
};

// `strides` in elements, or nullptr: row-major. Throws Error with the function's name. Without elements nothing is
// asked of address and strides.
ForeignMemory foreign_memory(const char* function, void* data, uint64_t byte_offset, Shape shape,
                             const int64_t* strides, bp_dtype dtype);
// The same for memory that is only copied from: its elements need not be aligned.
ForeignMemory foreign_source(const char* function, void* data, uint64_t byte_offset, Shape shape,
                             const int64_t* strides, bp_dtype dtype);

}  // namespace backplane::core

#include "memory/foreign_memory.hpp"

#include <algorithm>

#include "record/dtype_rules.hpp"

namespace backplane::core {
namespace {

// Bytes from the first element to the lowest and to the highest one; false: more than 63 bits count.
bool reach(Shape shape, const int64_t* strides, int64_t item, int64_t& low, int64_t& high) {
  int64_t row = item;  // the stride of a row-major axis
  for (size_t i = shape.size(); i-- > 0;) {
    int64_t step = row, span;
    if (strides && __builtin_mul_overflow(strides[i], item, &step)) return false;
    if (__builtin_mul_overflow(step, shape[i] - 1, &span)) return false;
    int64_t& end = span < 0 ? low : high;
    if (__builtin_add_overflow(end, span, &end)) return false;
    if (!strides && __builtin_mul_overflow(row, shape[i], &row)) return false;
  }
  return true;
}

// Where a tensor without elements lies: kernels may count from there, which they may not from null.
alignas(64) char nowhere[64];

}  // namespace

ForeignMemory foreign_source(const char* function, void* data, uint64_t byte_offset, Shape shape,
                             const int64_t* strides, bp_dtype dtype) {
  const int64_t item = kItemSize[dtype];
  for (size_t i = 0; i < shape.size(); ++i)
    BP_CHECK(shape[i] >= 0, SHAPE, function, ": size ", shape[i], " of axis ", i, " is negative");
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return {nowhere, 0, 0};
  BP_CHECK(data, VALUE, function, ": the address of its data is null, and its shape has elements");
  int64_t low = 0, high = 0, bytes = item;
  BP_CHECK(reach(shape, strides, item, low, high), VALUE, function,
           ": a stride or the sum of several leads out of the ",
           "address space; expected strides in elements, within one piece of memory");
  for (const int64_t size : shape)
    BP_CHECK(!__builtin_mul_overflow(bytes, size, &bytes), MEMORY, function,
             ": its shape has more bytes of memory than 63 bits can count");
  // No memory exists below address 0 or above the last address.
  const auto address = reinterpret_cast<uintptr_t>(data);
  uintptr_t first, begin, end;
  const bool in_space = !__builtin_add_overflow(address, byte_offset, &first) &&
                        !__builtin_sub_overflow(first, static_cast<uint64_t>(-low), &begin) &&
                        !__builtin_add_overflow(first, static_cast<uint64_t>(high + item), &end);
  constexpr uint64_t kAddressSpace = uint64_t{1} << 57;  // the largest of a process, with five levels of page tables
  BP_CHECK(in_space && end <= kAddressSpace, VALUE, function, ": its ", -low + high + item, " bytes at ", data, " + ",
           byte_offset, " are not memory of a process; expected the address, offset and strides of its elements");
  return {reinterpret_cast<void*>(begin), static_cast<uint64_t>(high - low + item), static_cast<uint64_t>(-low)};
}

ForeignMemory foreign_memory(const char* function, void* data, uint64_t byte_offset, Shape shape,
                             const int64_t* strides, bp_dtype dtype) {
  const ForeignMemory memory = foreign_source(function, data, byte_offset, shape, strides, dtype);
  const uintptr_t first = reinterpret_cast<uintptr_t>(memory.begin) + memory.byte_offset;
  const auto alignment = std::min<uintptr_t>(kItemSize[dtype], 8);
  BP_CHECK(first % alignment == 0, VALUE, function, ": its first element is not aligned to ", alignment, " bytes, as ",
           kDtypeNames[dtype], " must be; copy it where it comes from");
  return memory;
}

}  // namespace backplane::core

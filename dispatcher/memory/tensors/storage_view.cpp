// Tensors over the storage of another tensor.
#include "memory/tensors/storage_view.hpp"

#include "memory/tensors/tensor_impl.hpp"
#include "record/dtype_rules.hpp"
#include "record/shape_rules.hpp"

namespace backplane {

namespace {

bp_storage* storage_of(const Tensor& tensor, const char* function) {
  bp_storage* storage = tensor.held()->storage;
  BP_CHECK(storage, VALUE, function, ": found a traced or transformed tensor, which has no storage");
  return storage;
}

// One past the last byte that an element takes; 0 without elements.
uint64_t end_of(const char* function, Shape shape, Shape strides, uint64_t item, uint64_t byte_offset) {
  uint64_t last = 0;
  bool overflow = false;
  for (size_t i = 0; i < shape.size(); ++i) {
    BP_CHECK(shape[i] >= 0 && strides[i] >= 0, VALUE, function, ": found size ", shape[i], " and stride ", strides[i],
             " of axis ", i, ", expected none below 0");
    if (shape[i] == 0) return 0;
    uint64_t reach = 0;
    overflow |= __builtin_mul_overflow(static_cast<uint64_t>(shape[i] - 1), static_cast<uint64_t>(strides[i]), &reach);
    overflow |= __builtin_add_overflow(last, reach, &last);
  }
  overflow |= __builtin_mul_overflow(last, item, &last);
  overflow |= __builtin_add_overflow(last, item, &last) || __builtin_add_overflow(last, byte_offset, &last);
  return overflow ? ~uint64_t{0} : last;
}

}  // namespace

void core::check_view(const char* function, bp_dtype dtype, Shape shape, Shape strides, uint64_t byte_offset,
                      uint64_t bytes) {
  BP_CHECK(dtype < BP_DTYPE_COUNT, DTYPE, function, ": argument dtype: found the unknown dtype ", dtype);
  BP_CHECK(shape.size() <= kMaxRank && strides.size() == shape.size(), SHAPE, function, ": found ", shape.size(),
           " sizes and ", strides.size(), " strides, expected as many of each and at most ", kMaxRank);
  const auto item = static_cast<uint64_t>(kItemSize[dtype]);
  BP_CHECK(byte_offset % item == 0, VALUE, function, ": argument byte_offset: found ", byte_offset,
           ", expected a multiple of the item size ", item);
  const uint64_t end = end_of(function, shape, strides, item, byte_offset);
  BP_CHECK(end <= bytes, VALUE, function, ": the last element ends at byte ", end, " of a storage of ", bytes,
           " bytes");
}

uint64_t storage_bytes(const Tensor& tensor) { return storage_of(tensor, "storage_bytes")->size; }

Tensor view_storage(const Tensor& base, bp_dtype dtype, Shape shape, Shape strides, uint64_t byte_offset) {
  bp_storage* storage = storage_of(base, "view_storage");
  core::check_view("view_storage", dtype, shape, strides, byte_offset, storage->size);
  core::retain(storage);
  return Tensor::adopt(core::new_tensor_over(storage, dtype, static_cast<int32_t>(shape.size()), shape.data(),
                                             strides.data(), byte_offset));
}

}  // namespace backplane

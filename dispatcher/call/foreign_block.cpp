// Tensors over blocks of other frameworks, and calls whose results lie in such blocks.
#include "backplane/foreign_block.hpp"

#include <algorithm>
#include <array>

#include "backplane/device.hpp"
#include "memory/devices/device.hpp"
#include "memory/foreign_storage.hpp"
#include "memory/process/epoch.hpp"
#include "memory/tensors/storage_view.hpp"
#include "memory/tensors/tensor_impl.hpp"
#include "record/dtype_rules.hpp"

namespace backplane {

using namespace core;

namespace {

std::vector<int64_t> row_major(Shape shape) {
  std::vector<int64_t> strides(shape.size());
  int64_t step = 1;
  for (size_t i = shape.size(); i-- > 0; step *= std::max<int64_t>(shape[i], 1)) strides[i] = step;
  return strides;
}

void check_block(const ForeignBlock& block, const Device& device, bp_dtype dtype, uint64_t byte_offset) {
  BP_CHECK(block.data, VALUE, "wrap_block: the block's data is null; expected what device ", name_of(device),
           " gives for its own blocks");
  const uint64_t granule = std::max<uint64_t>(device.properties.copy_granule, 1);
  BP_CHECK(block.bytes % granule == 0, VALUE, "wrap_block: found a block of ", block.bytes,
           " bytes, expected a multiple of ", granule, ", which device ", name_of(device), " copies at once");
  if (!(device.flags & BP_BACKEND_ADDRESSABLE)) return;
  const auto alignment = std::min<uint64_t>(static_cast<uint64_t>(kItemSize[dtype]), 8);
  BP_CHECK((reinterpret_cast<uintptr_t>(block.data) + byte_offset) % alignment == 0, VALUE,
           "wrap_block: the first element of dtype ", kDtypeNames[dtype], " is not aligned to ", alignment,
           " bytes; copy it where it comes from");
}

Tensor over(const ForeignBlock& block, bp_dtype dtype, Shape shape, Shape strides, uint64_t byte_offset, Device& device,
            const char* op) {
  check_view(op, dtype, shape, strides, byte_offset, block.bytes);
  bp_storage* owned = foreign_storage(device, block.data, block.bytes, block.owner, block.release, op);
  owned->read_only = block.read_only;
  return Tensor::adopt(
      new_tensor_over(owned, dtype, static_cast<int32_t>(shape.size()), shape.data(), strides.data(), byte_offset));
}

Device& usable_device(bp_device id) {
  Device& device = device_at(id);
  check_usable(device);
  return device;
}

}  // namespace

Tensor wrap_block(const ForeignBlock& block, bp_dtype dtype, Shape shape, Shape strides, uint64_t byte_offset,
                  bp_device id) {
  BP_CHECK(dtype < BP_DTYPE_COUNT, DTYPE, "wrap_block: argument dtype: found the number ", dtype,
           ", which no dtype has");
  CallGuard guard;
  Device& device = usable_device(id);
  check_block(block, device, dtype, byte_offset);
  const std::vector<int64_t> own = strides.empty() ? row_major(shape) : std::vector<int64_t>();
  return over(block, dtype, shape, strides.empty() ? Shape(own) : strides, byte_offset, device, "wrap_block");
}

std::vector<Tensor> call_into(OpHandle op, const bp_value* args, int32_t n_args, bp_device id,
                              const ResultAllocator& allocate) {
  const std::shared_ptr<const bp_op_def> def = hold_op_def(op);
  BP_CHECK(!(def->flags & (BP_OP_VIEW | BP_OP_MAYBE_VIEW)), NOT_IMPLEMENTED, "call_into: results of ", def->name,
           " may share memory with its arguments. Fix: call it with call_packed");
  Device& device = usable_device(id);
  const std::vector<InferredResult> inferred = infer(op, args, n_args);
  BP_CHECK(inferred.size() <= kMaxResults, INTERNAL, "call_into: ", def->name, " has ", inferred.size(), " results");
  std::vector<Tensor> results;
  for (const InferredResult& result : inferred) {
    int64_t count = 1;
    for (const int64_t size : result.shape) count *= size;
    const uint64_t bytes = static_cast<uint64_t>(count) * static_cast<uint64_t>(kItemSize[result.dtype]);
    if (bytes == 0) {
      results.push_back(empty(result.shape, result.dtype, id));
      continue;
    }
    const ForeignBlock block = allocate(bytes, id);
    try {
      CallGuard guard;
      BP_CHECK(block.bytes >= bytes && !block.read_only, VALUE, "call_into: found a block of ", block.bytes,
               " bytes that is ", block.read_only ? "read-only" : "writable", ", expected a writable one of at least ",
               bytes);
      check_block(block, device, result.dtype, 0);
      results.push_back(over(block, result.dtype, result.shape, row_major(result.shape), 0, device, "call_into"));
    } catch (...) {
      if (block.release) block.release(block.owner);
      throw;
    }
  }
  std::array<bp_value, kMaxResults> outs{};
  for (size_t i = 0; i < results.size(); ++i) {
    outs[i] = value(results[i]);
    outs[i].flags = BP_VALUE_GIVEN;
  }
  if (const bp_status status = call_packed(op, args, n_args, outs.data(), static_cast<int32_t>(results.size())))
    throw_last_error(status);
  return results;
}

}  // namespace backplane

// Memory of other frameworks as tensors on any device: no copy, and no wait of the host.
//
// Streams order the work: the calling thread's current stream (Stream::from_handle, StreamScope) must come behind what
// the framework has done to a block, and what the framework does next must come behind that stream. Stream::wait_native
// and Stream::record_native of stream.hpp do so with the vendor's events. Functions throw Error. Any thread may call
// them.
#pragma once

#include <functional>
#include <vector>

#include "backplane/op.hpp"
#include "backplane/tensor.hpp"

namespace backplane {

struct ForeignBlock {
  void* data = nullptr;  // as the backend's own blocks: an address, or the vendor's handle of a buffer
  uint64_t bytes = 0;
  // Runs once, on any thread, when no tensor is over the block and the work that uses it has ended. nullptr: the block
  // is lent, and its owner keeps it until the streams that use it have passed that work.
  void (*release)(void* owner) = nullptr;
  void* owner = nullptr;
  bool read_only = false;  // nothing may be written into the tensor
};

// A tensor over a block. Strides are in elements and not negative, one per axis, or none for row-major elements;
// `byte_offset` counts from the block's first byte. Bools must be the bytes 0 and 1. If it throws, the block is not
// released. Throws if an element lies outside the block, or is not aligned to its dtype or 8 bytes.
BACKPLANE_API Tensor wrap_block(const ForeignBlock& block, bp_dtype dtype, Shape shape, Shape strides,
                                uint64_t byte_offset, bp_device device);

// Memory of at least `bytes` bytes on `device`, for a result. Its contents are never read.
using ResultAllocator = std::function<ForeignBlock(uint64_t bytes, bp_device device)>;

// As call_packed, with results in blocks of `allocate`, which is called for each result in order before the op runs;
// not for one without elements. Arguments are on `device`. Throws Error(BP_ERROR_NOT_IMPLEMENTED) for an op whose
// results share memory with its arguments, or have shapes that depend on values.
BACKPLANE_API std::vector<Tensor> call_into(OpHandle op, const bp_value* args, int32_t n_args, bp_device device,
                                            const ResultAllocator& allocate);

}  // namespace backplane

// The host's side of a tensor handle: what follows the pinned head.
//
// A TensorImpl is counted by reference; shape, strides and dtype never change. Reference counts may be changed from any
// thread.
#pragma once

#include <atomic>
#include <cstdint>

#include "backplane/tensor.hpp"
#include "memory/process/plugin_record.hpp"
#include "memory/storage.hpp"

namespace backplane::core {

struct Node;        // tape/node.hpp
struct Autograd;    // memory/tensors/history.hpp
struct ViewRecord;  // memory/tensors/history.hpp
struct Wrapper;     // memory/tensors/history.hpp

inline constexpr int kInlineRank = 5;
// A bit of flags that is the host's own: a broadcast view, or a view of one, whatever its own strides. A write
// changes other elements too.
inline constexpr uint32_t kRepeats = 1u << 16;

struct TensorImpl : bp_tensor {
  std::atomic<uint32_t> refs{1};
  uint32_t node_output = 0;       // which result of `node` this is
  std::atomic<uint64_t> keys{0};  // functionality keys that it carries
  Node* node = nullptr;           // owned: the node that made it; nullptr for leaves
  Autograd* autograd = nullptr;   // owned: grad, hooks; nullptr while there is none
  ViewRecord* view = nullptr;     // owned: of a view, how it was made
  Wrapper* wrapper = nullptr;     // owned: of a transform's level
  int64_t inline_dims[2 * kInlineRank];

  // A reader of a view may give it its base's history while others read it.
  uint64_t keys_seen() const { return keys.load(std::memory_order_relaxed); }
  void set_keys(uint64_t now) { keys.store(now, std::memory_order_relaxed); }
};

inline TensorImpl* impl(bp_tensor* tensor) { return static_cast<TensorImpl*>(tensor); }
// Throws for an empty one.
inline TensorImpl* impl(const Tensor& tensor) { return static_cast<TensorImpl*>(tensor.held()); }

inline void retain(TensorImpl* tensor) noexcept { tensor->refs.fetch_add(1, std::memory_order_relaxed); }
void destroy(TensorImpl* tensor) noexcept;
// Gives back a reference; true for the last.
inline bool drop(TensorImpl* tensor) noexcept {
  // Sole owner: nobody else can add a reference, so the locked decrement is saved.
  return tensor->refs.load(std::memory_order_acquire) == 1 || tensor->refs.fetch_sub(1, std::memory_order_acq_rel) == 1;
}
inline void release(TensorImpl* tensor) noexcept {
  if (drop(tensor)) destroy(tensor);
}

// Row-major, uninitialised.
TensorImpl* new_tensor(Device& device, bp_dtype dtype, int32_t ndim, const int64_t* sizes);
// Over an existing storage, whose reference it takes over. `strides` nullptr: row-major.
TensorImpl* new_tensor_over(bp_storage* storage, bp_dtype dtype, int32_t ndim, const int64_t* sizes,
                            const int64_t* strides, uint64_t byte_offset);
// A second tensor over the same storage, without the history. It takes a reference to the storage.
TensorImpl* new_alias(const TensorImpl& tensor);
// No storage and no data: shape, dtype and device alone.
TensorImpl* new_handle(Device& device, bp_dtype dtype, int32_t ndim, const int64_t* sizes);

inline int64_t element_count(const bp_tensor& tensor) {
  int64_t count = 1;
  for (int32_t i = 0; i < tensor.dl.ndim; ++i) count *= tensor.dl.shape[i];
  return count;
}
inline bool same_shape(const bp_tensor& a, const bp_tensor& b) {
  if (a.dl.ndim != b.dl.ndim) return false;
  for (int32_t i = 0; i < a.dl.ndim; ++i)
    if (a.dl.shape[i] != b.dl.shape[i]) return false;
  return true;
}
inline bool same_device(const bp_tensor& a, const bp_tensor& b) {
  return a.backend == b.backend && a.ordinal == b.ordinal;
}
inline bool is_contiguous(const bp_tensor& t) { return (t.flags & BP_TENSOR_CONTIGUOUS) != 0; }
// Does who writes the tensor overwrite all that its storage holds?
inline bool covers_storage(const bp_tensor& t) { return is_contiguous(t) && t.nbytes == t.storage->size; }

}  // namespace backplane::core

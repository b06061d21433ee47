// Tensors over lent memory, whose handles serve many calls.
#include "backplane/borrowed_tensor.hpp"

#include <array>
#include <memory>
#include <vector>

#include "backplane/device.hpp"
#include "memory/foreign_memory.hpp"
#include "memory/new_tensor.hpp"

namespace backplane {

using namespace core;

namespace {

// Nobody else refers to it. A view refers to its base; an alias to the storage.
bool is_sole(const TensorImpl& t) {
  return t.refs.load(std::memory_order_acquire) == 1 && t.storage->refs.load(std::memory_order_acquire) == 1;
}

bool is_plain(const TensorImpl& t) { return !t.node && !t.autograd && !t.view && !t.wrapper && !t.keys_seen(); }

void set_dtype(TensorImpl* t, bp_dtype dtype) {
  t->dtype = dtype;
  t->dl.dtype = kDLDtypes[dtype];
}

// Row-major sizes and strides. False: there are no elements, or too many for what follows.
bool set_row_major(TensorImpl* t, Shape shape, int64_t& count) {
  constexpr int64_t kMostElements = int64_t{1} << 50;
  count = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    if (shape[i] <= 0 || shape[i] > kMostElements / count) return false;
    t->dl.shape[i] = shape[i];
    t->dl.strides[i] = count;
    count *= shape[i];
  }
  return true;
}

bool set_strided(TensorImpl* t, Shape shape, Shape strides, int64_t& count) {
  if (strides.size() != shape.size() || !set_row_major(t, shape, count)) return false;
  bool row_major = true;
  for (size_t i = 0; i < shape.size(); ++i) {
    row_major = row_major && (shape[i] == 1 || strides[i] == t->dl.strides[i]);
    t->dl.strides[i] = strides[i];
  }
  t->flags = row_major ? uint32_t{BP_TENSOR_CONTIGUOUS} : repeats(*t) ? kRepeats : 0;
  return true;
}

// Has it the form already, so that only its data move?
bool has_form(const TensorImpl& t, Shape shape, bp_dtype dtype) {
  if (t.dtype != dtype || t.flags != BP_TENSOR_CONTIGUOUS || t.dl.ndim != static_cast<int32_t>(shape.size()))
    return false;
  for (size_t i = 0; i < shape.size(); ++i)
    if (t.dl.shape[i] != shape[i]) return false;
  return t.nbytes != 0;
}

bool is_aligned(const void* data, bp_dtype dtype) {
  const auto alignment = static_cast<uintptr_t>(kItemSize[dtype] < 8 ? kItemSize[dtype] : 8);
  return (reinterpret_cast<uintptr_t>(data) & (alignment - 1)) == 0;
}

// Row-major elements from `data` on.
void set_data(TensorImpl* t, void* data, Lent lent) {
  bp_storage& storage = *t->storage;
  t->dl.data = storage.data = data;
  t->dl.byte_offset = 0;
  storage.size = t->nbytes;
  storage.read_only = lent == Lent::kRead;
  storage.version.store(storage.version.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

}  // namespace

const Tensor& BorrowedTensor::point(void* data, Shape shape, Shape strides, bp_dtype dtype, Lent lent) {
  const bool checks_bools = dtype == BP_BOOL && lent != Lent::kOverwritten;
  TensorImpl* t = static_cast<TensorImpl*>(tensor_.get());
  if (t && strides.empty() && data && !checks_bools && has_form(*t, shape, dtype) && is_sole(*t) && is_plain(*t) &&
      is_aligned(data, dtype)) {
    set_data(t, data, lent);
    return tensor_;
  }
  int64_t count;
  const bool fits = t && is_sole(*t) && is_plain(*t) && shape.size() <= kInlineRank && dtype < BP_DTYPE_COUNT &&
                    t->dl.shape == t->inline_dims && (!checks_bools || are_bools(data, shape, strides)) &&
                    (strides.empty() ? set_row_major(t, shape, count) : set_strided(t, shape, strides, count));
  if (!fits || !data) [[unlikely]] {
    tensor_ = Tensor();
    const bp_dtype checked = dtype == BP_BOOL && !checks_bools ? bp_dtype{BP_UINT8} : dtype;
    tensor_ = wrap_host(data, shape, strides, checked, nullptr, nullptr, lent == Lent::kRead);
    set_dtype(impl(tensor_), dtype);
    return tensor_;
  }
  t->dl.ndim = static_cast<int32_t>(shape.size());
  set_dtype(t, dtype);
  t->nbytes = static_cast<uint64_t>(count) * kItemSize[dtype];
  if (strides.empty() && is_aligned(data, dtype)) {
    t->flags = BP_TENSOR_CONTIGUOUS;
    set_data(t, data, lent);
  } else {
    const int64_t* steps = strides.empty() ? nullptr : strides.data();
    const ForeignMemory memory = foreign_memory("BorrowedTensor", data, 0, shape, steps, dtype);
    set_data(t, memory.begin, lent);
    t->dl.byte_offset = memory.byte_offset;
    t->storage->size = memory.size;
  }
  return tensor_;
}

bool BorrowedTensor::is_kept() const noexcept {
  return tensor_ && !is_sole(*static_cast<const TensorImpl*>(tensor_.get()));
}

namespace {

using Set = std::array<BorrowedTensor, BorrowedTensors::kCount>;

struct ThreadSets {
  std::vector<std::unique_ptr<Set>> kept;
  size_t used = 0;
};
thread_local constinit ThreadSets* thread_sets __attribute__((tls_model("initial-exec"))) = nullptr;

[[gnu::noinline]] void make_set() {
  thread_local ThreadSets own;
  thread_sets = &own;
  own.kept.push_back(std::make_unique<Set>());
}

}  // namespace

BorrowedTensors::BorrowedTensors() {
  if (!thread_sets || thread_sets->used == thread_sets->kept.size()) [[unlikely]]
    make_set();
  depth_ = thread_sets->used++;
  first_ = thread_sets->kept[depth_]->data();
}

BorrowedTensors::~BorrowedTensors() { thread_sets->used = depth_; }

}  // namespace backplane

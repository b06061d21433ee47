// Making tensors and moving their data: empty, from, to and over host memory, between devices.
#include "call/data.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <vector>

#include "backplane/borrowed_tensor.hpp"
#include "backplane/device.hpp"
#include "backplane/stream.hpp"
#include "call/dispatch.hpp"
#include "call/formulas/role_calls.hpp"
#include "memory/copy.hpp"
#include "memory/devices/device.hpp"
#include "memory/foreign_memory.hpp"
#include "memory/pinned.hpp"
#include "memory/process/epoch.hpp"
#include "memory/storage.hpp"
#include "memory/tensors/new_tensor.hpp"
#include "memory/transfer.hpp"
#include "record/dtype_rules.hpp"
#include "record/shape_rules.hpp"

namespace backplane {

using namespace core;

namespace {

void check_sizes(const char* who, Shape shape, bp_dtype dtype) {
  BP_CHECK(dtype < BP_DTYPE_COUNT, DTYPE, who, ": found the unknown dtype ", dtype);
  BP_CHECK(shape.size() <= kMaxRank, SHAPE, who, ": rank ", shape.size(), " exceeds ", kMaxRank);
  for (size_t i = 0; i < shape.size(); ++i)
    BP_CHECK(shape[i] >= 0, SHAPE, who, ": size ", shape[i], " of axis ", i, " is negative");
  int64_t count = checked_count(shape.data(), static_cast<int32_t>(shape.size()));
  BP_CHECK(count <= INT64_MAX / kItemSize[dtype], MEMORY, who, ": ", count, " elements of ", kDtypeNames[dtype],
           " exceed 2^63 bytes");
}

void check_strides(const char* who, Shape shape, Shape strides) {
  BP_CHECK(strides.empty() || strides.size() == shape.size(), VALUE, who, ": found ", strides.size(),
           " strides for a shape of ", shape.size(), " axes; expected one per axis, or none for row-major elements");
}

// Copies strided elements, given as strides in bytes, to row-major memory.
void gather(char* dst, const char* src, const int64_t* sizes, const int64_t* strides, int32_t ndim, int64_t item) {
  if (ndim == 0) {
    std::memcpy(dst, src, static_cast<size_t>(item));
    return;
  }
  int64_t inner = item;
  for (int32_t i = 1; i < ndim; ++i) inner *= sizes[i];
  if (ndim == 1 && strides[0] == item) {
    std::memcpy(dst, src, static_cast<size_t>(item * sizes[0]));
    return;
  }
  for (int64_t k = 0; k < sizes[0]; ++k)
    gather(dst + k * inner, src + k * strides[0], sizes + 1, strides + 1, ndim - 1, item);
}

constexpr uint64_t kNotBool = 0xfefefefefefefefe;  // of eight bools at once

bool row_of_bools(const char* bytes, int64_t n) noexcept {
  uint64_t found = 0;
  for (; n >= 8; n -= 8, bytes += 8) {
    uint64_t word;
    std::memcpy(&word, bytes, sizeof word);
    found |= word;
  }
  for (; n > 0; --n, ++bytes) found |= static_cast<unsigned char>(*bytes);
  return (found & kNotBool) == 0;
}

bool strided_bools(const char* bytes, const int64_t* sizes, const int64_t* strides, size_t ndim) noexcept {
  if (ndim == 0) return row_of_bools(bytes, 1);
  if (ndim == 1 && strides[0] == 1) return row_of_bools(bytes, sizes[0]);
  for (int64_t k = 0; k < sizes[0]; ++k)
    if (!strided_bools(bytes + k * strides[0], sizes + 1, strides + 1, ndim - 1)) return false;
  return true;
}

void make_bools(char* bytes, uint64_t n) {
  if (row_of_bools(bytes, static_cast<int64_t>(n))) return;
  for (uint64_t i = 0; i < n; ++i) bytes[i] = bytes[i] != 0;
}

Tensor contiguous(const Tensor& t) { return t.is_contiguous() ? t : roles::copy(impl(t), 0); }

// What `empty` gives, for a caller that writes every element: its bools need not be some before.
Tensor unwritten(const char* who, Shape shape, bp_dtype dtype, bp_device device) {
  check_sizes(who, shape, dtype);
  Device& d = device_at(device);
  check_usable(d);
  return Tensor::adopt(new_tensor(d, dtype, static_cast<int32_t>(shape.size()), shape.data()));
}

// Of a contiguous tensor: `fill` writes all of its bytes, on a device without host memory by way of a buffer.
template <class Fill>
void write_elements(const Tensor& t, const Fill& fill) {
  bp_storage* storage = t.get()->storage;
  const uint64_t nbytes = t.get()->nbytes;
  const bool direct = storage->device->host_memory();
  const std::unique_ptr<char[]> staging(direct ? nullptr : new char[nbytes]);
  char* bytes = direct ? static_cast<char*>(storage->data) : staging.get();
  fill(bytes);
  if (t.dtype() == BP_BOOL) make_bools(bytes, nbytes);
  if (!direct) copy_from_host(*storage->device, storage, 0, bytes, nbytes);
}

void require_data(const Tensor& t, const char* who) {
  BP_CHECK(t, VALUE, who, ": the tensor is empty");
  BP_CHECK(!(t.get()->flags & BP_TENSOR_WRAPPER), VALUE, who,
           ": a tensor inside a transform has no data of its own; return it from the transformed function first");
}

}  // namespace

Tensor empty(Shape shape, bp_dtype dtype, bp_device device) {
  CallGuard guard;
  Tensor made = unwritten("empty", shape, dtype, device);
  bp_storage& storage = *made.get()->storage;
  if (dtype == BP_BOOL && storage.device->host_memory()) std::memset(storage.data, 0, made.get()->nbytes);
  return made;
}

Tensor from_host(const void* data, Shape shape, Shape strides, bp_dtype dtype, bp_device device) {
  check_strides("from_host", shape, strides);
  CallGuard guard;
  Tensor result = unwritten("from_host", shape, dtype, device);
  const uint64_t nbytes = result.get()->nbytes;
  if (nbytes == 0) return result;
  BP_CHECK(data, VALUE, "from_host: the address of its elements is null, and its shape has ", nbytes,
           " bytes of them; expected the address of the first one");
  if (!strides.empty()) foreign_source("from_host", const_cast<void*>(data), 0, shape, strides.data(), dtype);
  bp_storage* storage = result.get()->storage;
  Device& d = *storage->device;
  if (strides.empty() && (dtype != BP_BOOL || are_bools(data, shape, {}))) {
    copy_from_host(d, storage, 0, data, nbytes);
    return result;
  }
  int64_t steps[kMaxRank];  // in bytes
  const int64_t* elements = strides.empty() ? result.strides().data() : strides.data();
  for (size_t i = 0; i < shape.size(); ++i) steps[i] = elements[i] * kItemSize[dtype];
  write_elements(result, [&](char* packed) {
    gather(packed, static_cast<const char*>(data), shape.data(), steps, result.ndim(), kItemSize[dtype]);
  });
  return result;
}

Tensor core::filled(const char* who, Shape shape, bp_dtype dtype, bp_device device,
                    const std::function<void(char*)>& fill) {
  CallGuard guard;
  Tensor result = unwritten(who, shape, dtype, device);
  if (result.get()->nbytes > 0) write_elements(result, fill);
  return result;
}

void to_host(const Tensor& tensor, void* dst) {
  require_data(tensor, "to_host");
  if (tensor.get()->nbytes == 0) return;
  BP_CHECK(dst, VALUE, "to_host: the address to write to is null; expected room for ", tensor.get()->nbytes, " bytes");
  CallGuard guard;
  Tensor packed = contiguous(tensor);
  core::copy_to_host(*packed.get()->storage->device, packed.get()->storage, packed.get()->dl.byte_offset, dst,
                     packed.get()->nbytes);
}

bool are_bools(const void* data, Shape shape, Shape strides) noexcept {
  const auto* bytes = static_cast<const char*>(data);
  if (!strides.empty()) return strided_bools(bytes, shape.data(), strides.data(), shape.size());
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  return row_of_bools(bytes, count);
}

Tensor wrap_host(void* data, Shape shape, Shape strides, bp_dtype dtype, void* owner, void (*release_owner)(void*),
                 bool read_only) {
  check_sizes("wrap_host", shape, dtype);
  check_strides("wrap_host", shape, strides);
  CallGuard guard;
  // The storage spans what the strides reach, which may lie before `data`.
  const int64_t* steps = strides.empty() ? nullptr : strides.data();
  const ForeignMemory memory = foreign_memory("wrap_host", data, 0, shape, steps, dtype);
  BP_CHECK(dtype != BP_BOOL || are_bools(data, shape, strides), VALUE,
           "wrap_host: found bools other than the bytes 0 and 1. Fix: copy them with from_host, which converts them");
  bp_storage* storage = wrap_storage(host_device(), memory.begin, memory.size, owner, release_owner);
  storage->read_only = read_only;
  return Tensor::adopt(new_tensor_over(storage, dtype, static_cast<int32_t>(shape.size()), shape.data(),
                                       memory.size ? steps : nullptr, memory.byte_offset));
}

// ---- tensors over lent memory, whose handles serve many calls ----------------------------------------------------

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

// Row-major sizes and strides. False: without elements, or with too many of them.
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

namespace {

// A tensor of the host over pinned memory, of the same shape and dtype.
Tensor pinned_like(const Tensor& tensor, BackendRecord& backend) {
  const bp_tensor& from = *tensor.get();
  bp_storage* storage = new_pinned(backend, std::max<uint64_t>(from.nbytes, 1));
  return Tensor::adopt(new_tensor_over(storage, tensor.dtype(), tensor.ndim(), from.dl.shape, nullptr, 0));
}

// Without waiting, between a device and memory that is pinned for it; empty: the two are not so.
Tensor copy_unwaited(const Tensor& packed, Device& source, bp_device device) {
  Device& target = device_at(device);
  bp_tensor& from = *packed.get();
  Tensor result;
  if (target.host_memory() && source.backend->extensions.pinned) {
    result = pinned_like(packed, *source.backend);
    copy_to_pinned(source, result.get()->storage, 0, from.storage, from.dl.byte_offset, from.nbytes);
  } else if (const PinnedBlock* block = pinned_block(*from.storage); block && block->backend == target.backend) {
    result = unwritten("to_device", packed.shape(), packed.dtype(), device);
    copy_from_pinned(target, result.get()->storage, 0, from.storage, from.dl.byte_offset, from.nbytes);
  }
  return result;
}

}  // namespace

Tensor to_device(const Tensor& tensor, bp_device device, bool non_blocking) {
  BP_CHECK(tensor, VALUE, "to_device: the tensor is empty");
  if (tensor.device().backend == device.backend && tensor.device().ordinal == device.ordinal) return tensor;
  require_data(tensor, "to_device");
  CallGuard guard;
  Tensor packed = contiguous(tensor);
  bp_tensor& from = *packed.get();
  Device& source = device_of(from);
  Tensor result;
  if (non_blocking && from.nbytes) result = copy_unwaited(packed, source, device);
  if (!result) {
    result = unwritten("to_device", packed.shape(), packed.dtype(), device);
    if (from.nbytes)
      copy_between(*result.get()->storage->device, result.get()->storage, 0, source, from.storage, from.dl.byte_offset,
                   from.nbytes);
  }
  device_copy_hook(tensor, result);
  return result;
}

Tensor to_device(const Tensor& tensor, bp_device device) { return to_device(tensor, device, false); }

Tensor pin(const Tensor& tensor, bp_device device) {
  BP_CHECK(tensor, VALUE, "pin: the tensor is empty");
  require_data(tensor, "pin");
  CallGuard guard;
  BackendRecord& backend = *device_at(device).backend;
  const PinnedBlock* block = is_pinned(tensor) ? pinned_block(*tensor.get()->storage) : nullptr;
  if (block && block->backend == &backend) return tensor;
  Tensor result = pinned_like(tensor, backend);
  to_host(tensor, result.get()->storage->data);
  device_copy_hook(tensor, result);
  return result;
}

bool is_pinned(const Tensor& tensor) noexcept {
  return tensor && tensor.get()->storage && pinned_block(*tensor.get()->storage);
}

int dtype_size(bp_dtype dtype) noexcept { return dtype < BP_DTYPE_COUNT ? kItemSize[dtype] : 0; }
const char* dtype_name(bp_dtype dtype) noexcept { return dtype < BP_DTYPE_COUNT ? kDtypeNames[dtype] : "none"; }
bp_dtype promote(bp_dtype a, bp_dtype b) noexcept {
  return a < BP_DTYPE_COUNT && b < BP_DTYPE_COUNT ? kPromotion[a][b] : static_cast<bp_dtype>(BP_DTYPE_NONE);
}

}  // namespace backplane

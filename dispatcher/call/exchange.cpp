// DLPack in and out. Export folds the byte offset for addressable backends and is refused for others; a capsule holds
// the storage and a lease on the plugin whose memory it is.
#include "backplane/device.hpp"

#include <cstring>
#include <memory>
#include <optional>

#include "memory/devices/device.hpp"
#include "memory/devices/stream.hpp"
#include "memory/foreign_memory.hpp"
#include "memory/foreign_storage.hpp"
#include "memory/process/epoch.hpp"
#include "memory/storage.hpp"
#include "memory/tensors/overlap.hpp"
#include "memory/tensors/tensor_impl.hpp"
#include "record/dtype_rules.hpp"

namespace backplane {

using namespace core;

namespace {

struct Export {
  DLManagedTensorVersioned managed{};
  TensorImpl* tensor;
  PluginRecord* owner;
};

void delete_export(DLManagedTensorVersioned* managed) {
  auto* exported = static_cast<Export*>(managed->manager_ctx);
  unlease(exported->owner, LeaseKind::kCapsule);
  core::release(exported->tensor);
  delete exported;
}

// nullptr: no loaded backend has it.
Device* find_device(int32_t type, int32_t ordinal) {
  for (uint32_t i = 0; i < backend_count(); ++i) {
    BackendRecord& backend = backend_at(i);
    if (backend.withdrawn || type == kDLExtDev) continue;
    for (auto& device : backend.devices)
      if (device->properties.dl_device_type == type && device->ordinal == ordinal) return device.get();
  }
  return nullptr;
}

Device& device_of_dlpack(const DLTensor& t) {
  int32_t type;  // any number may stand there, also one that is none of the enumeration's
  static_assert(sizeof type == sizeof t.device.device_type);
  std::memcpy(&type, &t.device.device_type, sizeof type);
  if (type == kDLCPU) return host_device();
  if (Device* device = find_device(type, t.device.device_id)) {
    BP_CHECK(device->flags & BP_BACKEND_ADDRESSABLE, VALUE, "from_dlpack: memory of device ", name_of(*device),
             " has no addresses; copy the tensor to the cpu device first");
    return *device;
  }
  detail::fail(BP_ERROR_VALUE, "from_dlpack: no loaded backend has DLPack device type ", type, ", number ",
               t.device.device_id, "; load its plugin first, or copy the tensor to host memory");
}

// The tensor over foreign memory; `owner` is released with `release_owner` when its storage dies.
Tensor import(const DLTensor& t, void* owner, void (*release_owner)(void*), bool read_only) {
  bp_dtype dtype = dtype_from_dlpack(t.dtype);
  BP_CHECK(dtype != BP_DTYPE_NONE, DTYPE, "from_dlpack: code ", int{t.dtype.code}, " with ", int{t.dtype.bits},
           " bits and ", t.dtype.lanes, " lanes is none of our dtypes");
  BP_CHECK(t.ndim >= 0 && t.ndim <= 64, SHAPE, "from_dlpack: rank ", t.ndim, " is not in 0..64");
  Device& device = device_of_dlpack(t);
  BP_CHECK(t.shape || t.ndim == 0, SHAPE, "from_dlpack: the address of its shape is null, and its rank is ", t.ndim);
  const Shape shape(t.shape, static_cast<size_t>(t.ndim));
  const ForeignMemory memory = foreign_memory("from_dlpack", t.data, t.byte_offset, shape, t.strides, dtype);
  // Of no elements they may be anything.
  const Shape strides = memory.size && t.strides ? Shape(t.strides, shape.size()) : Shape();
  const char* first = static_cast<char*>(memory.begin) + memory.byte_offset;
  if (dtype == BP_BOOL && device.host_memory() && !are_bools(first, shape, strides)) {
    Tensor copy = from_host(first, shape, strides, dtype, id_of(device));
    release_owner(owner);
    return copy;
  }
  if (memory.size == 0 && !device.shares_memory()) {  // kernels there bind a block, which no foreign tensor brings
    release_owner(owner);
    return Tensor::adopt(new_tensor(device, dtype, t.ndim, t.shape));
  }
  bp_storage* storage = foreign_storage(device, memory.begin, memory.size, owner, release_owner, "from_dlpack");
  storage->read_only = read_only;
  return Tensor::adopt(
      new_tensor_over(storage, dtype, t.ndim, t.shape, strides.empty() ? nullptr : t.strides, memory.byte_offset));
}

// Of the vendor's stream; one per handle. nullptr: the backend takes none.
Stream* stream_over(Device& device, void* handle) {
  const bp_extension_streams* streams = device.backend->extensions.streams;
  if (!streams || !streams->import_handle) return nullptr;
  current_stream(device);
  std::lock_guard lock(device.lock);
  for (const auto& stream : device.streams)
    if (stream->kind == Stream::Kind::kImported && stream->foreign == handle) return stream.get();
  return &new_stream_over(device, handle);
}

// The consumer's stream goes on once what the storage holds is there, and what reads it has ended; without a stream the
// host waits.
void put_behind_work(Device& device, bp_storage& storage, std::optional<void*> consumer) {
  Stream* stream = consumer ? stream_over(device, *consumer) : nullptr;
  std::vector<StorageUse> uses;
  {
    std::lock_guard lock(device.lock);
    storage.uses.each([&](const StorageUse& use) {
      if (stream)
        order_behind(*stream, use);
      else
        uses.push_back(use);
    });
    if (stream) {
      Work work{};
      depend_on(work, storage);
      issue(*stream, "to_dlpack", nullptr, 0, nullptr, 0);
      flush(*stream);
    }
  }
  for (const StorageUse& use : uses) wait_for(*use.stream, use.ticket);
  if (!stream) check_written(storage);
}

void check_managed(const void* managed) {
  BP_CHECK(managed, VALUE, "from_dlpack: the address of the managed tensor is null");
}

}  // namespace

DLManagedTensorVersioned* to_dlpack(const Tensor& tensor, const DlpackConsumer& consumer) {
  BP_CHECK(tensor, VALUE, "to_dlpack: the tensor is empty");
  BP_CHECK(
      !(tensor.get()->flags & BP_TENSOR_WRAPPER), VALUE,
      "to_dlpack: a tensor inside a transform has no data of its own; return it from the transformed function first");
  CallGuard guard;
  TensorImpl* t = impl(tensor);
  Device& device = *t->storage->device;
  BP_CHECK(device.flags & BP_BACKEND_ADDRESSABLE, VALUE, "to_dlpack: memory of device ", name_of(device),
           " has no addresses; copy the tensor to the cpu device first");
  if (!device.synchronous() && consumer.ordered) put_behind_work(device, *t->storage, consumer.stream);
  auto exported = std::make_unique<Export>();
  exported->tensor = t;
  exported->owner = device.backend->owner;
  DLManagedTensorVersioned& m = exported->managed;
  m.version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION};
  m.manager_ctx = exported.get();
  m.deleter = delete_export;
  // A write to an element that repeats would change others too.
  const bool repeats = (t->flags & kRepeats) || (!is_contiguous(*t) && self_overlaps(*t));
  m.flags = repeats || t->storage->read_only ? DLPACK_FLAG_BITMASK_READ_ONLY : 0;
  m.dl_tensor = t->dl;
  m.dl_tensor.data = t->nbytes == 0 ? nullptr : static_cast<char*>(t->dl.data) + t->dl.byte_offset;
  m.dl_tensor.byte_offset = 0;
  core::retain(t);
  lease(exported->owner, LeaseKind::kCapsule);
  return &exported.release()->managed;
}

std::optional<int64_t> dlpack_stream(int32_t type, int32_t ordinal) {
  Device* device = type == kDLCPU ? nullptr : find_device(type, ordinal);
  if (!device || device->synchronous()) return std::nullopt;
  const bp_extension_streams* streams = device->backend->extensions.streams;
  if (!streams || !streams->handle) return std::nullopt;
  Stream& stream = current_stream(*device);
  void* handle = nullptr;
  CallGuard guard;
  if (bp_status status = streams->handle(device->backend->def.context, device->ordinal, stream.handle, &handle))
    throw_device_error(*device, status, "handle of a stream");
  return static_cast<int64_t>(reinterpret_cast<intptr_t>(handle));
}

Tensor from_dlpack(DLManagedTensorVersioned* managed) {
  check_managed(managed);
  BP_CHECK(managed->version.major == DLPACK_MAJOR_VERSION, VERSION, "from_dlpack: the capsule has DLPack ",
           managed->version.major, ".", managed->version.minor, "; we read major ", DLPACK_MAJOR_VERSION);
  CallGuard guard;
  return import(
      managed->dl_tensor, managed,
      [](void* m) {
        auto* tensor = static_cast<DLManagedTensorVersioned*>(m);
        if (tensor->deleter) tensor->deleter(tensor);
      },
      (managed->flags & DLPACK_FLAG_BITMASK_READ_ONLY) != 0);
}

Tensor from_dlpack(DLManagedTensor* managed) {
  check_managed(managed);
  CallGuard guard;
  return import(
      managed->dl_tensor, managed,
      [](void* m) {
        auto* tensor = static_cast<DLManagedTensor*>(m);
        if (tensor->deleter) tensor->deleter(tensor);
      },
      true);
}

}  // namespace backplane

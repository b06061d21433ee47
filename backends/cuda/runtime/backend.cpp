// Devices, their primary contexts and their resets; see backend.hpp. The table is in table.cpp.
#include "runtime/backend.hpp"

#include <algorithm>

namespace backplane::cuda {

Device::Device(const Driver& driver, int32_t ordinal) : driver_(driver), modules_(driver) {
  check(driver_.cuDeviceGet(&handle_, ordinal), "cuDeviceGet");
  facts_ = std::make_unique<Facts>(driver_, handle_);
  multiprocessors_ = static_cast<uint32_t>(facts_->multiprocessors);
  use.limit = BP_NO_MEMORY_LIMIT;
  open();
}

Device::~Device() {
  close();
  (void)driver_.cuDevicePrimaryCtxRelease_v2(handle_);
}

void Device::open() {
  check(driver_.cuDevicePrimaryCtxRetain(&context_, handle_), "cuDevicePrimaryCtxRetain");
  callbacks_ = std::make_unique<Callbacks>(driver_, context_);
  clock_ = std::make_unique<Clock>(driver_);
}

// The context may be another library's too, so what was made in it is taken out. Callbacks end while the streams that
// they are on still live.
void Device::close() {
  driver::Context popped = nullptr;
  if (driver_.cuCtxPushCurrent_v2(context_) != driver::kSuccess) return;
  const auto streams = streams_.take_all();
  for (const auto& [key, stream] : streams) stream->drain();
  callbacks_.reset();
  recordings_.take_all();
  stamps_.take_all();
  blocks_.clear();
  clock_.reset();
  libraries_.close();
  modules_.unload();
  (void)driver_.cuCtxPopCurrent_v2(&popped);
}

void Device::reset() {
  close();
  check(driver_.cuDevicePrimaryCtxReset_v2(handle_), "cuDevicePrimaryCtxReset");
  check(driver_.cuDevicePrimaryCtxRelease_v2(handle_), "cuDevicePrimaryCtxRelease");
  open();
  std::lock_guard lock(mutex);
  use.in_use = use.reserved = use.peak = 0;
}

driver::Pointer Device::allocate(uint64_t size) {
  {
    std::lock_guard lock(mutex);
    BP_CHECK(use.reserved + size <= use.limit, MEMORY, "cuda: ", size, " bytes beside the ", use.reserved,
             " that are held would exceed the limit of ", use.limit, ". Fix: free tensors, or raise the limit");
  }
  driver::Pointer made = 0;
  check(driver_.cuMemAlloc_v2(&made, size), "cuMemAlloc");
  std::lock_guard lock(mutex);
  use.in_use = use.reserved += size;
  use.peak = std::max(use.peak, use.in_use);
  ++use.allocations;
  return made;
}

void Device::deallocate(driver::Pointer block, uint64_t size) {
  const driver::Result freed = driver_.cuMemFree_v2(block);
  {
    std::lock_guard lock(mutex);
    use.in_use = use.reserved -= size;
  }
  check(freed, "cuMemFree");
}

void Device::destroy(Stream& stream) {
  const std::unique_ptr<Stream> ended = streams_.take(stream);
  if (!ended) return;
  ended->drain();
  callbacks().wait(*ended);
}

Device& Backend::device(int32_t ordinal) {
  std::lock_guard lock(mutex_);
  const auto place = static_cast<size_t>(ordinal);
  if (devices_.size() <= place) devices_.resize(place + 1);
  if (!devices_[place]) devices_[place] = std::make_unique<Device>(the_driver(), ordinal);
  return *devices_[place];
}

// Others of the process may have opened it already.
void Backend::open_to_peer(int32_t ordinal, int32_t peer) {
  const driver::Context context = device(peer).context();
  std::lock_guard lock(mutex_);
  if (open_.contains({ordinal, peer})) return;
  const driver::Result opened = the_driver().cuCtxEnablePeerAccess(context, 0);
  if (opened != driver::kPeerAccessAlreadyEnabled) check(opened, "cuCtxEnablePeerAccess");
  open_.emplace(ordinal, peer);
}

// The first device's context has locked the pinned memory, which the others' copies may be using.
void Backend::reset(int32_t ordinal) {
  Device& target = device(ordinal);
  const bool locks = ordinal == 0 && !pinned_.empty();
  {
    std::lock_guard lock(mutex_);
    for (const auto& other : devices_) {
      if (!locks || !other || other.get() == &target) continue;
      const DeviceScope scope(*other);
      (void)the_driver().cuCtxSynchronize();  // a lost one uses nothing
    }
    std::erase_if(open_, [=](const auto& pair) { return pair.first == ordinal || pair.second == ordinal; });
  }
  target.reset();
  if (!locks) return;
  const DeviceScope scope(target);
  pinned_.lock_again();
}

}  // namespace backplane::cuda

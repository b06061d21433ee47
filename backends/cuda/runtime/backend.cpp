// Devices, their primary contexts and their resets; see backend.hpp. The table is in table.cpp.
#include "runtime/backend.hpp"

#include <algorithm>
#include <chrono>
#include <thread>

namespace backplane::cuda {
namespace {

constexpr auto kLongestReset = std::chrono::seconds(10);  // of CUDA's, for work that does not end

}  // namespace

Device::Device(const Driver& driver, int32_t ordinal) : driver_(driver) {
  check(driver_.cuDeviceGet(&handle_, ordinal), "cuDeviceGet");
  facts_ = std::make_unique<Facts>(driver_, handle_);
  multiprocessors_ = static_cast<uint32_t>(facts_->multiprocessors);
  use.limit = BP_NO_MEMORY_LIMIT;
  open();
}

// What a device that was given up has stays as it is: CUDA might wait for it without end.
Device::~Device() {
  if (aborted_.is_set()) {
    if (callbacks_) abandon();
    return;
  }
  close();
  (void)driver_.cuDevicePrimaryCtxRelease_v2(handle_);
}

void Device::open() {
  check(driver_.cuDevicePrimaryCtxRetain(&context_, handle_), "cuDevicePrimaryCtxRetain");
  modules_ = std::make_unique<Modules>(driver_);
  libraries_ = std::make_unique<Libraries>();
  callbacks_ = std::make_unique<Callbacks>(driver_, context_, aborted_);
  clock_ = std::make_unique<Clock>(driver_, aborted_);
}

// Other libraries may use the context too, so all objects made in it are removed. Callbacks end while the streams that
// they are on still live.
void Device::close() {
  driver::Context popped = nullptr;
  if (driver_.cuCtxPushCurrent_v2(context_) != driver::kSuccess) return;
  const auto streams = streams_.take_all();
  for (const auto& [key, stream] : streams) stream->drain();
  callbacks_.reset();
  recordings_.take_all();
  stamps_.take_all();
  blocks_.take_all();
  clock_.reset();
  libraries_->close();
  modules_->unload();
  (void)driver_.cuCtxPopCurrent_v2(&popped);
}

// Of a device that was given up. Nothing is ended one by one, since CUDA would wait for work that may never end, and
// may yet use what belongs to it: all ends with the context, and the objects stay.
void Device::abandon() {
  struct Remains {
    std::map<const Stream*, std::unique_ptr<Stream>> streams;
    std::map<const Stamp*, std::unique_ptr<Stamp>> stamps;
    std::map<const Recording*, std::unique_ptr<Recording>> recordings;
    std::map<void*, KindBlock> blocks;
    std::unique_ptr<Callbacks> callbacks;
    std::unique_ptr<Clock> clock;
    std::unique_ptr<Modules> modules;
    std::unique_ptr<Libraries> libraries;
  };
  static auto* all = new std::vector<std::unique_ptr<Remains>>();  // reachable, and never ended
  static std::mutex mutex;
  callbacks_->stop();
  std::lock_guard lock(mutex);
  all->push_back(std::make_unique<Remains>(streams_.take_all(), stamps_.take_all(), recordings_.take_all(),
                                           blocks_.take_all(), std::move(callbacks_), std::move(clock_),
                                           std::move(modules_), std::move(libraries_)));
}

// On a thread of its own, since CUDA may wait for the work that the device was given up for.
void Device::reset_context() {
  if (!resetting_.valid()) {
    std::packaged_task<driver::Result()> reset(
        [&driver = driver_, device = handle_] { return driver.cuDevicePrimaryCtxReset_v2(device); });
    resetting_ = reset.get_future().share();
    std::thread(std::move(reset)).detach();
  }
  BP_CHECK(resetting_.wait_for(kLongestReset) == std::future_status::ready, DEVICE,
           "cuda: work of the device does not end, and CUDA's own reset still waits for it after ",
           kLongestReset.count(), " s. Fix: reset it again later, or end the process");
  const driver::Result done = resetting_.get();
  resetting_ = {};
  check(done, "cuDevicePrimaryCtxReset");
}

void Device::reset() {
  if (aborted_.is_set()) {
    if (callbacks_) abandon();
    reset_context();
  } else {
    close();
    check(driver_.cuDevicePrimaryCtxReset_v2(handle_), "cuDevicePrimaryCtxReset");
  }
  check(driver_.cuDevicePrimaryCtxRelease_v2(handle_), "cuDevicePrimaryCtxRelease");
  open();
  aborted_.clear();
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

void Device::drain() {
  wait_until(aborted_, [this] { return streams_.all_of([](Stream& stream) { return stream.is_idle(); }); });
}

// CUDA's function waits for all work of the context, also where the device is given up meanwhile.
void Device::deallocate(driver::Pointer block, uint64_t size) {
  drain();
  const driver::Result freed = driver_.cuMemFree_v2(block);
  {
    std::lock_guard lock(mutex);
    use.in_use = use.reserved -= size;
  }
  check(freed, "cuMemFree");
}

void Device::destroy(Stream& stream) {
  std::unique_ptr<Stream> ended = streams_.take(stream);
  if (!ended) return;
  ended->drain();
  callbacks().wait(*ended);
  if (aborted_.is_set()) streams_.add(std::move(ended));  // for the reset, since its work may not have ended
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
  std::vector<Device*> others;
  {
    std::lock_guard lock(mutex_);
    for (const auto& other : devices_)
      if (locks && other && other.get() != &target) others.push_back(other.get());
    std::erase_if(open_, [=](const auto& pair) { return pair.first == ordinal || pair.second == ordinal; });
  }
  for (Device* other : others) {
    try {
      const DeviceScope scope(*other);
      other->drain();
    } catch (const Error&) {  // one that is lost or given up uses nothing
    }
  }
  target.reset();
  if (!locks) return;
  const DeviceScope scope(target);
  pinned_.lock_again();
}

}  // namespace backplane::cuda

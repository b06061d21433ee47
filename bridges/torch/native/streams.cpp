// Streams, events and the guard of the device. A thread's current stream is a StreamScope of Backplane that this thread
// opened last; 0 is the default stream.
#include "streams.hpp"

#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <c10/util/Exception.h>

#include <memory>
#include <mutex>
#include <unordered_map>

#include "device_tensors.hpp"

namespace backplane_torch {

namespace {

using backplane::Event;
using backplane::Stream;
using backplane::StreamScope;

std::mutex g_stream_lock;
std::unordered_map<int64_t, Stream>& streams() {
  static auto* table = new std::unordered_map<int64_t, Stream>;  // outlives every thread
  return *table;
}

struct CurrentStream {
  c10::StreamId id = 0;
  std::unique_ptr<StreamScope> scope;
};
thread_local std::unordered_map<c10::DeviceIndex, CurrentStream> t_streams;

c10::Stream as_torch(c10::DeviceIndex index, c10::StreamId id) {
  return c10::Stream(c10::Stream::UNSAFE, c10::Device(kDevice, index), id);
}

c10::DeviceIndex whole_index(c10::Device device) { return device.has_index() ? device.index() : current_device(); }

struct DeviceGuard final : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override { return kDevice; }
  c10::Device exchangeDevice(c10::Device device) const override {
    const c10::Device before = getDevice();
    setDevice(device);
    return before;
  }
  c10::Device getDevice() const override { return {kDevice, current_device()}; }
  void setDevice(c10::Device device) const override {
    TORCH_CHECK(device.type() == kDevice, "backplane.torch: found device ", device, ", expected one of ", kDevice);
    if (device.index() != current_device()) set_current_device(device.index());
  }
  void uncheckedSetDevice(c10::Device device) const noexcept override {
    if (device.index() >= 0 && device.index() < device_count()) set_current_device(device.index());
  }
  c10::Stream getStream(c10::Device device) const override { return current_stream(whole_index(device)); }
  c10::Stream getDefaultStream(c10::Device device) const override { return as_torch(whole_index(device), 0); }
  c10::Stream getStreamFromGlobalPool(c10::Device device, bool) const override {
    return new_stream(whole_index(device), 0);
  }
  c10::Stream getNewStream(c10::Device device, int priority) const override {
    return new_stream(whole_index(device), priority);
  }
  c10::Stream exchangeStream(c10::Stream stream) const override { return exchange_stream(stream); }
  c10::DeviceIndex deviceCount() const noexcept override { return static_cast<c10::DeviceIndex>(device_count()); }
  c10::DeviceCapability getDeviceCapability(c10::Device) const override { return {}; }

  void destroyEvent(void* event, c10::DeviceIndex) const noexcept override { delete static_cast<Event*>(event); }
  void record(void** event, const c10::Stream& stream, c10::DeviceIndex, c10::EventFlag) const override {
    guarded("Event.record", [&] {
      if (!*event) *event = new Event;
      static_cast<Event*>(*event)->record(stream_of(stream));
    });
  }
  void block(void* event, const c10::Stream& stream) const override {
    if (event) guarded("Event.wait", [&] { stream_of(stream).wait(*static_cast<Event*>(event)); });
  }
  bool queryEvent(void* event) const override {
    return !event || guarded("Event.query", [&] { return static_cast<Event*>(event)->query(); });
  }
  void synchronizeEvent(void* event) const override {
    if (event) guarded("Event.synchronize", [&] { static_cast<Event*>(event)->synchronize(); });
  }
  double elapsedTime(void* first, void* second, c10::DeviceIndex) const override {
    TORCH_CHECK(first && second, "Event.elapsed_time: both events must be recorded first");
    return guarded("Event.elapsed_time",
                   [&] { return static_cast<Event*>(first)->elapsed(*static_cast<Event*>(second)); });
  }
  bool queryStream(const c10::Stream& stream) const override {
    return guarded("Stream.query", [&] { return stream_of(stream).query(); });
  }
  void synchronizeStream(const c10::Stream& stream) const override {
    guarded("Stream.synchronize", [&] { stream_of(stream).synchronize(); });
  }
  void synchronizeDevice(c10::DeviceIndex index) const override {
    guarded("synchronize", [&] { backplane::synchronize(device_of(index)); });
  }
};

C10_REGISTER_GUARD_IMPL(PrivateUse1, DeviceGuard);

}  // namespace

Stream stream_of(const c10::Stream& stream) {
  const bp_device device = device_of(stream.device_index());
  if (stream.id() == 0) {
    // The default stream is the thread's own as long as no scope of this bridge is open.
    const auto found = t_streams.find(stream.device_index());
    if (found == t_streams.end() || found->second.id == 0) return Stream::current(device);
    std::unique_ptr<StreamScope> inner = std::move(found->second.scope);
    const c10::StreamId id = std::exchange(found->second.id, 0);
    inner.reset();
    const Stream base = Stream::current(device);
    exchange_stream(as_torch(stream.device_index(), id));
    return base;
  }
  std::lock_guard<std::mutex> lock(g_stream_lock);
  const auto found = streams().find(stream.id());
  TORCH_CHECK(found != streams().end(), "backplane.torch: found an unknown stream ", stream.id());
  return found->second;
}

c10::Stream current_stream(c10::DeviceIndex index) {
  const auto found = t_streams.find(index);
  return as_torch(index, found == t_streams.end() ? 0 : found->second.id);
}

c10::Stream exchange_stream(const c10::Stream& stream) {
  const c10::Stream before = current_stream(stream.device_index());
  if (before.id() == stream.id()) return before;
  CurrentStream& current = t_streams[stream.device_index()];
  current.scope.reset();
  current.id = 0;
  if (stream.id() != 0) {
    current.scope = guarded("stream", [&] { return std::make_unique<StreamScope>(stream_of(stream)); });
    current.id = stream.id();
  }
  return before;
}

c10::Stream new_stream(c10::DeviceIndex index, int priority) {
  return guarded("Stream", [&] {
    Stream made(device_of(index), priority);
    static int64_t next = 1;
    std::lock_guard<std::mutex> lock(g_stream_lock);
    streams().emplace(next, std::move(made));
    return as_torch(index, next++);
  });
}

}  // namespace backplane_torch

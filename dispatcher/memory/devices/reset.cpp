// Makes a lost device usable again. Its memory is gone, and tensors that point to it report this.
#include "backplane/stream.hpp"

#include <chrono>
#include <thread>

#include "memory/allocate.hpp"
#include "memory/devices/failures.hpp"
#include "memory/devices/loss.hpp"
#include "memory/devices/stream.hpp"
#include "memory/process/epoch.hpp"

namespace backplane {

using namespace core;

namespace {

// What nobody waits for any more.
struct Dropped {
  std::vector<std::function<void()>> callbacks;
  std::vector<std::shared_ptr<const void>> held;
};

// All earlier work counts as complete, and its completion callbacks run.
void retire_streams(Device& device, Dropped& dropped) {
  for (auto& stream : device.streams) {
    stream->retired = true;
    stream->completed = UINT64_MAX;
    lose_work(*stream);
    for (auto& [ticket, then] : stream->pending) dropped.callbacks.push_back(std::move(then));
    stream->pending.clear();
    stream->unseen.clear();
    device.retired.push_back(std::move(stream));
  }
  device.default_stream = nullptr;
  device.streams.clear();
  device.idle_streams.clear();
}

// Work of other devices that reads this one's memory ends before that goes. It waits for this device's work, which has
// ended by now if the backend can abort it; work that still waits is skipped.
void wait_for_readers(const Device& device) {
  constexpr auto kLongest = std::chrono::seconds(1);
  const auto end = std::chrono::steady_clock::now() + kLongest;
  for (Device* other = first_started(); other; other = other->next_started) {
    if (other == &device || other->synchronous()) continue;
    while (reads_from(*other, device) && std::chrono::steady_clock::now() < end)
      std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
}

// The streams go before the reset and the memory after it: until then the device may write where it was.
bp_status reset_in_backend(Device& device, Dropped& dropped) {
  std::lock_guard lock(device.lock);
  retire_streams(device, dropped);
  ++device.generation;
  device.pool = make_pool(device);
  bp_status status;
  {
    CallGuard guard;
    take_error();
    status = device.backend->extensions.reset->reset(device.backend->def.context, device.ordinal);
  }
  dropped.held = take_unneeded(device);
  return status;
}

}  // namespace

void reset_device(bp_device id) {
  Device& device = device_at(id);
  BP_CHECK(device.backend->extensions.reset, NOT_IMPLEMENTED, "reset: device ", name_of(device),
           " does not offer it (its backend has no extension \"reset\"). Fix: ",
           device.hangs ? "end the process, because unloading the plugin would wait for the device's work"
                        : "unload its plugin and load it again");
  BP_CHECK(!thread_state.inside(), BUSY, "reset: this thread is inside a call that uses device ", name_of(device),
           " or another one, which must end first. Fix: call reset after it has returned");
  // New calls are refused, and running ones end.
  if (!begin_reset(device)) return;
  Dropped dropped;
  try {
    abort_device(device);
    drain(device);
    wait_for_readers(device);
    if (const bp_status status = reset_in_backend(device, dropped); status != BP_OK)
      detail::fail(status, "device ", name_of(device), ": reset failed: ", take_cause());
  } catch (const Error& error) {
    end_reset(device, error.what());
    throw;
  }
  end_reset(device, "");
  for (const auto& then : dropped.callbacks) then();
}

}  // namespace backplane

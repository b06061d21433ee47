// A device that was lost comes back: what it had is gone, and what points to it says so.
#include "backplane/stream.hpp"

#include "memory/allocate.hpp"
#include "memory/epoch.hpp"
#include "memory/stream.hpp"

namespace backplane {

using namespace core;

namespace {

// All work of before counts as complete: nobody waits for it, and what was to follow it runs.
std::vector<std::function<void()>> retire_streams(Device& device) {
  std::vector<std::function<void()>> ready;
  for (auto& stream : device.streams) {
    stream->retired = true;
    stream->completed = UINT64_MAX;
    for (auto& [ticket, then] : stream->pending) ready.push_back(std::move(then));
    stream->pending.clear();
    stream->unfinished.clear();
    device.retired.push_back(std::move(stream));
  }
  device.default_stream = nullptr;
  device.streams.clear();
  device.idle_streams.clear();
  return ready;
}

}  // namespace

void reset_device(bp_device id) {
  Device& device = device_at(id);
  const bp_extension_reset* extension = device.backend->extensions.reset;
  BP_CHECK(extension, NOT_IMPLEMENTED, "reset: device ", name_of(device),
           " does not offer it (its backend has no extension \"reset\"). Fix: unload its plugin and load it again");
  // New calls are refused, and running ones end.
  mark_lost(device, "it is being reset");
  drain();
  std::vector<std::function<void()>> ready;
  bp_status status;
  {
    std::lock_guard lock(device.lock);
    ready = retire_streams(device);
    ++device.generation;
    device.pool = make_pool(device);
    CallGuard guard;
    take_error();
    status = extension->reset(device.backend->def.context, device.ordinal);
  }
  for (const auto& then : ready) then();
  if (status != BP_OK) {
    const std::string cause = take_error();
    detail::fail(status, "device ", name_of(device), ": reset failed: ", cause);
  }
  device.lost_cause.clear();
  device.lost = false;
}

}  // namespace backplane

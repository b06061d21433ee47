// Calls on devices: the ranks compare them on the host as all others, then the device provider records them.
#include <utility>

#include "interpreter.hpp"
#include "world.hpp"

namespace backplane::collectives {

bool World::takes_on_device(const bp_frame* frame, const bp_collective_call& call, std::string& reason) const {
  if (!devices_.start) {
    reason = "bp.distributed.init was called without `devices`";
    return false;
  }
  void* device = nullptr;
  if (frame->host->native(frame, devices_.device_kind, &device) != BP_OK) {
    reason = std::string(devices_.name) + " does not serve this device: it has no " + devices_.device_kind;
    return false;
  }
  if (devices_.supports(&call) == BP_OK) return true;
  reason = std::string(devices_.name) + ": " + devices_.error();
  return false;
}

void World::run_on_device(const bp_frame* frame, Group& group, const Request& request) {
  settle_order(frame->host, group);
  check_call(frame->host, group, request);
  if (request.call.count == 0) return;
  if (!group.devices) open_devices(frame, group, request.notice);
  if (group.device.backend != frame->backend || group.device.ordinal != frame->ordinal)
    fail(BP_ERROR_DEVICE, described(request.notice) + " on rank " + std::to_string(rank_) +
                              ": found a tensor of device number " + std::to_string(frame->ordinal) +
                              ", expected number " + std::to_string(group.device.ordinal) +
                              ": a rank uses one device in a group. Fix: x.to(device)");
  void* stream = nullptr;
  plugin::check_status(frame->host->native(frame, devices_.stream_kind, &stream));
  const Watched watched(*this, group, request.notice);
  uses_devices_.store(true, std::memory_order_release);
  const bp_status status = devices_.start(group.devices, &request.call, stream);
  if (status != BP_OK)
    fail(status, described(request.notice) + " on rank " + std::to_string(rank_) + ": " + devices_.name + ": " +
                     devices_.error());
}

// At the group's first call on devices, which all of its ranks make.
void World::open_devices(const bp_frame* frame, Group& group, const Notice& notice) {
  std::vector<char> id(devices_.id_bytes);
  const auto check_device = [&](bp_status status) {
    if (status != BP_OK)
      fail(status, "group " + group.name + " on rank " + std::to_string(rank_) + ": " + devices_.name + ": " +
                       devices_.error());
  };
  if (group.place == 0) check_device(devices_.make_id(id.data()));
  std::vector<char> received(id.size());
  bp_collective_call call{};
  call.header = BP_HEADER(bp_collective_call);
  call.kind = BP_COLLECTIVE_BROADCAST;
  call.dtype = BP_UINT8;
  call.count = id.size();
  call.in = id.data();
  call.out = received.data();
  exchange(frame->host, group, notice, call);
  void* device = nullptr;
  plugin::check_status(frame->host->native(frame, devices_.device_kind, &device));
  const Watched watched(*this, group, notice);
  const WithoutInterpreter unlocked;
  check_device(devices_.open(received.data(), group.place, group.size(), device, &group.devices));
  group.device.backend = frame->backend;
  group.device.ordinal = frame->ordinal;
}

// A device that waits for a lost rank holds up a program that waits for the device. Every look of the watcher.
void World::check_devices() {
  if (!uses_devices_.load(std::memory_order_acquire) || has_failed()) return;
  std::string lost = lost_ranks();
  if (!lost.empty()) lost += " was lost: its process has ended";
  {
    const std::unique_lock guard(groups_lock_, std::try_to_lock);
    if (guard.owns_lock() && lost.empty())
      for (const auto& [name, group] : groups_)
        if (group->devices && devices_.check(group->devices) != BP_OK)
          lost = "group " + name + ": " + devices_.name + ": " + devices_.error();
  }
  if (lost.empty()) return;
  // A program that calls a collective now finds the loss by itself, with its line.
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  if (has_failed()) return;
  end_by_failure("on rank " + std::to_string(rank_) + ", whose device may run a collective: " + lost);
}

void World::close_devices() {
  for (const auto& [name, group] : groups_) {
    if (!group->devices) continue;
    const WithoutInterpreter unlocked;
    const bp_status status = devices_.close(std::exchange(group->devices, nullptr));
    if (status != BP_OK) throw Error(status, "leave: " + std::string(devices_.name) + ": " + devices_.error());
  }
}

}  // namespace backplane::collectives

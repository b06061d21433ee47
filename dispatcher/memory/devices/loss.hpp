// A device's loss and its end: ready, failing, lost, resetting.
//
// A transition has one owner: who moves the state from ready to failing notes the cause, which is then the first and
// the only one; who moves it to resetting makes the device new. Any thread may ask; nobody waits under a lock.
#pragma once

#include <string>

#include "memory/devices/device.hpp"
#include "memory/process/epoch.hpp"

namespace backplane::core {

// The way out if a device hangs whose backend has no reset.
inline constexpr const char* kNoReset = "end the process: the device's backend cannot reset it (extension \"reset\")";

// Throws the device's first cause where it is not ready. Its plugin may be about to be unloaded.
inline void check_present(Device& device) {
  if (device.state.load(std::memory_order_acquire) != DeviceState::kReady) [[unlikely]]
    make_usable(device);
}
// After a call of the backend's that gave `status`, with its message.
inline void note_loss(Device& device, bp_status status) {
  if (status == BP_ERROR_DEVICE_LOST) mark_lost(device, cold().error);
}
// Why calls are refused; "": it is ready, or about to say.
std::string cause_of_loss(const Device& device);
// Under no lock. False: another thread has reset the device meanwhile.
bool begin_reset(Device& device);
// Of the thread that began it. With a cause: it failed, and the device stays lost.
void end_reset(Device& device, const std::string& failure);
// Ends what waits on the device, where its backend can. Beside any call.
void abort_device(Device& device) noexcept;
// Returns when the running calls have ended. Calls that wait for other devices, and their inner calls, are not
// waited for. Throws Error(BP_ERROR_BUSY) where they do not end.
void drain(const Device& device);

}  // namespace backplane::core

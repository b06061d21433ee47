#include "memory/devices/loss.hpp"

#include <algorithm>
#include <chrono>
#include <thread>

#include "backplane/error.hpp"
#include "memory/process/epoch.hpp"
#include "memory/process/foreign_call.hpp"

namespace backplane::core {
namespace {

using namespace std::chrono_literals;

constexpr auto kLongestDrain = 10s;  // of calls that nothing ends

}  // namespace

std::string cause_of_loss(const Device& device) {
  const std::shared_ptr<const std::string> cause = device.lost_cause.load(std::memory_order_acquire);
  return cause ? *cause : "it is being reset";  // and has no cause at that reset's begin and end
}

void make_usable(Device& device) {
  DeviceState state;
  while ((state = device.state.load(std::memory_order_acquire)) == DeviceState::kFailing) std::this_thread::yield();
  if (state != DeviceState::kReady)
    detail::fail(BP_ERROR_DEVICE_LOST, "device ", name_of(device), " is lost: ", cause_of_loss(device));
  BP_CHECK(!device.backend->withdrawn, DEVICE, "device ", name_of(device), ": its plugin \"",
           device.backend->owner->name, "\" was unloaded");
  if (device.fork_generation != fork_generation()) restart_after_fork(device);
}

void mark_lost(Device& device, const std::string& cause) {
  DeviceState expected = DeviceState::kReady;
  if (!device.state.compare_exchange_strong(expected, DeviceState::kFailing, std::memory_order_acq_rel)) return;
  device.lost_cause.store(std::make_shared<const std::string>(cause), std::memory_order_release);
  device.plain_dtypes.store(0, std::memory_order_relaxed);
  device.state.store(DeviceState::kLost, std::memory_order_release);
}

bool begin_reset(Device& device) {
  bool waited = false;
  for (;;) {
    DeviceState state = device.state.load(std::memory_order_acquire);
    if (state == DeviceState::kResetting || state == DeviceState::kFailing) {
      waited |= state == DeviceState::kResetting;
      std::this_thread::sleep_for(1ms);
      continue;
    }
    if (waited && state == DeviceState::kReady) return false;
    if (device.state.compare_exchange_strong(state, DeviceState::kResetting, std::memory_order_acq_rel)) break;
  }
  device.lost_cause.store(std::make_shared<const std::string>("it is being reset"), std::memory_order_release);
  device.plain_dtypes.store(0, std::memory_order_relaxed);
  return true;
}

void end_reset(Device& device, const std::string& failure) {
  if (!failure.empty()) {
    device.lost_cause.store(std::make_shared<const std::string>(failure), std::memory_order_release);
    device.state.store(DeviceState::kLost, std::memory_order_release);
    return;
  }
  device.lost_cause.store(nullptr, std::memory_order_release);
  device.hangs = false;
  device.plain_dtypes = plain_dtypes_of(device);
  device.state.store(DeviceState::kReady, std::memory_order_release);
}

void abort_device(Device& device) noexcept {
  const bp_backend_def& def = device.backend->def;
  if (!BP_HAS(&def, bp_backend_def, abort) || !def.abort) return;
  CallGuard guard;
  // The calls that it ends report its failure, too.
  (void)call_foreign("abort", [&] { return def.abort(def.context, device.ordinal); });
}

void drain(const Device& device) {
  const uint64_t timeout = device.wait_timeout.load(std::memory_order_relaxed);
  const auto end = std::chrono::steady_clock::now() +
                   std::max<std::chrono::nanoseconds>(kLongestDrain, std::chrono::nanoseconds(timeout));
  Grace grace;
  for (auto pause = std::chrono::microseconds(1); !grace.over(&device);
       pause = std::min<std::chrono::microseconds>(pause * 2, 1000us)) {
    BP_CHECK(std::chrono::steady_clock::now() < end, BUSY, "reset: calls of device ", name_of(device),
             " do not end, and its backend cannot end them: it lacks `abort` and `wait_for`. Fix: set a timeout "
             "with set_wait_timeout before the waits, or end the process");
    std::this_thread::sleep_for(pause);
  }
}

}  // namespace backplane::core

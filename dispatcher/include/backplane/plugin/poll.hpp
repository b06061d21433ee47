// Waiting with a deadline for what a vendor's interface can only be asked for: the slot `wait_for` of a device table.
#pragma once

#include <chrono>
#include <cstdint>
#include <thread>

namespace backplane::plugin {

// Calls `done()` until it is true or `timeout` nanoseconds have passed; returns its last result. Calls it at least
// once, and without pauses at first, because most work of a device is short. `without_pause`: for how long.
template <class Done>
bool poll_for(uint64_t timeout, Done done, std::chrono::nanoseconds without_pause = std::chrono::microseconds(200)) {
  using std::chrono::nanoseconds;
  constexpr nanoseconds kPause = std::chrono::microseconds(50);
  const auto start = std::chrono::steady_clock::now();
  while (!done()) {
    const nanoseconds passed = std::chrono::steady_clock::now() - start;
    if (static_cast<uint64_t>(passed.count()) >= timeout) return false;
    if (passed < without_pause)
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(kPause);
  }
  return true;
}

}  // namespace backplane::plugin

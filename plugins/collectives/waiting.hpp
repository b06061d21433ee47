// How a rank waits for others: it looks again and again, first at once, then with pauses in which it looks around.
#pragma once

#include <chrono>
#include <thread>

#include "interpreter.hpp"
#include "world.hpp"

namespace backplane::collectives {

// A wait that lasts. Other ranks can read what it waits for.
class World::Longer {
 public:
  Longer(World& world, const Wait& wait);
  ~Longer();
  Longer(const Longer&) = delete;
  // Throws where a rank is lost or has left, where ranks wait for each other, and at the deadline. Warns of late ranks.
  void look();
  // For a wait within the provider, which this rank cannot interrupt.
  void publish_once();

 private:
  void find_lost(const std::vector<int32_t>& missing);
  void publish(const std::vector<int32_t>& missing, double seconds);
  void check_deadline(const std::vector<int32_t>& missing, double seconds);
  void warn(const std::vector<int32_t>& missing, double seconds);

  World& world_;
  const Wait& wait_;
  const Clock::time_point start_ = Clock::now();
  const uint64_t number_;
  uint64_t looks_ = 0;
  double next_warning_ = kFirstWarning;
};

template <class Ready>
void World::wait_for(const Wait& wait, Ready ready) {
  constexpr int kWithoutPause = 512;  // looks of a wait, at most, before it gives Python's lock and the processor away
  constexpr auto kSpin = std::chrono::microseconds(30);  // where each rank has a processor, and is a process
  constexpr auto kBetweenLooks = std::chrono::milliseconds(20);
  constexpr auto kAwake = std::chrono::milliseconds(2);
  constexpr auto kBusy = std::chrono::microseconds(100);  // a yield that takes longer met other programs
  constexpr auto kPause = std::chrono::microseconds(50);
  // A look at the provider may take milliseconds on a busy machine.
  Clock::time_point first_looks;
  for (int i = 1; i <= kWithoutPause; ++i) {
    if (ready()) return;
    if (i < 8 || (i & (i - 1)) != 0) continue;
    const Clock::time_point now = Clock::now();
    if (i == 8) first_looks = now;
    if (now - first_looks > kSpin) break;
  }
  if (spins_)
    for (const Clock::time_point end = Clock::now() + kSpin; Clock::now() < end;)
      for (int i = 0; i < 64; ++i)
        if (ready()) return;
  const WithoutInterpreter unlocked;
  const Clock::time_point start = Clock::now();
  Longer longer(*this, wait);
  Clock::time_point awake_until = start + kAwake;
  for (Clock::time_point looked = start; !ready();) {
    check_failure(&wait.notice);
    const Clock::time_point now = Clock::now();
    if (now - looked >= kBetweenLooks) {
      longer.look();
      looked = now;
    }
    // On a busy machine a yield costs the turns of all others, and a short sleep little more than itself. Ranks that
    // have a processor each do not give it away at once: both would wait for their turns at every call.
    if (now >= awake_until) {
      std::this_thread::sleep_for(kPause);
    } else if (!spins_) {
      std::this_thread::yield();
      if (Clock::now() - now > kBusy) awake_until = now;
    }
  }
}

}  // namespace backplane::collectives

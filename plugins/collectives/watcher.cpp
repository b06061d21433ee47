// A thread for the case that a rank is lost while others are within a short call of the provider, or wait for a device
// that runs such a call: neither ever returns. It reports the loss and ends the process, since no exception can leave a
// call that does not return.
#include <unistd.h>

#include <cstdio>

#include "world.hpp"

namespace backplane::collectives {

World::Watched::Watched(World& world, const Group& group, const Notice& notice) : world(world) {
  world.watched_group_.store(&group, std::memory_order_relaxed);
  world.watched_notice_.store(&notice, std::memory_order_relaxed);
  world.watched_.fetch_add(1, std::memory_order_acq_rel);
}

World::Watched::~Watched() { world.watched_.fetch_add(1, std::memory_order_acq_rel); }

void World::watch() {
  uint64_t seen = 0;
  int looks = 0;
  std::unique_lock lock(end_lock_);
  while (!end_.wait_for(lock, std::chrono::milliseconds(100), [&] { return ends_; })) {
    const uint64_t now = watched_.load(std::memory_order_acquire);
    looks = now == seen && now % 2 == 1 ? looks + 1 : 0;
    seen = now;
    check_devices();
    if (looks < 2) continue;  // a fifth of a second within one call; launchers kill all ranks a second after a loss
    looks = 0;
    for (const int32_t rank : watched_group_.load()->ranks) {
      if (rank == rank_ || !is_lost(rank) || watched_.load(std::memory_order_acquire) != now) continue;
      std::fprintf(stderr, "backplane.DeviceError: %s on rank %d: rank %d was lost: its process has ended\n",
                   described(*watched_notice_.load()).c_str(), rank_, rank);
      std::fflush(stderr);
      _exit(1);
    }
  }
}

}  // namespace backplane::collectives

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
      const bool lost = rank != rank_ && (has_failed() || is_lost(rank));
      if (!lost || watched_.load(std::memory_order_acquire) != now) continue;
      end_by_failure(described(*watched_notice_.load()) + " on rank " + std::to_string(rank_) + ": rank " +
                     std::to_string(rank) + " was lost: its process has ended");
    }
  }
}

// A rank that has ended after it reported another's loss is not the first.
void World::end_by_failure(const std::string& text) {
  const std::string first = first_failure(BP_ERROR_DEVICE, text);
  std::fprintf(stderr, "backplane.DeviceError: %s\n", first.c_str());
  std::fflush(stderr);
  roll_.state(rank_).state.store(RankState::kRaised, std::memory_order_release);
  _exit(1);
}

}  // namespace backplane::collectives

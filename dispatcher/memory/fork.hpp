// What a fork does to the host: which process this is, and who restarts what in the child.
//
// In the child the thread list holds only the forking thread and the pool starts anew at its next use. A device that
// was used before the fork compares the generation in which it was opened with fork_generation(): where they differ,
// and its backend has no `after_fork`, it must refuse with an error that says "use spawn".
#pragma once

#include <atomic>
#include <cstdint>

namespace backplane::core {

extern std::atomic<uint32_t> fork_count;  // forks between the process that loaded the library and this one

inline uint32_t fork_generation() noexcept { return fork_count.load(std::memory_order_relaxed); }

}  // namespace backplane::core

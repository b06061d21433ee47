// Programs of several devices: what ran where, and whether the host may stand in for a device. Any thread may call
// anything here.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "backplane/tensor.hpp"

namespace backplane {

// How the calls of an op on a device were served. Composite ops and views do not have rows: a composite op runs as
// other ops, and a view does not compute.
struct Placement {
  std::string op;
  std::string device;
  std::string how;     // "kernel", "decomposition" (by other ops, which have rows of their own) or "host fallback"
  std::string plugin;  // of the kernel; "" else
  uint64_t calls;
};

// Counts every thread's calls from its making on. Meanwhile every call takes the slow path, which sees it.
class BACKPLANE_API PlacementScope {
 public:
  PlacementScope();
  ~PlacementScope();
  PlacementScope(const PlacementScope&) = delete;
  // So far; by op, then device. After end(), up to then.
  std::vector<Placement> rows() const;
  void end();  // a second time does nothing

 private:
  std::vector<Placement> before_, after_;
  bool ended_ = false;
};

// What becomes of a call for which a device has no kernel, of an op that may run on the host (`host: true`).
enum class HostFallback : uint8_t {
  kAllow,     // it runs there; counted
  kWarnOnce,  // and the log says so, once per op: the default
  kForbid     // a missing-kernel error
};
// Of the calling thread: its own, or else the process's.
BACKPLANE_API HostFallback host_fallback() noexcept;
// The process's, which BACKPLANE_HOST_FALLBACK (allow, warn, forbid) sets at the start. Returns the old one.
BACKPLANE_API HostFallback set_host_fallback(HostFallback policy) noexcept;
// The calling thread's own; none: the process's. Returns the old one.
BACKPLANE_API std::optional<HostFallback> set_thread_host_fallback(std::optional<HostFallback> policy) noexcept;

// The calling thread's own default device, before the process's (set_default_device), and whether vmap may loop there
// (allow_batch_loop). None: the process's. They return the old one.
BACKPLANE_API std::optional<bp_device> set_thread_default_device(std::optional<bp_device> device) noexcept;
BACKPLANE_API std::optional<bool> set_thread_batch_loop(std::optional<bool> allowed) noexcept;
BACKPLANE_API bool batch_loop_allowed() noexcept;
// Throws where there is no such device.
BACKPLANE_API void check_device(bp_device device);

}  // namespace backplane

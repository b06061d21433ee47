// Which ops a program calls, and how long they take. Functions throw Error.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backplane/tensor.hpp"

namespace backplane {

namespace core {
class ProfileRun;
}

struct ProfileEvent {
  std::string name;     // of the op, of the fused kernel with its ops, or of the range
  std::string kind;     // "op": a call; "kernel" and "region": a step of a compiled function; "range"
  std::string device;   // on which it ran; "" where no tensor says so, and of a range
  int depth;            // in how many others it lies
  int64_t begin, end;   // nanoseconds on the host, from the profile's start; a call ends when its work is recorded
  int64_t device_time;  // nanoseconds of the work itself, where the backend has a clock (extension "time"); else -1
  std::string line;     // file:line of the program; "" unknown
  int64_t bytes;        // read and written; -1 unknown, likewise
  int64_t flops;
  int64_t memory;  // bytes allocated on the device at the end, noted about once per millisecond; else -1
};

// Notes the calls that its thread makes while it runs: what a program calls, not what that is composed of. Compiled
// functions run as they do without it; their kernels are noted. Backends
// with the extension "profiler" see a range of the op's name around each. One at a time on a thread; without one calls
// cost nothing.
class BACKPLANE_API Profile {
 public:
  // Receives the results of each call, with the name of its op. An exception from it is thrown by the call.
  using Observer = std::function<void(const std::string& op, std::span<const Tensor> results)>;

  // Starts. `where`: file:line of the program, for each call. `observe`: in place of events; compiled functions run
  // call by call then.
  explicit Profile(std::function<std::string()> where = {}, Observer observe = {});
  ~Profile();  // ends it, on the same thread
  Profile(const Profile&) = delete;

  void end();  // and waits for the devices' times
  // A range of the program's own, around what follows until its end.
  void begin_range(const std::string& name);
  void end_range();
  const std::vector<ProfileEvent>& events() const;  // in the order of their begins, once it has ended

 private:
  std::shared_ptr<core::ProfileRun> run_;  // its thread holds it too, while it runs
};

}  // namespace backplane

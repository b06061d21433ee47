// Which ops a program calls, and how long they take. Functions throw Error.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "backplane/tensor.hpp"

namespace backplane {

namespace core {
class ProfileRun;
}

struct ProfileEvent {
  std::string name;     // of the op, or of the range
  std::string device;   // on which it ran; "" where no tensor says so, and of a range
  int depth;            // in how many others it lies
  int64_t begin, end;   // nanoseconds on the host, from the profile's start; a call ends when its work is recorded
  int64_t device_time;  // nanoseconds of the work itself, where the backend has a clock (extension "time"); else -1
};

// Notes the calls that its thread makes while it runs: what a program calls, not what that is composed of. Backends
// with the extension "profiler" see a range of the op's name around each. One at a time on a thread; without one calls
// cost nothing.
class BACKPLANE_API Profile {
 public:
  Profile();   // starts
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

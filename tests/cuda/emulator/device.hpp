// The emulated devices: streams, events and modules behind the driver's handles, and the order in which recorded work
// runs.
//
// Work waits on its stream until somebody waits or asks; then streams take turns in an order of the seed's, so that a
// program that forgot to make one stream wait for another reads what is not there yet. The one lock is held by every
// entry point.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <string>

#include "warp.hpp"

namespace emulator {

inline constexpr int kDevices = 2;

struct Event {
  uint64_t recorded = 0;  // how often
  uint64_t done = 0;      // the recording that has been reached
};

struct Stream {
  int device = 0;
  struct Task {
    std::function<void()> work;
    std::shared_ptr<Event> waits_for;  // of another stream
    uint64_t recording = 0;
  };
  std::deque<Task> tasks;
};

struct Context {
  int device = 0;
  int retained = 0;
  std::optional<Fault> lost;  // the first fault, given to every later call
};

class Device {
 public:
  static Device& instance();

  std::mutex mutex;
  std::mt19937_64 random;
  Context contexts[kDevices];
  std::set<std::unique_ptr<Stream>, std::less<>> streams;
  uint64_t calls = 0;    // of entry points
  uint64_t fail_at = 0;  // the call that is to fail
  int fail_with = 0;
  uint64_t launches = 0;

  void record(Stream& stream, std::function<void()> work);
  void wait_for(Stream& stream, std::shared_ptr<Event> event);
  // Runs work until `until` holds or nothing is left that could run.
  void run(const std::function<bool()>& until);
  void run_some();  // a few tasks: what a device does while a program asks
  // The thread's current context.
  std::vector<Context*>& current();

 private:
  Device();
  bool run_one();
};

}  // namespace emulator

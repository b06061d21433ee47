// The emulated devices: streams, events and graphs behind the driver's handles, and the order in which recorded work
// runs.
//
// Work waits on its stream until a caller waits or asks; then streams take turns in the seed's order, streams of a
// higher priority first, so that a program that forgot to make one stream wait for another reads what is not there yet.
// A function of the host runs on a thread of the driver's, which also gets the work before it done. A kernel that never
// ends holds its stream, and all who wait for it, until the reset of its context. The one lock is held by every entry
// point, and by nobody while a function of the host runs or while nothing can run.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "warp.hpp"

namespace emulator {

inline constexpr int kDevices = 2;

using Work = std::function<void()>;

// What a stream keeps instead of running it.
struct Capture {
  int mode = 0;
  std::thread::id thread;
  bool broken = false;
  std::vector<Work> works;
};

struct Event {
  int device = 0;
  bool timed = false;
  uint64_t recorded = 0;                         // how often
  uint64_t done = 0;                             // the recording that has been reached
  std::chrono::steady_clock::time_point time{};  // at which it was
  std::weak_ptr<Capture> capture;                // that the last recording is part of
};

struct Stream {
  int device = 0;
  int priority = 0;  // the smaller goes first
  struct Task {
    Work work;
    std::shared_ptr<Event> waits_for;
    uint64_t recording = 0;
    bool on_host = false;  // a function of the program's
  };
  std::deque<Task> tasks;
  bool busy = false;  // with the function of the host in front
  bool hung = false;  // the work in front never ends
  std::shared_ptr<Capture> capture;
};

// Work of several streams: it runs in the turn of the last of them, and no stream goes on before.
struct Joint {
  int size = 0;
  Work work;
  int recorded = 0, reached = 0;
  std::shared_ptr<Event> done = std::make_shared<Event>();
};

struct Graph {
  int device = 0;
  std::vector<Work> works;
};

struct Context {
  int device = 0;
  int retained = 0;
  std::optional<Fault> lost;  // the first fault, given to every later call
  uint32_t peers = 0;         // to whose memory there is access, a bit each
};

// What a kind of handle stands for. No handle is given twice, so that one of something destroyed is known as such.
template <class T>
class Handles {
 public:
  // The kind keeps handles of different ones apart.
  explicit Handles(uintptr_t kind) : first_(kind << 40), next_(first_) {}
  void* add(std::shared_ptr<T> made) {
    next_ += 16;
    living_[next_] = std::move(made);
    return reinterpret_cast<void*>(next_);
  }
  std::shared_ptr<T> find(const void* handle) const {
    const auto found = living_.find(reinterpret_cast<uintptr_t>(handle));
    return found == living_.end() ? nullptr : found->second;
  }
  void erase(const void* handle) { living_.erase(reinterpret_cast<uintptr_t>(handle)); }
  bool was_destroyed(const void* handle) const {
    const auto number = reinterpret_cast<uintptr_t>(handle);
    return number > first_ && number <= next_ && number % 16 == 0 && !living_.contains(number);
  }
  template <class Which>
  void erase_if(Which which) {
    std::erase_if(living_, [&](const auto& row) { return which(*row.second); });
  }
  const auto& living() const { return living_; }

 private:
  const uintptr_t first_;
  uintptr_t next_;
  std::unordered_map<uintptr_t, std::shared_ptr<T>> living_;
};

class Device {
 public:
  static Device& instance();

  std::mutex mutex;
  std::mt19937_64 random;
  Context contexts[kDevices];
  Handles<Stream> streams{1};
  Handles<Event> events{2};
  Handles<const Graph> graphs{3}, executables{4};
  uint64_t calls = 0;    // of entry points
  uint64_t fail_at = 0;  // the call that is to fail
  int fail_with = 0;
  uint64_t launches = 0;

  void record(Stream& stream, Work work);  // or captures it
  void record_on_host(Stream& stream, Work work);
  void wait_for(Stream& stream, std::shared_ptr<Event> event);
  // The stream's part of work that several streams do together: see services.hpp.
  void join(Stream& stream, std::shared_ptr<Joint> joint);
  // Runs work until `until` holds or nothing is left that could run.
  void run(const std::function<bool()>& until);
  void run_all() {
    run([] { return false; });
  }
  void run_some();        // a few tasks: what a device does while a program asks
  void drop(int device);  // all that waits on its streams, and what hangs there
  // The thread's current context.
  std::vector<Context*>& current();

 private:
  Device();
  bool run_one();
  bool is_ready(Stream& stream);
  bool is_hung() const;
  void clear(Stream& stream);
  [[noreturn]] void serve();

  std::condition_variable_any changed_;
  std::vector<std::shared_ptr<Stream>> on_host_;  // whose function in front is to run
  int busy_ = 0;             // streams with one that runs or is to, and joints that want more streams
  int waiting_on_host_ = 0;  // functions on all streams
  bool serving_ = false;     // the thread was started
};

}  // namespace emulator

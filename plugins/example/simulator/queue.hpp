// An in-order queue of work with its own thread: a stream of a simulated device.
//
// Work is numbered by the host's tickets, which never fall along a queue; several items may share one. Calls that
// record on one queue are serialised by the host; completed, wait and take_error may come from any thread. An item
// reports by exception: backplane::Error(BP_ERROR_DATA) fails that item alone, anything else loses the device.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "backplane/abi/base.h"

namespace sim {

struct DeferredError {
  uint64_t ticket;
  bp_status code;
  std::string message;
};

// Why a device takes no more work: the first fatal error, kept until it is reset. For tests of what follows one, the
// environment variable BACKPLANE_SIM_LOSE_AFTER=N makes the device fail so at the item after its first N.
class LostFlag {
 public:
  LostFlag();
  void set(const std::string& cause);
  std::optional<std::string> cause() const;
  void check() const;  // throws Error(BP_ERROR_DEVICE_LOST) with the first cause
  void clear();        // once no queue is left
  void burn_fuse();    // counts an item; throws std::runtime_error at the one that is to fail

 private:
  std::atomic<int64_t> fuse_;  // items left; negative: no end is set
  mutable std::mutex mutex_;
  std::optional<std::string> cause_;  // guarded by mutex_
};

// Decides which queues of a device run: those with work and the greatest priority. Running work is not
// interrupted.
class Turns {
 public:
  void enter(int32_t priority);
  void leave(int32_t priority);

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<int32_t, int> ready_;  // queues with an item that runs or may run, by priority; guarded by mutex_
};

class Queue : public std::enable_shared_from_this<Queue> {
 public:
  using Work = std::function<void()>;

  Queue(LostFlag& lost, Turns& turns, int32_t priority);  // both outlive the queue
  // Its work runs in the order of another queue's, on that one's thread.
  Queue(LostFlag& lost, Turns& turns, std::shared_ptr<Queue> base);
  ~Queue();  // finishes what is recorded
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;

  void record(uint64_t ticket, Work work);
  void record_always(uint64_t ticket, Work work);   // runs also where the device is lost
  void record_wait(Queue& other, uint64_t ticket);  // later items start after `ticket` of `other`
  void record_wait(uint64_t ticket, Work until);    // and these when `until` returns
  void run_and_wait(Work work);                     // in order, after all that is recorded
  void flush(uint64_t ticket);                      // nothing more will be recorded for `ticket` or lower

  uint64_t completed() const;
  // Gives the code of the oldest error up to `ticket`, which take_error then has. Throws on a lost device.
  bp_status wait(uint64_t ticket);
  // False: the time has ended before the ticket is complete.
  bool wait_for(uint64_t ticket, std::chrono::nanoseconds timeout);
  std::optional<DeferredError> take_error();

  // Work that is recorded between the two is kept, and does not run.
  void begin_capture();
  std::vector<Work> end_capture();

 private:
  enum class Kind { kWork, kWait, kAlways };  // kAlways: also where the device is lost
  struct Item {
    uint64_t ticket;
    Work work;
    Kind kind;
  };
  void add(uint64_t ticket, Work work, Kind kind);
  void run();
  void run_front(std::unique_lock<std::mutex>& lock);
  void execute(const Item& item);
  uint64_t completed_locked() const;
  void wait_completed(uint64_t ticket);

  LostFlag& lost_;
  Turns& turns_;
  const int32_t priority_;
  const std::shared_ptr<Queue> base_;
  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable recorded_;
  mutable std::condition_variable finished_;
  std::deque<Item> items_;  // the front one may be running
  uint64_t last_ticket_ = 0;
  uint64_t flushed_ = 0;
  bool closing_ = false;
  bool capturing_ = false;
  std::vector<Work> captured_;
  std::deque<DeferredError> errors_;
  std::thread thread_;  // last: starts when all else stands; none where there is a base
};

}  // namespace sim

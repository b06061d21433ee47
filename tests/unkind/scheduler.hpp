// Which queue of the unkind devices goes on, and what the host may count on meanwhile.
//
// Late, the default: nothing runs before somebody waits for it, polls, or has left flushed work alone for a
// millisecond; then one item after another, of queues that a seeded generator chooses. Eager: every queue runs as soon
// as it may, after random pauses. One scheduler for all devices of a backend; any thread may call.
//
// It looks at each call as the contract does: nothing is recorded under a ticket that was flushed, nobody waits for one
// that was not, and two items that touch the same bytes, one of them writing, have an order that the host made. What
// breaks that is a finding, whatever the schedule did.
#pragma once

#include <chrono>
#include <map>
#include <mutex>
#include <random>
#include <set>

#include "findings.hpp"
#include "plan.hpp"
#include "queue.hpp"

namespace unkind {

struct MemoryUse {
  uint64_t now, peak;
};

class Scheduler {
 public:
  Scheduler();
  ~Scheduler();
  Scheduler(const Scheduler&) = delete;

  void set(const Plan& plan);  // counts from zero again
  std::string counts() const;  // "work=12 allocations=3"
  Findings& findings() { return findings_; }

  std::shared_ptr<Queue> add_queue(Device& device, int32_t priority);
  void close(const std::shared_ptr<Queue>& queue);  // finishes what is recorded

  // `ticket` 0: of no call. Throws where the device is lost or the host breaks a rule.
  void record(Queue& queue, Item item);
  void record_wait(Queue& queue, Queue& source, uint64_t ticket);
  void run_and_wait(Queue& queue, Item item);
  void flush(Queue& queue, uint64_t ticket);
  uint64_t completed(Queue& queue);
  bp_status wait(Queue& queue, uint64_t ticket);
  // False: the time has ended first.
  bool wait_for(Queue& queue, uint64_t ticket, std::chrono::nanoseconds timeout);
  bool take_error(Queue& queue, DeferredError& error);
  void begin_capture(Queue& queue);
  std::vector<Item> end_capture(Queue& queue);

  // Memory; throws Error(BP_ERROR_MEMORY), also where the plan says so.
  void* allocate(Device& device, uint64_t size);
  // Also a block that was given and that work of `queue` alone may still use.
  void* take(Device& device, Queue& queue, uint64_t size);
  void release(Device& device, void* data);
  void give(Device& device, void* data, bp_stream* const* streams, const uint64_t* tickets, int32_t n);
  MemoryUse memory_use(Device& device) const;
  // Where the device's threads see the bytes; adds to `ranges`.
  char* resolve(Device& device, const sim::Touch& touch, std::vector<Range>& ranges);

  void lose(Device& device, const std::string& cause);
  void reset(Device& device);

 private:
  using Guard = std::unique_lock<std::mutex>;
  void run(Queue& queue);  // a queue's thread
  void tick();             // the scheduler's own thread
  void advance();          // lets queues run
  Queue* choose();
  void execute(Queue& queue, Item& item, Guard& lock);
  void add(Queue& queue, Item item);
  void check_order(Queue& queue, const Item& item);
  void check_alive(const Item& item);
  void know(Queue& queue, uint64_t ticket);  // the host does: it has completed
  void wait_until(Guard& lock, const std::function<bool()>& done);
  void release_given(Device& device);
  void lose_locked(Device& device, const std::string& cause);
  bool has_work() const;  // that may run or runs

  mutable std::mutex mutex_;  // guards what follows, and all queues and devices
  std::condition_variable finished_, worth_a_tick_;
  Plan plan_;
  std::mt19937_64 random_;
  std::map<uint32_t, std::shared_ptr<Queue>> queues_;
  std::set<Device*> devices_;
  uint32_t next_queue_ = 1;
  Clock known_;  // by the host
  int waiting_ = 0;
  int64_t credits_ = 0;  // items that may run although nobody waits
  Queue* running_ = nullptr;
  uint64_t steps_ = 0;
  int64_t works_ = 0, allocations_ = 0;
  bool closing_ = false;
  Findings findings_;
  std::thread ticker_;  // last: starts when all else stands
};

}  // namespace unkind

// A stream of an unkind device: an in-order list of items with a thread of its own, which runs one whenever the
// scheduler lets it.
//
// Data only, but for the thread; everything is guarded by the scheduler's mutex. Items are numbered by `seq`. What
// comes before an item by the host's calls alone is its Clock.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "backplane/abi/base.h"
#include "call.hpp"
#include "clock.hpp"

namespace unkind {

using Work = std::function<void()>;
struct Device;
class Scheduler;
struct Queue;

struct DeferredError {
  uint64_t ticket;
  bp_status code;
  std::string message;
};

// Bytes of a block that an item touches.
struct Range {
  Device* device;
  uint64_t block;  // Block::id
  uint64_t begin, end;
  bool writes;
};

struct Item {
  enum class Kind { kWork, kWait, kCallback };
  Kind kind = Kind::kWork;
  uint64_t ticket = 0;
  uint64_t seq = 0;
  std::string what;
  Work work;
  std::vector<Range> ranges;
  std::shared_ptr<Queue> source;  // kWait: behind `source_ticket` of it
  uint64_t source_ticket = 0;
  bool awaited = false;  // a call of the table's waits for it
};

struct Queue : std::enable_shared_from_this<Queue> {
  Queue(Scheduler& of, Device& on, uint32_t number, int32_t rank)
      : scheduler(of), device(on), id(number), priority(rank) {}

  uint64_t completed() const;
  bool ready() const;  // may its first item run?
  // The last position under `ticket`, and the positions before it.
  struct Position {
    uint64_t ticket, seq;
    std::shared_ptr<const Clock> before;
  };
  const Position* position(uint64_t ticket) const;

  Scheduler& scheduler;
  Device& device;
  const uint32_t id;
  const int32_t priority;
  std::deque<Item> items;  // the front one may be running
  uint64_t last_ticket = 0, flushed = 0, reported = 0;
  uint64_t lasted = UINT64_MAX;     // the last ticket that had completed when the device was lost
  uint64_t seq = 0, submitted = 0;  // of the last item, and of the last that may run
  bool running = false, turn = false, closing = false, hung = false;
  uint64_t weight = 0;  // of the scheduler's choice
  bool capturing = false;
  std::vector<Item> captured;
  std::deque<DeferredError> errors;
  Clock clock;
  std::deque<Position> positions;
  std::condition_variable changed;
  std::thread thread;
};

}  // namespace unkind

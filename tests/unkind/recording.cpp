// Work that the host puts on queues, and the progress reported to it.
#include <algorithm>
#include <utility>

#include "device.hpp"
#include "scheduler.hpp"

namespace unkind {
namespace {

using backplane::Error;

std::string place(const Queue& queue) { return "stream " + std::to_string(queue.id); }

void check_lost(const Device& device) {
  if (device.lost) throw Error(BP_ERROR_DEVICE_LOST, "unkind: the device is lost: " + *device.lost);
}

constexpr size_t kPositions = 4096;  // of a queue, that are kept

}  // namespace

void Scheduler::record(Queue& queue, Item item) {
  Guard lock(mutex_);
  if (item.kind != Item::Kind::kCallback) check_lost(queue.device);
  if (item.ticket != 0 && item.ticket <= queue.flushed && !queue.capturing)
    findings_.fail(item.what + " is recorded under ticket " + std::to_string(item.ticket) + " of " + place(queue) +
                   " after flush of " + std::to_string(queue.flushed));
  if (queue.capturing) return queue.captured.push_back(std::move(item));
  add(queue, std::move(item));
}

// Of a piece of work that is about to stand at the end of the queue.
void Scheduler::add(Queue& queue, Item item) {
  queue.last_ticket = std::max(queue.last_ticket, item.ticket == 0 ? queue.flushed + 1 : item.ticket);
  item.ticket = queue.last_ticket;
  item.seq = ++queue.seq;
  if (!item.what.empty()) item.what += ", ticket " + std::to_string(item.ticket) + " of " + place(queue);
  queue.clock.raise(known_);
  queue.clock.raise(queue.id, item.seq);
  check_order(queue, item);
  queue.positions.push_back({item.ticket, item.seq, std::make_shared<const Clock>(queue.clock)});
  if (queue.positions.size() > kPositions) queue.positions.pop_front();
  queue.items.push_back(std::move(item));
  if (plan_.eager || queue.device.lost) queue.submitted = queue.seq;
  advance();
}

void Scheduler::record_wait(Queue& queue, Queue& source, uint64_t ticket) {
  if (&queue == &source) return;
  Guard lock(mutex_);
  check_lost(queue.device);
  if (ticket > source.flushed)
    findings_.fail(place(queue) + " waits for ticket " + std::to_string(ticket) + " of " + place(source) +
                   ", which was flushed up to " + std::to_string(source.flushed));
  if (const Queue::Position* at = source.position(ticket)) queue.clock.raise(*at->before);
  Item item;
  item.kind = Item::Kind::kWait;
  item.source = source.shared_from_this();
  item.source_ticket = ticket;
  add(queue, std::move(item));
}

void Scheduler::run_and_wait(Queue& queue, Item item) {
  struct Done {
    bool yes = false;
  };
  const auto done = std::make_shared<Done>();
  item.awaited = true;
  item.work = [this, done, work = std::move(item.work)] {
    work();
    Guard lock(mutex_);
    done->yes = true;
  };
  Guard lock(mutex_);
  check_lost(queue.device);
  if (queue.capturing) throw Error(BP_ERROR_DEVICE, "unkind: a stream that is being captured runs nothing");
  add(queue, std::move(item));
  const uint64_t seq = queue.submitted = queue.seq;
  wait_until(lock,
             [&] { return done->yes || queue.device.lost || queue.items.empty() || queue.items.front().seq > seq; });
  if (!done->yes) check_lost(queue.device);
  if (!done->yes) throw Error(BP_ERROR_DATA, "unkind: the copy failed");
  known_.raise(queue.id, seq);
  known_.raise(queue.clock);
}

void Scheduler::flush(Queue& queue, uint64_t ticket) {
  Guard lock(mutex_);
  queue.flushed = std::max(queue.flushed, ticket);
  queue.submitted = queue.seq;
  worth_a_tick_.notify_all();
  advance();
  finished_.notify_all();
}

void Scheduler::know(Queue& queue, uint64_t ticket) {
  const Queue::Position* at = queue.position(ticket);
  if (!at) return;
  known_.raise(queue.id, at->seq);
  known_.raise(*at->before);
}

// The result may be out of date, but never decreases.
uint64_t Scheduler::completed(Queue& queue) {
  Guard lock(mutex_);
  credits_ += static_cast<int64_t>(random_() % 3);
  advance();
  if (random_() % 4 != 0) queue.reported = std::max(queue.reported, std::min(queue.completed(), queue.flushed));
  know(queue, queue.reported);
  return queue.reported;
}

bp_status Scheduler::wait(Queue& queue, uint64_t ticket) {
  Guard lock(mutex_);
  if (ticket > queue.flushed)
    findings_.fail("wait for ticket " + std::to_string(ticket) + " of " + place(queue) + ", which was flushed up to " +
                   std::to_string(queue.flushed));
  wait_until(lock, [&] { return queue.completed() >= ticket || queue.device.lost; });
  if (queue.completed() >= ticket) know(queue, ticket);
  const auto failed = std::find_if(queue.errors.begin(), queue.errors.end(),
                                   [&](const DeferredError& error) { return error.ticket <= ticket; });
  if (failed != queue.errors.end()) return failed->code;
  check_lost(queue.device);
  return BP_OK;
}

bool Scheduler::wait_for(Queue& queue, uint64_t ticket, std::chrono::nanoseconds timeout) {
  Guard lock(mutex_);
  ++waiting_;
  advance();
  const bool done = finished_.wait_for(lock, timeout, [&] { return queue.completed() >= ticket || queue.device.lost; });
  --waiting_;
  return done;
}

bool Scheduler::take_error(Queue& queue, DeferredError& error) {
  Guard lock(mutex_);
  if (queue.errors.empty()) return false;
  error = std::move(queue.errors.front());
  queue.errors.pop_front();
  return true;
}

void Scheduler::begin_capture(Queue& queue) {
  Guard lock(mutex_);
  queue.capturing = true;
}

std::vector<Item> Scheduler::end_capture(Queue& queue) {
  Guard lock(mutex_);
  queue.capturing = false;
  return std::exchange(queue.captured, {});
}

}  // namespace unkind

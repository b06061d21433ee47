// The queue's thread and the arithmetic of tickets.
#include "queue.hpp"

#include <algorithm>
#include <cstdlib>
#include <stdexcept>
#include <utility>

#include "backplane/error.hpp"

namespace sim {

LostFlag::LostFlag() {
  const char* items = std::getenv("BACKPLANE_SIM_LOSE_AFTER");
  fuse_ = items ? std::strtoll(items, nullptr, 10) : -1;
}

void LostFlag::burn_fuse() {
  if (fuse_ >= 0 && fuse_-- == 0) throw std::runtime_error("lost as BACKPLANE_SIM_LOSE_AFTER asks");
}

void LostFlag::set(const std::string& cause) {
  std::lock_guard lock(mutex_);
  if (!cause_) cause_ = cause;
}

std::optional<std::string> LostFlag::cause() const {
  std::lock_guard lock(mutex_);
  return cause_;
}

void LostFlag::check() const {
  if (const auto first = cause()) throw backplane::Error(BP_ERROR_DEVICE_LOST, "sim: the device is lost: " + *first);
}

Queue::Queue(LostFlag& lost) : lost_(lost), thread_([this] { run(); }) {}

Queue::~Queue() {
  {
    std::lock_guard lock(mutex_);
    closing_ = true;
  }
  recorded_.notify_one();
  thread_.join();
}

void Queue::record(uint64_t ticket, Work work) {
  lost_.check();
  {
    std::lock_guard lock(mutex_);
    // Work of no call (ticket 0) must not make a flushed ticket look unfinished.
    last_ticket_ = std::max(last_ticket_, ticket == 0 ? flushed_ + 1 : ticket);
    items_.push_back({last_ticket_, std::move(work)});
  }
  recorded_.notify_one();
}

void Queue::record_wait(Queue& other, uint64_t ticket) {
  if (&other == this) return;
  // The reference keeps `other` alive where the host destroys it before this item runs.
  record(0, [source = other.shared_from_this(), ticket] { source->wait_completed(ticket); });
}

void Queue::run_and_wait(Work work) {
  bool done = false;  // guarded by mutex_
  record(0, [&] {
    work();
    std::lock_guard lock(mutex_);
    done = true;
  });
  std::unique_lock lock(mutex_);
  finished_.wait(lock, [&] { return done || lost_.cause(); });
  if (!done) finished_.wait(lock, [&] { return items_.empty(); });  // the item refers to this frame
  lock.unlock();
  if (!done) lost_.check();
}

void Queue::flush(uint64_t ticket) {
  {
    std::lock_guard lock(mutex_);
    flushed_ = std::max(flushed_, ticket);
  }
  finished_.notify_all();
}

// All below the first unfinished item's ticket are complete. With nothing unfinished, the last ticket itself is
// complete once the host has said that no more will come under it.
uint64_t Queue::completed_locked() const {
  if (!items_.empty()) return items_.front().ticket - 1;
  return std::max(flushed_, last_ticket_ == 0 ? 0 : last_ticket_ - 1);
}

uint64_t Queue::completed() const {
  std::lock_guard lock(mutex_);
  return completed_locked();
}

void Queue::wait_completed(uint64_t ticket) {
  std::unique_lock lock(mutex_);
  finished_.wait(lock, [&] { return completed_locked() >= ticket; });
}

bp_status Queue::wait(uint64_t ticket) {
  flush(ticket);
  wait_completed(ticket);
  std::lock_guard lock(mutex_);
  const auto failed = std::find_if(errors_.begin(), errors_.end(), [&](const auto& e) { return e.ticket <= ticket; });
  if (failed != errors_.end()) return failed->code;
  lost_.check();  // another queue lost the device: this one's work was dropped
  return BP_OK;
}

std::optional<DeferredError> Queue::take_error() {
  std::lock_guard lock(mutex_);
  if (errors_.empty()) return std::nullopt;
  DeferredError oldest = std::move(errors_.front());
  errors_.pop_front();
  return oldest;
}

void Queue::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    recorded_.wait(lock, [&] { return closing_ || !items_.empty(); });
    if (items_.empty()) return;
    Item& item = items_.front();  // a deque's elements stay where they are while others are added
    lock.unlock();
    execute(item);
    item.work = nullptr;  // captures go before the ticket completes
    lock.lock();
    items_.pop_front();
    finished_.notify_all();
  }
}

void Queue::execute(const Item& item) {
  if (lost_.cause()) return;  // what follows a fatal error is dropped, and still completes
  DeferredError error{item.ticket, BP_ERROR_DEVICE_LOST, {}};
  try {
    lost_.burn_fuse();
    item.work();
    return;
  } catch (const backplane::Error& e) {
    if (e.code() == BP_ERROR_DATA) error.code = BP_ERROR_DATA;
    error.message = e.what();
  } catch (const std::exception& e) {
    error.message = e.what();
  }
  if (error.code == BP_ERROR_DEVICE_LOST) lost_.set(error.message);
  std::lock_guard lock(mutex_);
  errors_.push_back(std::move(error));
}

}  // namespace sim

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

void LostFlag::clear() {
  std::lock_guard lock(mutex_);
  cause_.reset();
}

void Turns::enter(int32_t priority) {
  std::unique_lock lock(mutex_);
  ++ready_[priority];
  changed_.wait(lock, [&] { return ready_.upper_bound(priority) == ready_.end(); });
}

void Turns::leave(int32_t priority) {
  {
    std::lock_guard lock(mutex_);
    if (--ready_[priority] == 0) ready_.erase(priority);
  }
  changed_.notify_all();
}

Queue::Queue(LostFlag& lost, Turns& turns, int32_t priority)
    : lost_(lost), turns_(turns), priority_(priority), thread_([this] { run(); }) {}

Queue::Queue(LostFlag& lost, Turns& turns, std::shared_ptr<Queue> base)
    : lost_(lost), turns_(turns), priority_(base->priority_), base_(std::move(base)) {}

Queue::~Queue() {
  if (base_) {
    std::unique_lock lock(mutex_);
    finished_.wait(lock, [&] { return items_.empty(); });
    return;
  }
  {
    std::lock_guard lock(mutex_);
    closing_ = true;
  }
  recorded_.notify_one();
  thread_.join();
}

void Queue::record(uint64_t ticket, Work work) {
  lost_.check();
  add(ticket, std::move(work), Kind::kWork);
}

void Queue::record_always(uint64_t ticket, Work work) { add(ticket, std::move(work), Kind::kAlways); }

void Queue::add(uint64_t ticket, Work work, Kind kind) {
  {
    std::lock_guard lock(mutex_);
    if (capturing_) return captured_.push_back(std::move(work));
    // Work of no call (ticket 0) must not make a flushed ticket look unfinished.
    last_ticket_ = std::max(last_ticket_, ticket == 0 ? flushed_ + 1 : ticket);
    items_.push_back({last_ticket_, std::move(work), kind});
  }
  if (!base_) return recorded_.notify_one();
  // The base's item runs the oldest of this queue.
  base_->record_always(0, [this] {
    std::unique_lock lock(mutex_);
    run_front(lock);
  });
}

void Queue::begin_capture() {
  std::lock_guard lock(mutex_);
  capturing_ = true;
}

std::vector<Queue::Work> Queue::end_capture() {
  std::lock_guard lock(mutex_);
  capturing_ = false;
  return std::exchange(captured_, {});
}

void Queue::record_wait(Queue& other, uint64_t ticket) {
  if (&other == this) return;
  // The reference keeps `other` alive where the host destroys it before this item runs.
  lost_.check();
  add(
      0, [source = other.shared_from_this(), ticket] { source->wait_completed(ticket); }, Kind::kWait);
}

void Queue::record_wait(uint64_t ticket, Work until) {
  lost_.check();
  add(ticket, std::move(until), Kind::kWait);
}

void Queue::run_and_wait(Work work) {
  {
    std::lock_guard lock(mutex_);
    BP_CHECK(!capturing_, DEVICE, "sim: a queue that is being captured runs nothing");
  }
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

bool Queue::wait_for(uint64_t ticket, std::chrono::nanoseconds timeout) {
  flush(ticket);
  std::unique_lock lock(mutex_);
  return finished_.wait_for(lock, timeout, [&] { return completed_locked() >= ticket; });
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
    run_front(lock);
  }
}

void Queue::run_front(std::unique_lock<std::mutex>& lock) {
  Item& item = items_.front();  // a deque's elements stay where they are while others are added
  lock.unlock();
  execute(item);
  item.work = nullptr;  // captures go before the ticket completes
  lock.lock();
  items_.pop_front();
  finished_.notify_all();
}

namespace {
struct Turn {
  Turn(Turns& turns, int32_t priority) : turns_(turns), priority_(priority) { turns_.enter(priority_); }
  ~Turn() { turns_.leave(priority_); }
  Turn(const Turn&) = delete;

 private:
  Turns& turns_;
  const int32_t priority_;
};
}  // namespace

void Queue::execute(const Item& item) {
  if (item.kind == Kind::kAlways) return item.work();
  if (lost_.cause()) return;  // what follows a fatal error is dropped, and still completes
  DeferredError error{item.ticket, BP_ERROR_DEVICE_LOST, {}};
  try {
    lost_.burn_fuse();
    if (item.kind == Kind::kWait) return item.work();
    const Turn turn(turns_, priority_);
    return item.work();
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

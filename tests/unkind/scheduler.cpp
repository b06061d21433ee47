// Threads, and which of them goes on.
#include "scheduler.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "device.hpp"

namespace unkind {
namespace {

using backplane::Error;
constexpr auto kTick = std::chrono::milliseconds(1);

bool dropped(const Item& item) { return item.kind != Item::Kind::kCallback; }  // of a lost device

}  // namespace

uint64_t Queue::completed() const {
  if (!items.empty()) return items.front().ticket - 1;
  return std::max(flushed, last_ticket == 0 ? 0 : last_ticket - 1);
}

bool Queue::ready() const {
  if (running || items.empty() || items.front().seq > submitted) return false;
  const Item& item = items.front();
  if (item.kind != Item::Kind::kWait || device.lost || item.source->device.lost) return true;
  return item.source->completed() >= item.source_ticket;
}

const Queue::Position* Queue::position(uint64_t ticket) const {
  const auto after = std::upper_bound(positions.begin(), positions.end(), ticket,
                                      [](uint64_t wanted, const Position& at) { return wanted < at.ticket; });
  return after == positions.begin() ? nullptr : &*std::prev(after);
}

Scheduler::Scheduler() : plan_(Plan::of_environment()), random_(plan_.seed), ticker_([this] { tick(); }) {}

Scheduler::~Scheduler() {
  std::vector<std::shared_ptr<Queue>> left;
  {
    Guard lock(mutex_);
    closing_ = true;
    for (auto& [id, queue] : queues_) left.push_back(queue);
    for (Device* device : devices_) lose_locked(*device, "the plugin ends");
  }
  worth_a_tick_.notify_all();
  for (const auto& queue : left) close(queue);
  ticker_.join();
}

void Scheduler::set(const Plan& plan) {
  Guard lock(mutex_);
  plan_ = plan;
  random_.seed(plan.seed);
  works_ = allocations_ = 0;
  for (auto& [id, queue] : queues_) queue->weight = 0;
  findings_.clear();
  advance();
}

std::string Scheduler::counts() const {
  Guard lock(mutex_);
  return "work=" + std::to_string(works_) + " allocations=" + std::to_string(allocations_);
}

std::shared_ptr<Queue> Scheduler::add_queue(Device& device, int32_t priority) {
  Guard lock(mutex_);
  if (device.lost) throw Error(BP_ERROR_DEVICE_LOST, "unkind: the device is lost: " + *device.lost);
  devices_.insert(&device);
  auto made = std::make_shared<Queue>(*this, device, next_queue_++, priority);
  queues_.emplace(made->id, made);
  made->thread = std::thread([this, queue = made.get()] { run(*queue); });
  return made;
}

void Scheduler::close(const std::shared_ptr<Queue>& queue) {
  {
    Guard lock(mutex_);
    if (queue->closing) return;
    queue->closing = true;
    queue->submitted = queue->seq;
    wait_until(lock, [&] { return queue->items.empty() || (queue->hung && !queue->device.lost); });
    // A program that ends while a queue hangs ends all the same.
    if (!queue->items.empty()) lose_locked(queue->device, "a hung queue was destroyed");
    wait_until(lock, [&] { return queue->items.empty(); });
    queue->flushed = std::max(queue->flushed, queue->last_ticket);
    known_.raise(queue->id, queue->seq);
    queues_.erase(queue->id);
  }
  queue->changed.notify_all();
  queue->thread.join();
}

// While the calling thread waits, work goes on.
void Scheduler::wait_until(Guard& lock, const std::function<bool()>& done) {
  ++waiting_;
  advance();
  finished_.wait(lock, done);
  --waiting_;
}

bool Scheduler::has_work() const {
  return std::any_of(queues_.begin(), queues_.end(), [](const auto& row) {
    const Queue& queue = *row.second;
    return !queue.items.empty() && queue.items.front().seq <= queue.submitted && !queue.hung;
  });
}

void Scheduler::tick() {
  Guard lock(mutex_);
  while (!closing_) {
    worth_a_tick_.wait(lock, [&] { return closing_ || has_work(); });
    const uint64_t before = steps_;
    worth_a_tick_.wait_for(lock, kTick, [&] { return closing_; });
    if (steps_ != before) continue;
    credits_ = std::max<int64_t>(credits_, 16);
    advance();
  }
}

void Scheduler::advance() {
  if (plan_.eager) {
    for (auto& [id, queue] : queues_)
      if (!queue->turn && queue->ready()) {
        queue->turn = true;
        queue->changed.notify_one();
      }
    return;
  }
  if (running_ || (waiting_ == 0 && credits_ <= 0)) return;
  Queue* next = choose();
  if (!next) return;
  if (waiting_ == 0) --credits_;
  running_ = next;
  next->turn = true;
  next->changed.notify_one();
}

// The greatest weight goes first, so that one queue runs far ahead of the others; now and then one gets a new weight.
// Of two streams of a device, the stream with the greater priority always goes first.
Queue* Scheduler::choose() {
  Queue* best = nullptr;
  for (auto& [id, queue] : queues_) {
    if (!queue->ready() || queue->turn) continue;
    if (queue->weight == 0 || random_() % 4 == 0) queue->weight = 1 + random_() % 1000;
    if (!best || queue->weight > best->weight) best = queue.get();
  }
  if (!best) return nullptr;
  for (auto& [id, queue] : queues_)
    if (&queue->device == &best->device && queue->ready() && !queue->turn && queue->priority > best->priority)
      best = queue.get();
  return best;
}

void Scheduler::run(Queue& queue) {
  Guard lock(mutex_);
  while (true) {
    queue.changed.wait(lock, [&] { return queue.turn || (queue.closing && queue.items.empty()); });
    if (queue.items.empty()) return;
    queue.turn = false;
    queue.running = true;
    Item& item = queue.items.front();  // a deque's elements stay where they are while others are added
    if (plan_.eager && random_() % 2 == 0) {
      const auto pause = std::chrono::microseconds(random_() % 100);
      lock.unlock();
      std::this_thread::sleep_for(pause);
      lock.lock();
    }
    execute(queue, item, lock);
    {
      Work work = std::move(item.work);  // what it holds goes before the ticket completes, and outside the mutex
      lock.unlock();
      work = nullptr;
      lock.lock();
    }
    queue.items.pop_front();
    queue.running = false;
    if (running_ == &queue) running_ = nullptr;
    ++steps_;
    advance();
    finished_.notify_all();
  }
}

void Scheduler::execute(Queue& queue, Item& item, Guard& lock) {
  Device& device = queue.device;
  if (item.kind == Item::Kind::kCallback) {
    known_.raise(queue.id, item.seq - 1);
    queue.reported = std::max(queue.reported, std::min(queue.completed(), queue.flushed));
    running_ = running_ == &queue ? nullptr : running_;  // it may take long, and others need not wait for it
    advance();
    lock.unlock();
    item.work();
    return lock.lock();
  }
  if (device.lost && dropped(item)) return;
  if (item.kind == Item::Kind::kWait) {
    // The peer's work is lost, and with it the order that the host made.
    if (item.source_ticket > item.source->lasted && &item.source->device != &device)
      queue.errors.push_back({item.ticket, BP_ERROR_DATA, "unkind: the peer that was waited for is lost"});
    return;
  }
  const int64_t number = works_++;
  if (number == plan_.hang && item.awaited && !device.aborts) ++plan_.hang;
  if (number == plan_.hang) {
    queue.hung = true;
    running_ = running_ == &queue ? nullptr : running_;
    advance();
    finished_.notify_all();
    queue.changed.wait(lock, [&] { return device.lost.has_value(); });
    queue.hung = false;
    return;
  }
  DeferredError error{item.ticket, BP_ERROR_DEVICE_LOST, {}};
  try {
    if (number == plan_.lose) throw std::runtime_error("lost as the plan says, at " + item.what);
    if (number == plan_.fail) throw Error(BP_ERROR_DATA, "it fails as the plan says");
    check_alive(item);
    lock.unlock();
    try {
      item.work();
    } catch (...) {
      lock.lock();
      throw;
    }
    return lock.lock();
  } catch (const Error& failed) {
    if (failed.code() == BP_ERROR_DATA) error.code = BP_ERROR_DATA;
    error.message = failed.what();
  } catch (const std::exception& failed) {
    error.message = failed.what();
  }
  if (error.code == BP_ERROR_DEVICE_LOST) lose_locked(device, error.message);
  queue.errors.push_back(std::move(error));
}

void Scheduler::lose(Device& device, const std::string& cause) {
  Guard lock(mutex_);
  lose_locked(device, cause);
}

void Scheduler::lose_locked(Device& device, const std::string& cause) {
  const bool news = !device.lost;
  if (news) device.lost = cause;
  for (auto& [id, queue] : queues_) {
    if (&queue->device != &device) continue;
    if (news) queue->lasted = queue->completed();
    queue->submitted = queue->seq;
    queue->changed.notify_all();
  }
  credits_ += 64;  // what is dropped need not be waited for
  advance();
  finished_.notify_all();
}

void Scheduler::reset(Device& device) {
  lose(device, "it is being reset");
  std::vector<std::shared_ptr<Queue>> of_device;
  {
    Guard lock(mutex_);
    for (auto& [id, queue] : queues_)
      if (&queue->device == &device) of_device.push_back(queue);
  }
  for (const auto& queue : of_device) close(queue);
  device.handles.clear();
  Guard lock(mutex_);
  device.given.clear();
  device.memory.clear();
  device.lost.reset();
}

}  // namespace unkind

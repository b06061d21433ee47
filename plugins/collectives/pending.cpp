// Calls that have begun and not ended: `begin` returns while the data moves, `end` waits for it. A thread of the
// process moves them on meanwhile, since providers move data only when they are asked.
#include <algorithm>

#include "world.hpp"

namespace backplane::collectives {
namespace {

constexpr auto kPauseOfMover = std::chrono::microseconds(50);
constexpr size_t kLittle = 64 << 10;  // bytes that move in less time than a second thread takes over

}  // namespace

int64_t World::begin(const bp_host* host, Group& group, std::unique_ptr<Pending> pending) {
  settle_order(host, group);
  check_call(host, group, pending->request);
  pending->group = &group;
  const bool is_little = pending->in.size() + pending->out.size() <= kLittle;
  if (pending->request.call.count > 0) start(group, pending->request, is_little, &pending->work);
  pending->done = pending->work == nullptr;
  std::lock_guard guard(pending_lock_);
  pending->number = ++begun_;
  pending_.push_back(std::move(pending));
  if (is_process_ && size_ > 1 && !mover_.joinable()) mover_ = std::thread([this] { move_on(); });
  has_pending_.notify_one();
  return begun_;
}

void World::end(const bp_host* host, int64_t number, const Notice& notice, void* out) {
  check_failure();
  std::shared_ptr<Pending> found;
  {
    std::lock_guard guard(pending_lock_);
    const auto is_it = [&](const auto& one) { return one->number == number; };
    const auto at = std::find_if(pending_.begin(), pending_.end(), is_it);
    BP_CHECK(at != pending_.end(), VALUE, notice.op, ": argument call: found ", number,
             ", expected the number of a call that has begun on this rank and was not finished yet");
    found = *at;
  }
  const Notice& begun = found->request.notice;
  BP_CHECK(begun.kind == notice.kind && begun.reduce == notice.reduce && begun.dtype == notice.dtype &&
               begun.elements == notice.elements,
           VALUE, notice.op, ": found ", described(notice), ", expected the call that has begun: ", described(begun));
  wait_for_pending(host, *found);
  {
    std::lock_guard guard(pending_lock_);
    std::erase(pending_, found);
  }
  found->complete(out);
}

// One thread asks at a time.
bool World::test_pending(Pending& pending) {
  std::lock_guard guard(pending_lock_);
  if (pending.done || pending.status != BP_OK) return true;
  int32_t done = 0;
  pending.status = provider_.test(pending.group->handle, pending.work, &done);
  if (pending.status != BP_OK) pending.error = provider_.error();
  pending.done = done != 0;
  return pending.done || pending.status != BP_OK;
}

void World::wait_for_pending(const bp_host* host, Pending& pending) {
  wait_until_moved(host, *pending.group, pending.request, [&] { return test_pending(pending); });
  if (pending.status != BP_OK)
    fail(pending.status, described(pending.request.notice) + " on rank " + std::to_string(rank_) + ": " +
                             provider_.name + ": " + pending.error);
}

// Ranks that are threads have one round at a time: an open call ends before the next call of the group.
void World::settle_order(const bp_host* host, Group& group) {
  if (is_process_) return;
  std::vector<std::shared_ptr<Pending>> open;
  {
    std::lock_guard guard(pending_lock_);
    for (const auto& one : pending_)
      if (one->group == &group) open.push_back(one);
  }
  for (const auto& one : open) wait_for_pending(host, *one);
}

void World::move_on() {
  std::unique_lock lock(pending_lock_);
  const auto moves = [](const auto& one) { return !one->done && one->status == BP_OK; };
  while (!stops_moving_) {
    const auto open = std::find_if(pending_.begin(), pending_.end(), moves);
    if (open == pending_.end()) {
      has_pending_.wait(lock);
      continue;
    }
    const std::vector<std::shared_ptr<Pending>> all(open, pending_.end());
    lock.unlock();
    for (const auto& one : all) test_pending(*one);
    std::this_thread::sleep_for(kPauseOfMover);
    lock.lock();
  }
}

void World::stop_moving() {
  {
    std::lock_guard guard(pending_lock_);
    stops_moving_ = true;
  }
  has_pending_.notify_all();
  if (mover_.joinable()) mover_.join();
}

}  // namespace backplane::collectives

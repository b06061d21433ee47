// Events as tickets; see stream.hpp.
#include "runtime/stream.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace minimal {
namespace {

constexpr unsigned kNonBlocking = 1;    // the legacy default stream, which others may use, does not order it
constexpr unsigned kDisableTiming = 2;  // of events
constexpr unsigned kMapped = 3;         // of page-locked memory: portable, and reached by the device
constexpr size_t kLeastPinned = 64;     // bytes

}  // namespace

Stream::Stream(Device& device) : device_(device) {
  check(driver().cuStreamCreate(&stream_, kNonBlocking), "cuStreamCreate");
}

Stream::~Stream() {  // after a fatal error these fail, and there is nothing left to free
  (void)driver().cuStreamSynchronize(stream_);
  (void)driver().cuStreamDestroy_v2(stream_);
  for (const Use& use : uses_) free_.push_back(use.memory);
  for (const Pinned& block : free_) (void)driver().cuMemFreeHost(block.host);
}

Pinned Stream::take_pinned(size_t size, uint64_t ticket, std::string message) {
  size = std::bit_ceil(std::max(size, kLeastPinned));
  std::lock_guard lock(mutex_);
  const auto found = std::find_if(free_.begin(), free_.end(), [&](const Pinned& block) { return block.size == size; });
  Pinned block{nullptr, 0, size};
  if (found != free_.end()) {
    block = *found;
    free_.erase(found);
  } else {
    void* host = nullptr;
    check(driver().cuMemHostAlloc(&host, size, kMapped), "cuMemHostAlloc");
    block.host = static_cast<char*>(host);
    check(driver().cuMemHostGetDevicePointer_v2(&block.device, host, 0), "cuMemHostGetDevicePointer");
  }
  if (!message.empty()) std::memset(block.host, 0, kLeastPinned);
  uses_.push_back({ticket, block, std::move(message)});
  return block;
}

void Stream::flush(uint64_t ticket) {
  std::lock_guard lock(mutex_);
  if (ticket <= flushed_) return;
  CudaHandle made = nullptr;
  check(driver().cuEventCreate(&made, kDisableTiming), "cuEventCreate");
  Event event(made, [](CudaHandle handle) { (void)driver().cuEventDestroy_v2(handle); });
  check(driver().cuEventRecord(made, stream_), "cuEventRecord");
  marks_.push_back({ticket, std::move(event)});
  flushed_ = ticket;
}

// Frees the memory of work up to a completed ticket, and stores the errors that the work found.
void Stream::retire_locked(uint64_t ticket) {
  completed_ = std::max(completed_, ticket);
  while (!marks_.empty() && marks_.front().ticket <= completed_) marks_.pop_front();
  for (; !uses_.empty() && uses_.front().ticket <= completed_; uses_.pop_front()) {
    Use& use = uses_.front();
    if (!use.message.empty() && *use.memory.host != 0) errors_.push_back({use.ticket, std::move(use.message)});
    free_.push_back(use.memory);
  }
}

uint64_t Stream::completed() {
  std::lock_guard lock(mutex_);
  while (!marks_.empty()) {
    const CudaResult state = driver().cuEventQuery(marks_.front().event.get());
    if (state == kNotReady) break;
    check(state, "cuEventQuery");
    retire_locked(marks_.front().ticket);
  }
  return completed_;
}

Stream::Event Stream::event_of(uint64_t ticket) {
  std::lock_guard lock(mutex_);
  for (const Mark& mark : marks_)
    if (mark.ticket >= ticket && completed_ < ticket) return mark.event;
  return nullptr;
}

bp_status Stream::wait(uint64_t ticket) {
  if (const Event event = event_of(ticket))  // unlocked: others go on recording
    check(driver().cuEventSynchronize(event.get()), "cuEventSynchronize");
  std::lock_guard lock(mutex_);
  retire_locked(std::min(ticket, flushed_));
  return !errors_.empty() && errors_.front().ticket <= ticket ? BP_ERROR_DATA : BP_OK;
}

void Stream::wait_behind(Stream& other, uint64_t ticket) {
  if (const Event event = other.event_of(ticket))
    check(driver().cuStreamWaitEvent(stream_, event.get(), 0), "cuStreamWaitEvent");
}

bool Stream::take_error(DeferredError& out) {
  (void)completed();  // the host may know from another stream that this one's work has ended
  std::lock_guard lock(mutex_);
  if (errors_.empty()) return false;
  out = std::move(errors_.front());
  errors_.pop_front();
  return true;
}

}  // namespace minimal

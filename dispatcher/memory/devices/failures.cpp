#include "memory/devices/failures.hpp"

#include <algorithm>
#include <cstdio>
#include <mutex>
#include <string>

#include "backplane/error.hpp"
#include "backplane/lost_elements.hpp"
#include "memory/devices/device.hpp"
#include "memory/devices/loss.hpp"
#include "memory/devices/stream.hpp"
#include "memory/process/epoch.hpp"
#include "memory/process/foreign_call.hpp"

namespace backplane::core {
namespace {

// Of what streams of all devices know of each other's failures; the innermost lock, held for a lookup.
StaticLock failures_lock{LockRank::kPool};

std::shared_ptr<Failure> known_failure(const StorageUse& work) {
  if (!work.stream || work.stream->failed.load(std::memory_order_acquire) == 0) return nullptr;
  std::lock_guard guard(failures_lock);
  const auto found = work.stream->failures.find(work.ticket);
  return found == work.stream->failures.end() ? nullptr : found->second;
}

bool is_settled(const StorageUse& work) {
  return !work.stream || work.stream->settled.load(std::memory_order_acquire) >= work.ticket;
}

void mark(Stream& stream, uint64_t ticket, std::shared_ptr<Failure> failure) {
  std::lock_guard guard(failures_lock);
  if (stream.failures.emplace(ticket, std::move(failure)).second) stream.failed.fetch_add(1, std::memory_order_release);
}

[[noreturn]] void raise(const std::shared_ptr<Failure>& failure) {
  failure->raised = true;
  throw Error(failure->code, failure->text);
}

bool is_only_a_wait(const Stream& stream, uint64_t ticket) {
  return std::any_of(stream.unfinished.begin(), stream.unfinished.end(),
                     [&](const Work& work) { return work.ticket == ticket && work.only_waits; });
}

std::shared_ptr<Failure> new_failure(const Stream& stream, const bp_deferred_error& error) {
  std::string op = "an earlier op";
  for (const Work& work : stream.unfinished)
    if (work.ticket == error.ticket) op = work.op;
  std::string said = error.message;
  if (said.starts_with(op + ": ")) said.erase(0, op.size() + 2);  // kernels that run at once name the op themselves
  if (said.empty()) said = "status " + std::to_string(error.code) + " without a message";
  auto failure = std::make_shared<Failure>();
  failure->code = error.code;
  failure->text = op + " on device " + name_of(*stream.device) + ": " + said;
  return failure;
}

}  // namespace

int collect(Stream& stream) {
  Device& device = *stream.device;
  const bp_backend_def& def = device.backend->def;
  constexpr int kMost = 65536;  // of a backend that never ends its list
  int i = 0;
  for (; i < kMost; ++i) {
    bp_deferred_error error{};
    error.header = BP_HEADER(bp_deferred_error);
    bp_status status;
    {
      CallGuard guard;
      status = call_foreign("deferred_error",
                            [&] { return def.deferred_error(def.context, device.ordinal, stream.handle, &error); });
    }
    if (status == BP_OK && error.code == BP_OK) return i;
    if (status != BP_OK) {  // its report is lost
      if (device.state.load(std::memory_order_acquire) != DeviceState::kReady) return i;
      error.ticket = 0;
      error.code = status;
      std::snprintf(error.message, sizeof error.message, "its errors cannot be read: %s", take_cause().c_str());
    }
    if (error.code != BP_ERROR_DEVICE_LOST && is_only_a_wait(stream, error.ticket)) continue;
    error.message[sizeof error.message - 1] = 0;
    const std::shared_ptr<Failure> failure = new_failure(stream, error);
    if (error.code == BP_ERROR_DEVICE_LOST) mark_lost(device, failure->text);
    stream.unseen.push_back(failure);
    if (error.ticket != 0 && error.ticket <= stream.issued) {
      mark(stream, error.ticket, failure);
      continue;
    }
    // The backend cannot tell: it may be any that has begun, and which these are nobody knows.
    for (const Work& work : stream.unfinished) mark(stream, work.ticket, failure);
    if (status != BP_OK) return i + 1;
  }
  return i;
}

namespace {

constexpr size_t kMostSpoiled = 64;  // copies that a stream remembers

bool is_to_host(const Work& work) { return work.to_host != std::thread::id(); }

void note_spoiled(Stream& stream, const Work& copy) {
  const std::shared_ptr<Failure> failure = known_failure({&stream, copy.ticket});
  if (!failure) return;
  if (stream.spoiled_copies.size() == kMostSpoiled) stream.spoiled_copies.pop_front();
  stream.spoiled_copies.push_back({failure, copy.to_host, {}});
}

// The first failure that was not reported to this thread. Marks all as reported.
std::shared_ptr<Failure> take_spoiled(Stream& stream) {
  const std::thread::id me = std::this_thread::get_id();
  std::shared_ptr<Failure> first;
  for (auto& [failure, asked, heard] : stream.spoiled_copies) {
    if (std::find(heard.begin(), heard.end(), me) != heard.end()) continue;
    heard.push_back(me);
    if (!first) first = failure;
  }
  std::erase_if(stream.spoiled_copies, [&](const SpoiledCopy& copy) { return copy.asked == me; });
  return first;
}

// Of work that its device may not have come to.
std::shared_ptr<Failure> loss_of(const Stream& stream, const Work& work) {
  auto failure = std::make_shared<Failure>();
  failure->code = BP_ERROR_DEVICE_LOST;
  failure->text = std::string(work.op) + " on device " + name_of(*stream.device) +
                  ": the device is lost, and this may not have run: " + cause_of_loss(*stream.device);
  return failure;
}

// False if the outcome of its inputs is not known yet. A device that is lost has ended all of its work,
// whether it ran or not.
bool finish(Stream& stream, const Work& work) {
  std::shared_ptr<Failure> cause;
  if (stream.device->state.load(std::memory_order_acquire) != DeviceState::kReady) cause = loss_of(stream, work);
  for (const StorageUse& read : work.read) {
    if (!is_settled(read)) return false;
    if (!cause) cause = known_failure(read);
  }
  if (cause) mark(stream, work.ticket, cause);
  if (is_to_host(work)) note_spoiled(stream, work);
  stream.settled.store(work.ticket, std::memory_order_release);
  return true;
}

// What a stream's work has read on the same device has ended where that work has. True: that was news.
bool note_ended(Stream& stream) {
  bool news = false;
  for (const Work& work : stream.unfinished) {
    if (work.ticket > stream.completed) break;
    for (const StorageUse& read : work.read) {
      if (read.stream->device != stream.device || read.stream->completed >= read.ticket) continue;
      read.stream->completed = read.ticket;
      news = true;
    }
  }
  return news;
}

void note_all_ended(Device& device) {
  for (bool news = true; news;) {
    news = false;
    for (const auto& stream : device.streams) news |= note_ended(*stream);
  }
}

// What keeps the outcome of a piece of work open: work on streams of other devices, which has ended.
std::vector<StorageUse> open_elsewhere(Device& device) {
  std::vector<StorageUse> found;
  for (const auto& stream : device.streams)
    for (const Work& work : stream->unfinished) {
      if (work.ticket > stream->completed) break;
      for (const StorageUse& read : work.read)
        if (read.stream->device != &device && !is_settled(read)) note_latest(found, read);
    }
  return found;
}

}  // namespace

void depend_on(Work& work, const StorageUse& write) {
  if (!write.stream) return;
  if (const std::shared_ptr<Failure> failure = known_failure(write)) raise(failure);
  const auto same = [&](const StorageUse& known) {
    return known.stream == write.stream && known.ticket == write.ticket;
  };
  if (!is_settled(write) && std::none_of(work.read.begin(), work.read.end(), same)) work.read.push_back(write);
}

void depend_on(Work& work, const bp_storage& read) { depend_on(work, read.uses.write()); }

// Of a stream that no call has at the moment.
static void collect_ended(Stream& stream) {
  const uint64_t completed = stream.completed;
  collect(stream);
  stream.collected = completed;
}

void settle(Device& device) {
  // All are asked first: where one of them was lost, the others have ended, and not all of their work ran.
  for (const auto& stream : device.streams)
    if (!stream->unfinished.empty() && !stream->busy) collect_ended(*stream);
  for (bool more = true; more;) {
    more = false;
    note_all_ended(device);
    for (const auto& stream : device.streams) {
      auto& open = stream->unfinished;
      if (open.empty() || open.front().ticket > stream->completed) continue;
      if (stream->busy) continue;
      if (stream->collected < stream->completed) collect_ended(*stream);
      while (!open.empty() && open.front().ticket <= stream->completed && finish(*stream, open.front())) {
        open.pop_front();
        more = true;
      }
    }
  }
}

std::shared_ptr<const Failure> failure_of(const StorageUse& work) {
  if (!work.stream) return nullptr;
  constexpr int kMostRounds = 4096;  // over the streams and devices that the work has come through
  Device& device = *work.stream->device;
  for (int i = 0; i < kMostRounds && !is_settled(work); ++i) {
    std::vector<StorageUse> elsewhere;
    {
      std::lock_guard lock(device.lock);
      if (work.stream->retired) break;
      for (size_t s = 0; s < device.streams.size(); ++s) await_turn(*device.streams[s]);
      work.stream->completed = std::max(work.stream->completed, work.ticket);
      settle(device);
      if (!is_settled(work)) elsewhere = open_elsewhere(device);
    }
    for (const StorageUse& read : elsewhere) failure_of(read);
  }
  return known_failure(work);
}

void check_written(const bp_storage& storage) {
  StorageUse write;
  {
    std::lock_guard lock(storage.device->lock);
    write = storage.uses.write();
  }
  if (!write.stream || write.stream->capture) return;
  failure_of(write);
  if (const std::shared_ptr<Failure> failure = known_failure(write)) raise(failure);
}

bool reads_from(Device& device, const Device& source) {
  std::lock_guard lock(device.lock);
  for (const auto& stream : device.streams) {
    refresh_completed(*stream);
    for (const Work& work : stream->unfinished)
      for (const StorageUse& read : work.read)
        if (work.ticket > stream->completed && read.stream->device == &source) return true;
  }
  return false;
}

void lose_work(Stream& retired) {
  for (const Work& work : retired.unfinished) mark(retired, work.ticket, loss_of(retired, work));
  retired.unfinished.clear();
  retired.settled.store(UINT64_MAX, std::memory_order_release);
}

void forget_work_of(const Device& closing) {
  for (Device* device = first_started(); device; device = device->next_started) {
    if (device == &closing) continue;
    std::lock_guard lock(device->lock);
    settle(*device);
    for (const auto& stream : device->streams)
      for (Work& work : stream->unfinished)
        std::erase_if(work.read, [&](const StorageUse& read) { return read.stream->device == &closing; });
  }
}

void throw_unseen(Stream& stream) {
  const std::shared_ptr<Failure> spoiled = take_spoiled(stream);
  while (!stream.unseen.empty()) {
    const std::shared_ptr<Failure> failure = stream.unseen.front();
    stream.unseen.pop_front();
    if (!failure->raised) raise(failure);
  }
  if (spoiled) raise(spoiled);
}

void finish_copies_to_host(Stream& stream, uint64_t ticket) {
  std::vector<uint64_t> copies;
  {
    std::lock_guard lock(stream.device->lock);
    for (const Work& work : stream.unfinished)
      if (is_to_host(work) && work.ticket <= ticket) copies.push_back(work.ticket);
  }
  for (const uint64_t copy : copies) failure_of({&stream, copy});
}

void check_copies_to_host(Stream& stream, uint64_t ticket) {
  finish_copies_to_host(stream, ticket);
  std::lock_guard lock(stream.device->lock);
  if (const std::shared_ptr<Failure> spoiled = take_spoiled(stream)) raise(spoiled);
}

}  // namespace backplane::core

namespace backplane {

bool has_lost_elements(const Tensor& tensor) {
  const bp_storage* storage = tensor.get()->storage;
  if (!storage) return false;
  core::Device& device = *storage->device;
  if (storage->generation != device.generation.load(std::memory_order_relaxed)) return true;
  if (device.synchronous()) return false;
  std::lock_guard lock(device.lock);
  return core::known_failure(storage->uses.write()) != nullptr;
}

}  // namespace backplane

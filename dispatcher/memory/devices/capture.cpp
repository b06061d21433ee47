#include "memory/devices/capture.hpp"

#include <algorithm>
#include <mutex>

#include "backplane/error.hpp"
#include "memory/allocate.hpp"

namespace backplane::core {
namespace {

thread_local std::vector<Capture*> captures;  // that this thread began and has not ended

// Captures that were not ended, of all threads: one may be given up on another thread than the one that began it.
StaticLock active_lock{LockRank::kPool};
std::vector<const Capture*>& active_captures() {
  static auto& all = *new std::vector<const Capture*>;
  return all;
}

void note_active(const Capture* capture) {
  std::lock_guard guard(active_lock);
  active_captures().push_back(capture);
}

bool is_begun_here(const Capture* capture) {
  return std::find(captures.begin(), captures.end(), capture) != captures.end();
}

void forget(const Capture* capture) {
  std::erase(captures, capture);
  std::lock_guard guard(active_lock);
  std::erase(active_captures(), capture);
}

std::vector<Capture*> captures_of_this_thread() {
  std::lock_guard guard(active_lock);
  const auto& all = active_captures();
  std::erase_if(captures, [&](const Capture* one) { return std::find(all.begin(), all.end(), one) == all.end(); });
  return captures;
}

}  // namespace

Capture::Capture(Device& device) : device_(device), generation_(device.generation) {
  check_usable(device);
  BP_CHECK(device.backend->extensions.capture, NOT_IMPLEMENTED, "capture: device ", name_of(device),
           " does not offer it (its backend has no extension \"capture\"). Fix: run the work without it");
  BP_CHECK(!current_stream(device).capture, VALUE, "capture: this thread is capturing on device ", name_of(device),
           " already. Fix: end that capture first");
  stream_ = &new_stream(device, 0, Stream::Kind::kCapture);
  lease(device.backend->owner, LeaseKind::kStream);
  bp_status status;
  {
    std::lock_guard lock(device.lock);
    CallGuard guard;
    status = slots().begin(device.backend->def.context, device.ordinal, stream_->handle);
    if (status == BP_OK) stream_->capture = this;
  }
  if (status != BP_OK) {
    leave();
    unlease(device.backend->owner, LeaseKind::kStream);
    throw_device_error(device, status, "begin of a capture");
  }
  before_ = set_current_stream(device, stream_);
  active_ = true;
  captures.push_back(this);
  note_active(this);
}

// The stream is free for other captures.
void Capture::leave() {
  std::lock_guard lock(device_.lock);
  stream_->capture = nullptr;
  if (stream_->retired) return;
  stream_->completed = stream_->flushed = stream_->issued;
  device_.idle_streams.push_back(stream_);
}

bool Capture::stale() const { return generation_ != device_.generation; }

void Capture::end() {
  BP_CHECK(active_, VALUE, "capture: the capture has ended already");
  BP_CHECK(
      is_begun_here(this), VALUE,
      "capture: found its end on another thread than the one that began it. Fix: leave the block on its own thread");
  active_ = false;
  forget(this);
  set_current_stream(device_, before_);
  bp_status status = BP_OK;
  {
    std::lock_guard lock(device_.lock);  // which a reset holds
    CallGuard guard;
    if (!stale()) status = slots().end(device_.backend->def.context, device_.ordinal, stream_->handle, &recording_);
  }
  leave();
  if (status != BP_OK) throw_device_error(device_, status, "end of a capture");
  BP_CHECK(!stale(), DEVICE_LOST, "capture: device ", name_of(device_), " was reset meanwhile. Fix: capture again");
  BP_CHECK(recording_, DEVICE, "device ", name_of(device_),
           ": the end of a capture gave BP_OK and no recording (NULL)");
}

void Capture::hold(bp_storage* storage, std::vector<bp_storage*>& list) {
  if (std::find(list.begin(), list.end(), storage) != list.end()) return;
  list.push_back(storage);
  retain(storage);
}

void Capture::take(bp_storage* const* reads, int n_reads, bp_storage* const* writes, int n_writes) {
  for (int i = 0; i < n_reads; ++i)
    if (std::find(writes_.begin(), writes_.end(), reads[i]) == writes_.end()) hold(reads[i], reads_);
  for (int i = 0; i < n_writes; ++i) hold(writes[i], writes_);
}

void Capture::check_not_stale() const {
  BP_CHECK(!stale(), DEVICE_LOST, "replay: device ", name_of(device_),
           " was reset after the capture. Fix: capture again");
}

void Capture::replay(Stream& stream) {
  BP_CHECK(
      recording_, VALUE,
      "replay: the capture is still running, or its end has failed. Fix: replay after its block, or capture again");
  check_not_stale();
  BP_CHECK(stream.device == &device_, VALUE, "replay: found a stream of device ", name_of(*stream.device),
           ", expected one of device ", name_of(device_));
  BP_CHECK(!stream.capture, VALUE, "replay: the stream is being captured. Fix: replay after the capture's block");
  check_usable(device_);
  {
    std::lock_guard lock(device_.lock);
    check_not_stale();
    const uint64_t ticket = issue(stream, "replay", reads_.data(), static_cast<int>(reads_.size()), writes_.data(),
                                  static_cast<int>(writes_.size()));
    note_latest(replays_, {&stream, ticket});
    CallGuard guard;
    if (bp_status status =
            slots().replay(device_.backend->def.context, device_.ordinal, recording_, stream.handle, ticket))
      throw_device_error(device_, status, "replay");
  }
  for (bp_storage* storage : writes_) storage->version.fetch_add(1, std::memory_order_relaxed);
}

Capture::~Capture() {
  if (active_) {
    const bool is_own = is_begun_here(this);
    if (is_own) set_current_stream(device_, before_);
    forget(this);
    {
      std::lock_guard lock(device_.lock);
      CallGuard guard;
      if (!stale()) slots().end(device_.backend->def.context, device_.ordinal, stream_->handle, nullptr);
    }
    if (is_own)
      leave();
    else  // its thread may still have the stream: no other capture gets that
      stream_->capture = nullptr;
  }
  StorageUses uses;
  for (const StorageUse& use : replays_) {
    try {
      wait_for(*use.stream, use.ticket);
    } catch (const Error&) {
      // An error of the replayed work is lost with its results; a lost device says so at its next call.
    }
    uses.note_read(use);
  }
  if (recording_) {
    std::lock_guard lock(device_.lock);
    CallGuard guard;
    if (!stale() && device_.state == DeviceState::kReady)  // a lost one may still run it, until its reset
      slots().destroy(device_.backend->def.context, device_.ordinal, recording_);
  }
  for (const ScratchBlock& block : scratch_) deallocate(device_, block.data, block.size, generation_, uses);
  for (bp_storage* storage : reads_) release(storage);
  for (bp_storage* storage : writes_) release(storage);
  executables_.clear();
  for (PluginRecord* plugin : plugins_) unlease(plugin, LeaseKind::kStream);
  unlease(device_.backend->owner, LeaseKind::kStream);
}

void Capture::keep(std::shared_ptr<const void> executable) {
  if (std::find(executables_.begin(), executables_.end(), executable) == executables_.end())
    executables_.push_back(std::move(executable));
}

void Capture::keep_plugin(PluginRecord* plugin) {
  if (std::find(plugins_.begin(), plugins_.end(), plugin) != plugins_.end()) return;
  lease(plugin, LeaseKind::kStream);
  plugins_.push_back(plugin);
}

CapturePause::CapturePause() : paused_(captures_of_this_thread()) {
  for (Capture* capture : paused_) set_current_stream(capture->device_, capture->before_);
}

CapturePause::~CapturePause() {
  for (Capture* capture : paused_) set_current_stream(capture->device_, capture->stream_);
}

}  // namespace backplane::core

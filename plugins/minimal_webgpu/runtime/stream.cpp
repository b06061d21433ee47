// Batches, and tickets that end with them; see stream.hpp.
#include "runtime/stream.hpp"

#include <algorithm>
#include <cstring>
#include <thread>
#include <utility>

namespace minimal {
namespace {

constexpr uint64_t kPage = 64 << 10;      // bytes of staging memory that are taken at once
constexpr uint64_t kBindingOffset = 256;  // what offsets of bindings are multiples of, on every device
constexpr uint64_t kMostWatches = 1024;   // of a batch
constexpr auto kPause = std::chrono::microseconds(50);

template <class Status>
void on_end(Status, WGPUStringView, void* flag, void*) {
  const std::unique_ptr<std::shared_ptr<std::atomic<bool>>> held(
      static_cast<std::shared_ptr<std::atomic<bool>>*>(flag));
  **held = true;
}

}  // namespace

Stream::~Stream() {
  try {
    wait_batch(batches_);
  } catch (const backplane::Error&) {  // the device is lost, and its work with it
  }
}

void Stream::open() {
  if (open_.encoder) return;
  open_.encoder.reset(wgpuDeviceCreateCommandEncoder(device_.handle, nullptr));
  device_.check("wgpuDeviceCreateCommandEncoder");
}

Staged Stream::stage(uint64_t size) {
  open();
  const uint64_t needed = (size + kBindingOffset - 1) / kBindingOffset * kBindingOffset;
  const uint64_t room = open_.staging.empty() ? 0 : wgpuBufferGetSize(open_.staging.back().get());
  if (open_.used + needed > room) {
    const uint64_t taken = std::max(needed, kPage);
    open_.staging.push_back(device_.make_buffer(taken, WGPUBufferUsage_Storage | WGPUBufferUsage_CopySrc, true));
    open_.mapped = static_cast<char*>(wgpuBufferGetMappedRange(open_.staging.back().get(), 0, taken));
    open_.used = 0;
  }
  const uint64_t at = std::exchange(open_.used, open_.used + needed);
  return {{open_.staging.back().get(), at, wgpuBufferGetSize(open_.staging.back().get())}, open_.mapped + at};
}

uint32_t Stream::watch(uint64_t ticket, std::string message) {
  if (open_.watches.size() == kMostWatches) submit();
  open();
  open_.watches.push_back({ticket, std::move(message)});
  return static_cast<uint32_t>(open_.watches.size() - 1);
}

void Stream::dispatch(const Work& work) {
  open();
  if (!open_.watches.empty() && !open_.faults)
    open_.faults = device_.make_buffer(4 * kMostWatches, WGPUBufferUsage_Storage | WGPUBufferUsage_CopySrc);
  WGPUBindGroupEntry entries[kFaultsBinding + 1];
  for (uint32_t i = 0; i <= kFaultsBinding; ++i) {
    entries[i] = WGPU_BIND_GROUP_ENTRY_INIT;
    entries[i].binding = i;
    if (i < kMaxOperands) entries[i].buffer = work.blocks[i].buffer ? work.blocks[i].buffer : device_.unused[i].get();
  }
  entries[kArgumentsBinding].buffer = work.arguments.place.buffer;
  entries[kArgumentsBinding].offset = work.arguments.place.offset;
  entries[kArgumentsBinding].size = work.arguments_size;
  // A kernel that is not watched names no word: any buffer will do that is bound nowhere else.
  entries[kFaultsBinding].buffer = open_.faults ? open_.faults.get() : device_.no_faults.get();
  WGPUBindGroupDescriptor descriptor = WGPU_BIND_GROUP_DESCRIPTOR_INIT;
  descriptor.layout = device_.bindings;
  descriptor.entryCount = std::size(entries);
  descriptor.entries = entries;
  const Ref<WGPUBindGroup, wgpuBindGroupRelease> group(wgpuDeviceCreateBindGroup(device_.handle, &descriptor));
  device_.check("wgpuDeviceCreateBindGroup");
  const Ref<WGPUComputePassEncoder, wgpuComputePassEncoderRelease> pass(
      wgpuCommandEncoderBeginComputePass(open_.encoder.get(), nullptr));
  wgpuComputePassEncoderSetPipeline(pass.get(), work.pipeline);
  wgpuComputePassEncoderSetBindGroup(pass.get(), 0, group.get(), 0, nullptr);
  wgpuComputePassEncoderDispatchWorkgroups(pass.get(), work.groups, 1, 1);
  wgpuComputePassEncoderEnd(pass.get());
  device_.check("wgpuComputePassEncoderEnd");
}

void Stream::copy(const Place& to, const Place& from, uint64_t size) {
  // wgpu-native ends the process where a submission is invalid.
  BP_CHECK((to.offset | from.offset | size) % 4 == 0, VALUE, "minimal: found a copy of ", size, " bytes from ",
           from.offset, " to ", to.offset, ", expected multiples of 4 (copy_granule)");
  open();
  wgpuCommandEncoderCopyBufferToBuffer(open_.encoder.get(), from.buffer, from.offset, to.buffer, to.offset, size);
  device_.check("wgpuCommandEncoderCopyBufferToBuffer");
}

Stream::Flag Stream::map_to_read(WGPUBuffer buffer, uint64_t size) const {
  const Flag flag = make_flag();
  wgpuBufferMapAsync(buffer, WGPUMapMode_Read, 0, size,
                     {nullptr, WGPUCallbackMode_AllowSpontaneous, on_end<WGPUMapAsyncStatus>, new Flag(flag), nullptr});
  return flag;
}

void Stream::read(void* to, const Place& from, uint64_t size) {
  const Buffer between = device_.make_buffer(size, WGPUBufferUsage_MapRead | WGPUBufferUsage_CopyDst);
  copy({between.get(), 0, size}, from, size);
  submit();
  const Flag mapped = map_to_read(between.get(), size);
  device_.check("wgpuBufferMapAsync");
  while (!*mapped) {
    wgpuDevicePoll(device_.handle, false, nullptr);
    device_.check("wgpuDevicePoll");
    if (!*mapped) std::this_thread::sleep_for(kPause);
  }
  const void* bytes = wgpuBufferGetConstMappedRange(between.get(), 0, size);
  BP_CHECK(bytes != nullptr, DEVICE, "minimal: wgpuBufferMapAsync has failed");
  std::memcpy(to, bytes, size);
}

void Stream::submit() {
  open();
  for (const Buffer& buffer : open_.staging) wgpuBufferUnmap(buffer.get());
  const uint64_t size = 4 * open_.watches.size();
  if (open_.faults) {
    open_.read_faults = device_.make_buffer(4 * kMostWatches, WGPUBufferUsage_MapRead | WGPUBufferUsage_CopyDst);
    copy({open_.read_faults.get(), 0, size}, {open_.faults.get(), 0, size}, size);
  }
  const Ref<WGPUCommandBuffer, wgpuCommandBufferRelease> commands(
      wgpuCommandEncoderFinish(open_.encoder.get(), nullptr));
  const WGPUCommandBuffer list[] = {commands.get()};
  wgpuQueueSubmit(device_.queue, 1, list);
  device_.check("wgpuQueueSubmit");
  if (open_.faults) {
    open_.ended = map_to_read(open_.read_faults.get(), size);
  } else {
    open_.ended = make_flag();
    wgpuQueueOnSubmittedWorkDone(device_.queue, {nullptr, WGPUCallbackMode_AllowSpontaneous,
                                                 on_end<WGPUQueueWorkDoneStatus>, new Flag(open_.ended), nullptr});
  }
  open_.encoder.reset();
  open_.staging.clear();  // wgpu-native keeps what submitted commands use
  open_.used = 0;
  std::lock_guard lock(mutex_);
  open_.number = ++batches_;
  submitted_.push_back(std::exchange(open_, {}));
}

// Takes the batches that have ended, and turns what their watches have found into errors.
void Stream::retire_locked() {
  wgpuDevicePoll(device_.handle, false, nullptr);
  device_.check("wgpuDevicePoll");
  for (; !submitted_.empty() && *submitted_.front().ended; submitted_.pop_front()) {
    Batch& batch = submitted_.front();
    if (batch.read_faults) {
      const auto* words = static_cast<const uint32_t*>(
          wgpuBufferGetConstMappedRange(batch.read_faults.get(), 0, 4 * batch.watches.size()));
      for (size_t i = 0; words != nullptr && i < batch.watches.size(); ++i)
        if (words[i] != 0) errors_.push_back({batch.watches[i].ticket, std::move(batch.watches[i].message)});
    }
    ended_ = batch.number;
  }
  for (; !marks_.empty() && marks_.front().batch <= ended_; marks_.pop_front()) completed_ = marks_.front().ticket;
}

void Stream::wait_batch(uint64_t number) {
  for (;;) {
    {
      std::lock_guard lock(mutex_);
      retire_locked();
      if (ended_ >= number) return;
    }
    std::this_thread::sleep_for(kPause);
  }
}

uint64_t Stream::batch_of(uint64_t ticket) {
  for (const Mark& mark : marks_)
    if (mark.ticket >= ticket) return mark.batch;
  return 0;
}

void Stream::flush(uint64_t ticket) {
  if (ticket <= flushed_) return;
  if (open_.encoder) submit();
  std::lock_guard lock(mutex_);
  marks_.push_back({ticket, batches_});
  flushed_ = ticket;
}

uint64_t Stream::completed() {
  std::lock_guard lock(mutex_);
  retire_locked();
  return completed_;
}

bp_status Stream::wait(uint64_t ticket) {
  uint64_t batch = 0;
  {
    std::lock_guard lock(mutex_);
    if (completed_ < ticket) batch = batch_of(ticket);
  }
  wait_batch(batch);  // unlocked: others go on recording
  std::lock_guard lock(mutex_);
  return !errors_.empty() && errors_.front().ticket <= ticket ? errors_.front().code : BP_OK;
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

// Batches, their submission and their end; see stream.hpp. Copies to and from the host are in transfer.cpp.
#include "runtime/stream.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "runtime/check.hpp"

namespace backplane::vulkan {
namespace {

// A batch of this much is submitted before the host flushes, so that the device works while more is recorded.
constexpr uint32_t kCommandsPerBatch = 256;
constexpr uint64_t kStagedPerBatch = 16ull << 20;  // bytes

constexpr VkPipelineStageFlags kStages = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT;

VkSemaphore make_timeline(VkDevice device) {
  VkSemaphoreTypeCreateInfo type{};
  type.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO;
  type.semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE;
  VkSemaphoreCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO;
  info.pNext = &type;
  VkSemaphore semaphore = VK_NULL_HANDLE;
  check(vkCreateSemaphore(device, &info, nullptr, &semaphore), "vkCreateSemaphore");
  return semaphore;
}

// False: the time, in nanoseconds, has ended.
bool wait_timeline(VkDevice device, VkSemaphore semaphore, uint64_t value, uint64_t timeout = UINT64_MAX) {
  VkSemaphoreWaitInfo info{};
  info.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO;
  info.semaphoreCount = 1;
  info.pSemaphores = &semaphore;
  info.pValues = &value;
  const VkResult result = vkWaitSemaphores(device, &info, timeout);
  if (result == VK_TIMEOUT) return false;
  check(result, "vkWaitSemaphores");
  return true;
}

uint64_t value_of(VkDevice device, VkSemaphore semaphore) {
  uint64_t value = 0;
  check(vkGetSemaphoreCounterValue(device, semaphore, &value), "vkGetSemaphoreCounterValue");
  return value;
}

void barrier(VkCommandBuffer commands, VkPipelineStageFlags to, VkAccessFlags accesses) {
  VkMemoryBarrier memory{};
  memory.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
  memory.srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
  memory.dstAccessMask = accesses;
  vkCmdPipelineBarrier(commands, kStages, to, 0, 1, &memory, 0, nullptr, 0, nullptr);
}

void full_barrier(VkCommandBuffer commands) {
  barrier(commands, kStages,
          VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_READ_BIT |
              VK_ACCESS_TRANSFER_WRITE_BIT);
}

}  // namespace

Stream::Stream(Device& device) : device_(device), arena_(device) {
  try {
    make_objects();
  } catch (...) {
    release();
    throw;
  }
}

void Stream::make_objects() {
  VkCommandPoolCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO;
  info.flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT;
  info.queueFamilyIndex = device_.queue_family();
  check(vkCreateCommandPool(device_.handle(), &info, nullptr, &pool_), "vkCreateCommandPool");
  batches_ = make_timeline(device_.handle());
  fault_block_ = device_.make_staging(sizeof(Fault));
  std::memset(fault_block_.mapped, 0, sizeof(Fault));
}

Stream::~Stream() {
  callbacks_.reset();
  // The whole queue, not this stream's last batch: Mesa's submission thread still touches the semaphores of a batch,
  // awaited ones included, after it has signalled them. A lost device fails here and has ended all its work.
  {
    std::lock_guard lock(device_.mutex);
    (void)vkQueueWaitIdle(device_.queue());
  }
  release();
}

void Stream::release() noexcept {
  for (const Batch& batch : submitted_) arena_.give_back(batch.staging);
  if (fault_block_.buffer) device_.destroy(fault_block_);
  vkDestroySemaphore(device_.handle(), batches_, nullptr);
  vkDestroyCommandPool(device_.handle(), pool_, nullptr);
}

VkCommandBuffer Stream::open() {
  if (open_.commands) return open_.commands;
  recycle();
  VkCommandBuffer commands = VK_NULL_HANDLE;
  if (free_.empty()) {
    VkCommandBufferAllocateInfo info{};
    info.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO;
    info.commandPool = pool_;
    info.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
    info.commandBufferCount = 1;
    check(vkAllocateCommandBuffers(device_.handle(), &info, &commands), "vkAllocateCommandBuffers");
    free_.push_back(commands);
    ++device_.counts.objects;
  }
  commands = free_.back();
  VkCommandBufferBeginInfo begin{};
  begin.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
  begin.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
  check(vkBeginCommandBuffer(commands, &begin), "vkBeginCommandBuffer");
  free_.pop_back();
  return open_.commands = commands;
}

VkCommandBuffer Stream::behind_hazards(std::span<const Range> writes, std::span<const Range> reads) {
  const VkCommandBuffer commands = open();
  if (hazards_.note(writes, reads)) {
    full_barrier(commands);
    ++device_.counts.barriers;
  }
  ++commands_;
  ++device_.counts.commands;
  return commands;
}

VkCommandBuffer Stream::record() {
  const VkCommandBuffer commands = open();
  full_barrier(commands);
  hazards_.note_unknown();
  ++commands_;
  return commands;
}

void Stream::write_timestamp(VkQueryPool pool, uint32_t query) {
  vkCmdWriteTimestamp(open(), VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, pool, query);
  ++commands_;
}

Place Stream::stage(uint64_t size) {
  open();
  open_.staged_bytes += size;
  staged_bytes_ += size;
  return arena_.take(size);
}

void Stream::dispatch(const Shader& shader, const Push& push, uint32_t groups, std::span<const Range> writes,
                      std::span<const Range> reads) {
  record_dispatch(device_.pipeline(shader), std::as_bytes(std::span(&push, 1)), groups, writes, reads);
}

void Stream::dispatch(const SharedPipeline& pipeline, std::span<const std::byte> push, uint32_t groups,
                      std::span<const Range> writes, std::span<const Range> reads) {
  open();
  open_.pipelines.push_back(pipeline);
  record_dispatch(pipeline->handle(), push, groups, writes, reads);
}

void Stream::record_dispatch(VkPipeline pipeline, std::span<const std::byte> push, uint32_t groups,
                             std::span<const Range> writes, std::span<const Range> reads) {
  const VkCommandBuffer commands = behind_hazards(writes, reads);
  vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline);
  vkCmdPushConstants(commands, device_.layout(), VK_SHADER_STAGE_COMPUTE_BIT, 0, kPushBytes, push.data());
  vkCmdDispatch(commands, std::min(groups, device_.most_groups()), 1, 1);
  submit_if_large();
}

void Stream::copy(const Place& target, const Place& source, uint64_t size) {
  const Range write{target.address, target.address + size}, read{source.address, source.address + size};
  const VkBufferCopy region{source.offset, target.offset, size};
  vkCmdCopyBuffer(behind_hazards({&write, 1}, {&read, 1}), source.buffer, target.buffer, 1, &region);
  submit_if_large();
}

void Stream::fill(const Place& target, uint32_t word, uint64_t size) {
  const Range write{target.address, target.address + size};
  vkCmdFillBuffer(behind_hazards({&write, 1}, {}), target.buffer, target.offset, size, word);
  submit_if_large();
}

void Stream::flush(uint64_t ticket) {
  {
    std::lock_guard lock(mutex_);
    if (ticket <= last_flushed_) return;
  }
  if (open_.commands || !waits_.empty()) submit();
  std::lock_guard lock(mutex_);
  flushed_.push_back({ticket, batch_});
  last_flushed_ = ticket;
}

void Stream::notify(uint64_t ticket, bp_completion_fn function, void* argument) {
  flush(ticket - 1);  // which completes before the function
  if (open_.commands || !waits_.empty()) submit();
  if (!callbacks_) callbacks_ = std::make_unique<Callbacks>(device_.handle(), batches_);
  waits_.push_back({batches_, batch_ + 1});
  callbacks_->add(batch_ + 1, function, argument);
  ++batch_;
}

void Stream::wait_behind(const Stream& other, uint64_t ticket) {
  if (&other == this) return;
  // Work that is recorded already does not wait, so two streams that wait for each other's past never deadlock.
  if (open_.commands) submit();
  std::lock_guard lock(other.mutex_);
  waits_.push_back({other.batches_, other.batch_of(ticket)});
}

void Stream::submit_if_large() {
  if (commands_ >= kCommandsPerBatch || open_.staged_bytes >= kStagedPerBatch) submit();
}

void Stream::host_barrier() { barrier(open(), VK_PIPELINE_STAGE_HOST_BIT, VK_ACCESS_HOST_READ_BIT); }

// A signal waits for all that was submitted to the queue before it.
void Stream::submit() {
  if (open_.commands) {
    host_barrier();  // for the fault, and for memory that the host reads directly
    check(vkEndCommandBuffer(open_.commands), "vkEndCommandBuffer");
  }
  std::vector<VkSemaphore> wait_semaphores;
  std::vector<uint64_t> wait_values;
  for (const Wait& wait : waits_) {
    wait_semaphores.push_back(wait.semaphore);
    wait_values.push_back(wait.value);
  }
  const std::vector<VkPipelineStageFlags> wait_stages(waits_.size(), VK_PIPELINE_STAGE_ALL_COMMANDS_BIT);
  const uint64_t number = batch_ + 1;
  VkTimelineSemaphoreSubmitInfo timeline{};
  timeline.sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO;
  timeline.waitSemaphoreValueCount = static_cast<uint32_t>(wait_values.size());
  timeline.pWaitSemaphoreValues = wait_values.data();
  timeline.signalSemaphoreValueCount = 1;
  timeline.pSignalSemaphoreValues = &number;
  VkSubmitInfo info{};
  info.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO;
  info.pNext = &timeline;
  info.waitSemaphoreCount = static_cast<uint32_t>(wait_semaphores.size());
  info.pWaitSemaphores = wait_semaphores.data();
  info.pWaitDstStageMask = wait_stages.data();
  info.commandBufferCount = open_.commands ? 1 : 0;
  info.pCommandBuffers = &open_.commands;
  info.signalSemaphoreCount = timeline.signalSemaphoreValueCount;
  info.pSignalSemaphores = &batches_;
  VkResult result;
  {
    std::lock_guard lock(device_.mutex);
    result = vkQueueSubmit(device_.queue(), 1, &info, VK_NULL_HANDLE);
  }
  // For any cause: the recorded work will not run, and tickets behind it would never complete.
  BP_CHECK(result == VK_SUCCESS, DEVICE_LOST, "vulkan: vkQueueSubmit gave ", result_name(result));
  ++device_.counts.submissions;
  open_.number = batch_ = number;
  open_.staging = arena_.retire();
  submitted_.push_back(std::exchange(open_, {}));
  waits_.clear();
  commands_ = 0;
}

void Stream::recycle() {
  const uint64_t done = value_of(device_.handle(), batches_);
  while (!submitted_.empty() && submitted_.front().number <= done) {
    arena_.give_back(submitted_.front().staging);
    staged_bytes_ -= submitted_.front().staged_bytes;
    if (submitted_.front().commands) free_.push_back(submitted_.front().commands);
    submitted_.pop_front();
  }
}

// Has everything that was put on this stream ended, with nothing to wait for?
bool Stream::idle() {
  if (open_.commands || !waits_.empty()) return false;
  recycle();
  return submitted_.empty();
}

std::optional<Fault> Stream::fault(bool take) {
  Fault found;
  std::memcpy(&found, fault_block_.mapped, sizeof(found));
  if (!found.taken) return std::nullopt;
  if (take) std::memset(fault_block_.mapped, 0, sizeof(Fault));
  return found;
}

uint64_t Stream::batch_of(uint64_t ticket) const {
  for (const Flushed& flushed : flushed_)
    if (flushed.ticket >= ticket) return flushed.batch;
  return done_.batch;
}

uint64_t Stream::completed() const {
  const uint64_t batch = value_of(device_.handle(), batches_);
  std::lock_guard lock(mutex_);
  for (; !flushed_.empty() && flushed_.front().batch <= batch; flushed_.pop_front()) done_ = flushed_.front();
  return done_.ticket;
}

bool Stream::wait_ticket(uint64_t ticket, uint64_t timeout) const {
  uint64_t batch = 0;
  {
    std::lock_guard lock(mutex_);
    batch = batch_of(ticket);
  }
  return wait_timeline(device_.handle(), batches_, batch, timeout);
}

void Stream::wait_batch(uint64_t batch) const { wait_timeline(device_.handle(), batches_, batch); }

}  // namespace backplane::vulkan

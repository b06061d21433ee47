// Batches, their submission and their end; see stream.hpp.
#include "runtime/stream.hpp"

#include <cstring>
#include <utility>

#include "runtime/check.hpp"

namespace backplane::vulkan {
namespace {

// A batch of this much is submitted before the host flushes, so that the device works while more is recorded.
constexpr uint32_t kCommandsPerBatch = 128;
constexpr uint64_t kStagedPerBatch = 64ull << 20;  // bytes

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

void wait_timeline(VkDevice device, VkSemaphore semaphore, uint64_t value) {
  VkSemaphoreWaitInfo info{};
  info.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO;
  info.semaphoreCount = 1;
  info.pSemaphores = &semaphore;
  info.pValues = &value;
  check(vkWaitSemaphores(device, &info, UINT64_MAX), "vkWaitSemaphores");
}

void barrier(VkCommandBuffer commands, VkPipelineStageFlags to, VkAccessFlags reads) {
  VkMemoryBarrier memory{};
  memory.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
  memory.srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
  memory.dstAccessMask = reads;
  vkCmdPipelineBarrier(commands, kStages, to, 0, 1, &memory, 0, nullptr, 0, nullptr);
}

}  // namespace

Stream::Stream(Device& device) : device_(device) {
  VkCommandPoolCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO;
  info.flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT;
  info.queueFamilyIndex = device.queue_family();
  check(vkCreateCommandPool(device.handle(), &info, nullptr, &pool_), "vkCreateCommandPool");
  try {
    tickets_ = make_timeline(device.handle());
    batches_ = make_timeline(device.handle());
  } catch (...) {
    release();
    throw;
  }
}

Stream::~Stream() {
  // The whole queue, not this stream's last batch: Mesa's submission thread still touches the semaphores of a batch,
  // awaited ones included, after it has signalled them. A lost device fails here and has ended all its work.
  (void)vkQueueWaitIdle(device_.queue());
  release();
}

void Stream::release() noexcept {
  for (const Batch& batch : submitted_)
    for (const Block& block : batch.staging) device_.destroy(block);
  for (const Block& block : open_.staging) device_.destroy(block);
  vkDestroySemaphore(device_.handle(), batches_, nullptr);
  vkDestroySemaphore(device_.handle(), tickets_, nullptr);
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
  }
  commands = free_.back();
  VkCommandBufferBeginInfo begin{};
  begin.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
  begin.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
  check(vkBeginCommandBuffer(commands, &begin), "vkBeginCommandBuffer");
  free_.pop_back();
  return open_.commands = commands;
}

VkCommandBuffer Stream::record() {
  const VkCommandBuffer commands = open();
  barrier(commands, kStages,
          VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_READ_BIT |
              VK_ACCESS_TRANSFER_WRITE_BIT);
  ++commands_;
  return commands;
}

void Stream::dispatch(Shader shader, const void* push, uint32_t push_bytes, uint32_t groups) {
  const VkPipeline pipeline = device_.pipeline(shader);
  const VkCommandBuffer commands = record();
  vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline);
  vkCmdPushConstants(commands, device_.layout(), VK_SHADER_STAGE_COMPUTE_BIT, 0, push_bytes, push);
  vkCmdDispatch(commands, groups, 1, 1);
  submit_if_large();
}

void Stream::upload(const Block& target, uint64_t offset, const void* source, uint64_t size) {
  open();
  open_.staging.reserve(open_.staging.size() + 1);  // so that the block has an owner at once
  const Block staging = device_.make_staging(size);
  open_.staging.push_back(staging);
  std::memcpy(staging.mapped, source, size);
  const VkBufferCopy region{0, offset, size};
  vkCmdCopyBuffer(record(), staging.buffer, target.buffer, 1, &region);
  staged_bytes_ += size;
  submit_if_large();
}

void Stream::copy(const Block& target, uint64_t target_offset, const Block& source, uint64_t source_offset,
                  uint64_t size) {
  const VkBufferCopy region{source_offset, target_offset, size};
  vkCmdCopyBuffer(record(), source.buffer, target.buffer, 1, &region);
  submit_if_large();
}

uint64_t Stream::download(const Block& staging, const Block& source, uint64_t offset, uint64_t size) {
  const VkBufferCopy region{offset, 0, size};
  const VkCommandBuffer commands = record();
  vkCmdCopyBuffer(commands, source.buffer, staging.buffer, 1, &region);
  barrier(commands, VK_PIPELINE_STAGE_HOST_BIT, VK_ACCESS_HOST_READ_BIT);
  submit(0);
  return batch_;
}

void Stream::flush(uint64_t ticket) {
  if (ticket > signalled_) submit(ticket);
}

void Stream::wait_behind(const Stream& other, uint64_t ticket) {
  if (&other == this) return;
  // What is recorded already does not wait, so that two streams that wait for each other's past never stand still.
  if (open_.commands) submit(0);
  waits_.push_back({other.tickets_, ticket});
}

void Stream::submit_if_large() {
  if (commands_ >= kCommandsPerBatch || staged_bytes_ >= kStagedPerBatch) submit(0);
}

// With a ticket, signals it: a signal waits for all that was submitted to the queue before it.
void Stream::submit(uint64_t ticket) {
  if (open_.commands) check(vkEndCommandBuffer(open_.commands), "vkEndCommandBuffer");
  std::vector<VkSemaphore> wait_semaphores;
  std::vector<uint64_t> wait_values;
  for (const Wait& wait : waits_) {
    wait_semaphores.push_back(wait.semaphore);
    wait_values.push_back(wait.value);
  }
  const std::vector<VkPipelineStageFlags> wait_stages(waits_.size(), VK_PIPELINE_STAGE_ALL_COMMANDS_BIT);
  const VkSemaphore signals[2] = {batches_, tickets_};
  const uint64_t values[2] = {batch_ + 1, ticket};
  VkTimelineSemaphoreSubmitInfo timeline{};
  timeline.sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO;
  timeline.waitSemaphoreValueCount = static_cast<uint32_t>(wait_values.size());
  timeline.pWaitSemaphoreValues = wait_values.data();
  timeline.signalSemaphoreValueCount = ticket ? 2 : 1;
  timeline.pSignalSemaphoreValues = values;
  VkSubmitInfo info{};
  info.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO;
  info.pNext = &timeline;
  info.waitSemaphoreCount = static_cast<uint32_t>(wait_semaphores.size());
  info.pWaitSemaphores = wait_semaphores.data();
  info.pWaitDstStageMask = wait_stages.data();
  info.commandBufferCount = open_.commands ? 1 : 0;
  info.pCommandBuffers = &open_.commands;
  info.signalSemaphoreCount = timeline.signalSemaphoreValueCount;
  info.pSignalSemaphores = signals;
  const VkResult result = vkQueueSubmit(device_.queue(), 1, &info, VK_NULL_HANDLE);
  // Whatever the cause: what was recorded will not run, and tickets behind it would never complete.
  BP_CHECK(result == VK_SUCCESS, DEVICE_LOST, "vulkan: vkQueueSubmit gave ", result_name(result));
  open_.number = ++batch_;
  if (ticket) signalled_ = ticket;
  submitted_.push_back(std::exchange(open_, {}));
  waits_.clear();
  commands_ = 0;
  staged_bytes_ = 0;
}

void Stream::recycle() {
  uint64_t done = 0;
  check(vkGetSemaphoreCounterValue(device_.handle(), batches_, &done), "vkGetSemaphoreCounterValue");
  while (!submitted_.empty() && submitted_.front().number <= done) {
    for (const Block& block : submitted_.front().staging) device_.destroy(block);
    if (submitted_.front().commands) free_.push_back(submitted_.front().commands);
    submitted_.pop_front();
  }
}

uint64_t Stream::completed() const {
  uint64_t ticket = 0;
  check(vkGetSemaphoreCounterValue(device_.handle(), tickets_, &ticket), "vkGetSemaphoreCounterValue");
  return ticket;
}

void Stream::wait_ticket(uint64_t ticket) const { wait_timeline(device_.handle(), tickets_, ticket); }

void Stream::wait_batch(uint64_t batch) const { wait_timeline(device_.handle(), batches_, batch); }

}  // namespace backplane::vulkan

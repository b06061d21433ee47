// Batches, and tickets that end with them; see stream.hpp.
#include "runtime/stream.hpp"

#include <algorithm>
#include <utility>

namespace minimal {
namespace {

constexpr uint64_t kPage = 64 << 10;  // bytes of staging memory that are taken at once

void barrier(VkCommandBuffer commands, VkPipelineStageFlags to, VkAccessFlags accesses) {
  const VkMemoryBarrier all{.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
                            .srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT,
                            .dstAccessMask = accesses};
  vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT, to, 0, 1, &all,
                       0, nullptr, 0, nullptr);
}

}  // namespace

Stream::Stream(Device& device) : device_(device) {
  const VkCommandPoolCreateInfo pool{.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
                                     .queueFamilyIndex = device.family};
  check(vkCreateCommandPool(device.handle, &pool, nullptr, &pool_), "vkCreateCommandPool");
  const VkSemaphoreTypeCreateInfo type{.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
                                       .semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE};
  const VkSemaphoreCreateInfo semaphore{.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, .pNext = &type};
  const VkResult made = vkCreateSemaphore(device.handle, &semaphore, nullptr, &ended_);
  if (made != VK_SUCCESS) vkDestroyCommandPool(device.handle, pool_, nullptr);
  check(made, "vkCreateSemaphore");
}

Stream::~Stream() {
  {  // the whole queue: a driver may touch a batch's semaphores after it has signalled them
    std::lock_guard lock(device_.mutex);
    (void)vkQueueWaitIdle(device_.queue);
  }
  retired_.push_back(std::move(open_));
  for (Batch& batch : submitted_) retired_.push_back(std::move(batch));
  for (const Batch& batch : retired_)
    for (const Block& block : batch.staging) device_.destroy(block);
  vkDestroySemaphore(device_.handle, ended_, nullptr);
  vkDestroyCommandPool(device_.handle, pool_, nullptr);  // with its command buffers
}

void Stream::open() {
  if (open_.commands != VK_NULL_HANDLE) return;
  std::deque<Batch> retired;
  {
    std::lock_guard lock(mutex_);
    retire_locked();
    retired.swap(retired_);
  }
  for (const Batch& batch : retired) {
    if (batch.commands != VK_NULL_HANDLE) vkFreeCommandBuffers(device_.handle, pool_, 1, &batch.commands);
    for (const Block& block : batch.staging) device_.destroy(block);
  }
  const VkCommandBufferAllocateInfo info{.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                         .commandPool = pool_,
                                         .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
                                         .commandBufferCount = 1};
  check(vkAllocateCommandBuffers(device_.handle, &info, &open_.commands), "vkAllocateCommandBuffers");
  const VkCommandBufferBeginInfo begin{.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
                                       .flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT};
  check(vkBeginCommandBuffer(open_.commands, &begin), "vkBeginCommandBuffer");
}

Staged Stream::stage(uint64_t size) {
  open();
  const uint64_t needed = (size + 15) / 16 * 16;
  if (open_.staging.empty() || open_.used + needed > open_.staging.back().size) {
    open_.staging.push_back(device_.make_block(
        std::max(needed, kPage), VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT));
    open_.used = 0;
  }
  const Block& block = open_.staging.back();
  const uint64_t at = std::exchange(open_.used, open_.used + needed);
  return {{block.buffer, at}, block.address + at, block.mapped + at};
}

VkCommandBuffer Stream::behind_barrier() {
  open();
  barrier(open_.commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT,
          VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_READ_BIT |
              VK_ACCESS_TRANSFER_WRITE_BIT);
  return open_.commands;
}

void Stream::dispatch(VkPipeline pipeline, uint64_t arguments, uint32_t groups) {
  const VkCommandBuffer commands = behind_barrier();
  vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline);
  vkCmdPushConstants(commands, device_.layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof(arguments), &arguments);
  vkCmdDispatch(commands, groups, 1, 1);
}

void Stream::copy(const Place& to, const Place& from, uint64_t size) {
  const VkBufferCopy region{from.offset, to.offset, size};
  vkCmdCopyBuffer(behind_barrier(), from.buffer, to.buffer, 1, &region);
}

void Stream::watch(const char* word, uint64_t ticket, std::string message) {
  open_.watches.push_back({word, ticket, std::move(message)});
}

void Stream::submit() {
  open();
  barrier(open_.commands, VK_PIPELINE_STAGE_HOST_BIT, VK_ACCESS_HOST_READ_BIT);  // for staging memory
  check(vkEndCommandBuffer(open_.commands), "vkEndCommandBuffer");
  const uint64_t number = batches_ + 1;
  const VkTimelineSemaphoreSubmitInfo values{.sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO,
                                             .waitSemaphoreValueCount = static_cast<uint32_t>(wait_values_.size()),
                                             .pWaitSemaphoreValues = wait_values_.data(),
                                             .signalSemaphoreValueCount = 1,
                                             .pSignalSemaphoreValues = &number};
  const std::vector<VkPipelineStageFlags> stages(waits_.size(), VK_PIPELINE_STAGE_ALL_COMMANDS_BIT);
  const VkSubmitInfo info{.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                          .pNext = &values,
                          .waitSemaphoreCount = static_cast<uint32_t>(waits_.size()),
                          .pWaitSemaphores = waits_.data(),
                          .pWaitDstStageMask = stages.data(),
                          .commandBufferCount = 1,
                          .pCommandBuffers = &open_.commands,
                          .signalSemaphoreCount = 1,
                          .pSignalSemaphores = &ended_};
  {
    std::lock_guard lock(device_.mutex);
    const VkResult result = vkQueueSubmit(device_.queue, 1, &info, VK_NULL_HANDLE);
    // For any cause: the recorded work will not run, and its tickets would never complete.
    BP_CHECK(result == VK_SUCCESS, DEVICE_LOST, "minimal: vkQueueSubmit failed with code ", static_cast<int>(result));
  }
  waits_.clear();
  wait_values_.clear();
  open_.number = number;
  std::lock_guard lock(mutex_);
  batches_ = number;
  submitted_.push_back(std::exchange(open_, {}));
}

void Stream::finish() {
  submit();
  wait_batch(batches_);
}

void Stream::wait_batch(uint64_t number) {
  const VkSemaphoreWaitInfo info{
      .sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO, .semaphoreCount = 1, .pSemaphores = &ended_, .pValues = &number};
  check(vkWaitSemaphores(device_.handle, &info, UINT64_MAX), "vkWaitSemaphores");
}

// Takes the batches that have ended, and turns what their watches have found into errors.
void Stream::retire_locked() {
  uint64_t ended = 0;
  check(vkGetSemaphoreCounterValue(device_.handle, ended_, &ended), "vkGetSemaphoreCounterValue");
  for (; !submitted_.empty() && submitted_.front().number <= ended; submitted_.pop_front()) {
    for (Watch& watch : submitted_.front().watches)
      if (*watch.word != 0) errors_.push_back({watch.ticket, std::move(watch.message)});
    retired_.push_back(std::move(submitted_.front()));
  }
  for (; !marks_.empty() && marks_.front().batch <= ended; marks_.pop_front()) completed_ = marks_.front().ticket;
}

uint64_t Stream::batch_of(uint64_t ticket) {
  std::lock_guard lock(mutex_);
  for (const Mark& mark : marks_)
    if (mark.ticket >= ticket && completed_ < ticket) return mark.batch;
  return 0;
}

void Stream::flush(uint64_t ticket) {
  if (ticket <= flushed_) return;
  if (open_.commands != VK_NULL_HANDLE || !waits_.empty()) submit();
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
  wait_batch(batch_of(ticket));  // unlocked: others go on recording
  std::lock_guard lock(mutex_);
  retire_locked();
  return !errors_.empty() && errors_.front().ticket <= ticket ? BP_ERROR_DATA : BP_OK;
}

void Stream::wait_behind(Stream& other, uint64_t ticket) {
  if (&other == this) return;
  // Work that is recorded already does not wait, so two streams that wait for each other's past never deadlock.
  if (open_.commands != VK_NULL_HANDLE) submit();
  wait_values_.push_back(other.batch_of(ticket));
  waits_.push_back(other.ended_);
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

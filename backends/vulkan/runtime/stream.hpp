// One stream: work is recorded into an open batch (a command buffer), which is submitted when the host flushes.
//
// Two timeline semaphores: `tickets` holds the host's tickets, signalled by flush alone; `batches` counts submissions
// and says when a command buffer and its staging memory are free again. Each command is preceded by a barrier against
// all earlier ones. All functions are called under Device::mutex, except those that say otherwise.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "runtime/device.hpp"

namespace backplane::vulkan {

class Stream {
 public:
  explicit Stream(Device& device);
  ~Stream();  // waits for what was submitted to the device
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  // The open batch, behind a barrier: what is recorded next sees all that was recorded before.
  VkCommandBuffer record();
  void dispatch(Shader shader, const void* push, uint32_t push_bytes, uint32_t groups);
  void upload(const Block& target, uint64_t offset, const void* source, uint64_t size);
  void copy(const Block& target, uint64_t target_offset, const Block& source, uint64_t source_offset, uint64_t size);
  // Records a copy to staging memory, submits it, and gives the batch to wait for; `staging` is then the caller's.
  uint64_t download(const Block& staging, const Block& source, uint64_t offset, uint64_t size);

  void flush(uint64_t ticket);
  void wait_behind(const Stream& other, uint64_t ticket);

  // Any thread, without the mutex.
  uint64_t completed() const;
  void wait_ticket(uint64_t ticket) const;
  void wait_batch(uint64_t batch) const;
  VkSemaphore tickets() const { return tickets_; }

 private:
  struct Batch {
    VkCommandBuffer commands = VK_NULL_HANDLE;
    uint64_t number = 0;
    std::vector<Block> staging;
  };
  struct Wait {
    VkSemaphore semaphore;
    uint64_t value;
  };
  VkCommandBuffer open();
  void submit(uint64_t ticket);
  void submit_if_large();
  void recycle();
  void release() noexcept;

  Device& device_;
  VkCommandPool pool_ = VK_NULL_HANDLE;
  VkSemaphore tickets_ = VK_NULL_HANDLE;
  VkSemaphore batches_ = VK_NULL_HANDLE;
  Batch open_;
  uint32_t commands_ = 0;      // in the open batch
  uint64_t staged_bytes_ = 0;  // likewise
  std::vector<Wait> waits_;    // of the open batch
  std::deque<Batch> submitted_;
  std::vector<VkCommandBuffer> free_;
  uint64_t batch_ = 0;      // the last submitted
  uint64_t signalled_ = 0;  // the highest ticket submitted to be signalled
};

}  // namespace backplane::vulkan

// One stream: work is recorded into an open batch (a command buffer), which is submitted when the host flushes, or once
// it is large.
//
// One timeline semaphore counts the batches that have ended, which says when a command buffer and its staging memory
// are free again; a ticket is complete with the batch that its flush submitted. A barrier stands before a command that
// depends on one before it. The host serialises calls on a stream, but for those that say otherwise.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "runtime/arena.hpp"
#include "runtime/callbacks.hpp"
#include "runtime/fault.hpp"
#include "runtime/hazards.hpp"

namespace backplane::vulkan {

// The kernels' push constants; see shaders/call.glsl.
struct Push {
  std::array<uint64_t, 4> at{};  // operands: addresses, or a number's bits
  uint64_t dims = 0;             // address of what Stream::stage holds
  uint64_t fault = 0;            // address of the stream's Fault
  uint64_t ticket = 0;
  std::array<uint32_t, 18> n{};
};
static_assert(sizeof(Push) == kPushBytes);

class Stream {
 public:
  explicit Stream(Device& device);
  ~Stream();  // waits for what was submitted to the device
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  Device& device() const { return device_; }
  // Host memory that commands of the open batch may use, of Arena::kLargest bytes at most.
  Place stage(uint64_t size);
  void dispatch(const Shader& shader, const Push& push, uint32_t groups, std::span<const Range> writes,
                std::span<const Range> reads);
  // Of kPushBytes of push constants. Holds the pipeline until the batch has ended.
  void dispatch(const SharedPipeline& pipeline, std::span<const std::byte> push, uint32_t groups,
                std::span<const Range> writes, std::span<const Range> reads);
  void copy(const Place& target, const Place& source, uint64_t size);
  void fill(const Place& target, uint32_t word, uint64_t size);  // place and size are of whole words
  void upload(const Place& target, const char* source, uint64_t size);
  void download(char* target, const Place& source, uint64_t size);  // returns when the bytes have arrived
  // The same for pinned memory, which is read when the stream reaches the copy. `pages`: the block in which it lies.
  void upload_pinned(const Place& target, const char* source, uint64_t size, std::span<char> pages);
  void download_pinned(char* target, const Place& source, uint64_t size, std::span<char> pages);
  void write_timestamp(VkQueryPool pool, uint32_t query);  // once what was recorded has ended
  // The open batch, behind a barrier, for commands of others.
  VkCommandBuffer record();

  void flush(uint64_t ticket);
  // `function` runs when the work before `ticket` has ended; later work waits for it.
  void notify(uint64_t ticket, bp_completion_fn function, void* argument);
  void wait_behind(const Stream& other, uint64_t ticket);

  uint64_t fault_address() const { return fault_block_.address; }
  // The oldest error of work that has ended, in the words of the kernels; takes it with `take`.
  std::optional<Fault> fault(bool take);

  // Any thread.
  uint64_t completed() const;
  // Waits at most `timeout` nanoseconds. False if the work did not end.
  bool wait_ticket(uint64_t ticket, uint64_t timeout = UINT64_MAX) const;

 private:
  struct Batch {
    VkCommandBuffer commands = VK_NULL_HANDLE;
    uint64_t number = 0;
    std::vector<Block> staging;
    std::vector<SharedPipeline> pipelines;
    uint64_t staged_bytes = 0;
  };
  struct Wait {
    VkSemaphore semaphore;
    uint64_t value;
  };
  VkCommandBuffer open();
  void record_dispatch(VkPipeline pipeline, std::span<const std::byte> push, uint32_t groups,
                       std::span<const Range> writes, std::span<const Range> reads);
  VkCommandBuffer behind_hazards(std::span<const Range> writes, std::span<const Range> reads);
  void host_barrier();
  bool idle();
  void submit();
  void submit_if_large();
  void end_all();
  void recycle();
  void wait_batch(uint64_t batch) const;
  void make_objects();
  void release() noexcept;

  Device& device_;
  VkCommandPool pool_ = VK_NULL_HANDLE;
  VkSemaphore batches_ = VK_NULL_HANDLE;
  Block fault_block_;
  Arena arena_;
  Hazards hazards_;
  Batch open_;
  uint32_t commands_ = 0;    // in the open batch
  std::vector<Wait> waits_;  // of the open batch
  std::deque<Batch> submitted_;
  uint64_t staged_bytes_ = 0;  // of submitted_ and open_
  std::vector<VkCommandBuffer> free_;
  uint64_t batch_ = 0;  // the last submitted, or the last of callbacks_
  std::unique_ptr<Callbacks> callbacks_;

  struct Flushed {
    uint64_t ticket, batch;
  };
  // The batch that the ticket is complete with. Under the mutex below.
  uint64_t batch_of(uint64_t ticket) const;
  mutable std::mutex mutex_;             // guards what follows
  mutable std::deque<Flushed> flushed_;  // may still run
  mutable Flushed done_{0, 0};           // the last known to have ended
  uint64_t last_flushed_ = 0;            // ticket
};

}  // namespace backplane::vulkan

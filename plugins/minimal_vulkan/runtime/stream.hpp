// A stream: commands are recorded into an open batch, a command buffer that is submitted when the host flushes.
//
// One timeline semaphore counts the batches that have ended; a ticket is complete with the batch that its flush
// submitted. A barrier stands before every command. The host serialises recording; completed, wait, take_error
// and a wait of another stream may come from any thread.
#pragma once

#include <deque>

#include "backplane/plugin/stream_slots.hpp"
#include "runtime/device.hpp"

namespace minimal {

using backplane::plugin::DeferredError;

// Memory of a batch, which the host reaches, until the batch has ended.
struct Staged {
  Place place;
  uint64_t address;
  char* mapped;
};

class Stream {
 public:
  explicit Stream(Device& device);
  ~Stream();  // waits for what was submitted
  Stream(const Stream&) = delete;

  Device& device() const { return device_; }
  Staged stage(uint64_t size);
  void dispatch(VkPipeline pipeline, uint64_t arguments, uint32_t groups);
  void copy(const Place& to, const Place& from, uint64_t size);
  // When the batch has ended and `word` is not 0: what the work of `ticket` has met.
  void watch(const char* word, uint64_t ticket, std::string message);
  void submit();
  void finish();  // submits, and waits

  void flush(uint64_t ticket);
  uint64_t completed();
  bp_status wait(uint64_t ticket);                   // BP_ERROR_DATA where work up to it met bad data
  void wait_behind(Stream& other, uint64_t ticket);  // later work starts after it
  bool take_error(DeferredError& out);

 private:
  struct Watch {
    const char* word;
    uint64_t ticket;
    std::string message;
  };
  struct Batch {
    uint64_t number = 0;
    VkCommandBuffer commands = VK_NULL_HANDLE;
    std::vector<Block> staging;
    uint64_t used = 0;  // bytes of the last block of staging
    std::vector<Watch> watches;
  };
  struct Mark {
    uint64_t ticket, batch;
  };
  void open();
  VkCommandBuffer behind_barrier();
  void wait_batch(uint64_t number);
  void retire_locked();
  uint64_t batch_of(uint64_t ticket);

  Device& device_;
  VkCommandPool pool_ = VK_NULL_HANDLE;
  VkSemaphore ended_ = VK_NULL_HANDLE;  // its value is the last batch that has
  Batch open_;
  std::vector<VkSemaphore> waits_;  // of the open batch, with the values that they wait for
  std::vector<uint64_t> wait_values_;

  std::mutex mutex_;  // guards what follows
  std::deque<Batch> submitted_;
  std::deque<Batch> retired_;  // whose memory the recording thread frees
  uint64_t batches_ = 0, completed_ = 0, flushed_ = 0;
  std::deque<Mark> marks_;
  std::deque<DeferredError> errors_;
};

}  // namespace minimal

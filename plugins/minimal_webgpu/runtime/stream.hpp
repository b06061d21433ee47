// A stream: commands are recorded into an open batch, which is submitted when the host flushes.
//
// All streams of a device share its one queue, in which submissions run one after the other: a stream that waits for
// another one's flushed work needs to do nothing. A ticket is complete with the batch that its flush submitted. The
// host serialises recording; completed, wait and take_error may come from any thread.
#pragma once

#include <deque>

#include "backplane/plugin/stream_slots.hpp"
#include "runtime/device.hpp"

namespace minimal {

using backplane::plugin::DeferredError;

// Bytes that the host reaches until the batch is submitted.
struct Staged {
  Place place;
  char* mapped;
};

// The bindings: the operands' blocks, then `arguments`.
struct Work {
  WGPUComputePipeline pipeline;
  Place blocks[kMaxOperands];
  Staged arguments;
  uint64_t arguments_size;
  uint32_t groups;
};

class Stream {
 public:
  explicit Stream(Device& device) : device_(device) {}
  ~Stream();  // waits for what was submitted
  Stream(const Stream&) = delete;

  Device& device() const { return device_; }
  Staged stage(uint64_t size);
  void dispatch(const Work& work);
  void copy(const Place& to, const Place& from, uint64_t size);
  void read(void* to, const Place& from, uint64_t size);  // waits
  // The number of a word. When the batch has ended and the word is not 0: what the work of `ticket` has met.
  uint32_t watch(uint64_t ticket, std::string message);

  void flush(uint64_t ticket);
  uint64_t completed();
  bp_status wait(uint64_t ticket);  // BP_ERROR_DATA where work up to it met bad data
  // Submissions of all streams run one after the other: flushed work comes before work that is recorded later.
  void wait_behind(Stream&, uint64_t) {}
  bool take_error(DeferredError& out);

 private:
  struct Watch {
    uint64_t ticket;
    std::string message;
  };
  // Set by a callback of the driver, which may come after the stream has gone.
  using Flag = std::shared_ptr<std::atomic<bool>>;
  struct Batch {
    uint64_t number = 0;
    Ref<WGPUCommandEncoder, wgpuCommandEncoderRelease> encoder;
    std::vector<Buffer> staging;  // the last one has room from `used` on
    char* mapped = nullptr;
    uint64_t used = 0;
    Buffer faults, read_faults;  // words that kernels set; what the host reads
    std::vector<Watch> watches;
    Flag ended;
  };
  struct Mark {
    uint64_t ticket, batch;
  };
  void open();
  void submit();
  void wait_batch(uint64_t number);
  void retire_locked();
  uint64_t batch_of(uint64_t ticket);
  static Flag make_flag() { return std::make_shared<std::atomic<bool>>(false); }
  Flag map_to_read(WGPUBuffer buffer, uint64_t size) const;

  Device& device_;
  Batch open_;

  std::mutex mutex_;  // guards what follows
  std::deque<Batch> submitted_;
  uint64_t batches_ = 0, ended_ = 0, completed_ = 0, flushed_ = 0;
  std::deque<Mark> marks_;
  std::deque<DeferredError> errors_;
};

}  // namespace minimal

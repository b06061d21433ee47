// One stream of a device: a CUDA stream, and an event per flushed ticket.
//
// CUDA starts work when it is recorded, so flush only marks the place with an event; events of completed tickets are
// recycled. The recording functions are serialised by the host; completed, wait and event_of take a lock of their own
// and may come from any thread. The device must be the calling thread's current one.
#pragma once

#include <cublas_v2.h>
#include <cuda_runtime_api.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

namespace backplane::cuda {

class Stream {
 public:
  Stream();   // throws backplane::Error
  ~Stream();  // waits for what is recorded
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  cudaStream_t handle() const { return stream_; }
  cublasHandle_t blas();  // made at its first use; its calls go to this stream

  void flush(uint64_t ticket);
  uint64_t completed();
  void wait(uint64_t ticket);
  void wait_behind(Stream& other, uint64_t ticket);

 private:
  using Event = std::shared_ptr<CUevent_st>;
  struct Mark {
    uint64_t ticket;
    Event event;
  };
  Event take_event();
  Event event_of(uint64_t ticket);  // nullptr: the ticket is complete

  cudaStream_t stream_ = nullptr;
  cublasHandle_t blas_ = nullptr;
  std::mutex mutex_;  // guards what follows
  std::deque<Mark> marks_;
  std::vector<Event> spare_;
  uint64_t completed_ = 0;
};

}  // namespace backplane::cuda

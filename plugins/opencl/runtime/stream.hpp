// A stream: an in-order command queue, whose tickets are the events of markers.
//
// The host serialises recording; completed, wait and take_error may come from any thread.
#pragma once

#include <deque>

#include "backplane/plugin/stream_slots.hpp"
#include "driver.hpp"

namespace opencl {

using backplane::plugin::DeferredError;

class Stream {
 public:
  explicit Stream(Device& device);
  ~Stream();
  Stream(const Stream&) = delete;

  Device& device() const { return device_; }
  cl_command_queue queue() const { return queue_; }

  // A word of device memory that the kernel recorded next makes other than 0 where it meets bad data, and what to say
  // then. The caller enqueues the kernel with it, and then calls watch_recorded.
  cl_mem new_watch(uint64_t ticket, std::string message);
  void watch_recorded(cl_mem word);

  void flush(uint64_t ticket);
  uint64_t completed();
  bp_status wait(uint64_t ticket);                   // BP_ERROR_DATA where work up to it met bad data
  void wait_behind(Stream& other, uint64_t ticket);  // later work starts after it
  bool take_error(DeferredError& out);

 private:
  struct Mark {
    uint64_t ticket;
    cl_event event;
  };
  struct Watch {
    uint64_t ticket;
    std::string message;
    cl_int found = 0;  // the driver writes it when the kernel is done
  };
  void retire_locked();

  Device& device_;
  cl_command_queue queue_ = nullptr;
  std::mutex mutex_;  // guards what follows
  uint64_t flushed_ = 0, completed_ = 0;
  cl_int failed_ = CL_SUCCESS;  // the first error of work that has ended
  std::deque<Mark> marks_;      // unfinished, in order
  std::deque<Watch> watches_;   // of unfinished work, in order
  std::deque<DeferredError> errors_;
};

}  // namespace opencl

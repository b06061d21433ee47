// Markers as tickets; see stream.hpp.
#include "stream.hpp"

#include <algorithm>

namespace opencl {

Stream::Stream(Device& device) : device_(device) {
  cl_int status = CL_SUCCESS;
  queue_ = clCreateCommandQueue(device.context(), device.id(), 0, &status);
  check(status, "clCreateCommandQueue");
}

Stream::~Stream() {
  clFinish(queue_);
  for (const Mark& mark : marks_) clReleaseEvent(mark.event);
  clReleaseCommandQueue(queue_);
}

cl_mem Stream::new_watch(uint64_t ticket, std::string message) {
  cl_int status = CL_SUCCESS, zero = 0;
  const cl_mem word =
      clCreateBuffer(device_.context(), CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, sizeof(zero), &zero, &status);
  check(status, "clCreateBuffer");
  std::lock_guard lock(mutex_);
  watches_.push_back({ticket, std::move(message)});
  return word;
}

// The read keeps the word's memory until it is done.
void Stream::watch_recorded(cl_mem word) {
  std::lock_guard lock(mutex_);
  check(clEnqueueReadBuffer(queue_, word, CL_FALSE, 0, sizeof(cl_int), &watches_.back().found, 0, nullptr, nullptr),
        "clEnqueueReadBuffer");
  clReleaseMemObject(word);
}

void Stream::flush(uint64_t ticket) {
  std::lock_guard lock(mutex_);
  if (ticket <= flushed_) return;
  cl_event event = nullptr;
  check(clEnqueueMarkerWithWaitList(queue_, 0, nullptr, &event), "clEnqueueMarkerWithWaitList");
  marks_.push_back({ticket, event});
  flushed_ = ticket;
  check(clFlush(queue_), "clFlush");
}

// Drops the marks that are complete, and turns what their watches have found into errors.
void Stream::retire_locked() {
  while (!marks_.empty()) {
    cl_int status = CL_QUEUED;
    clGetEventInfo(marks_.front().event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status), &status, nullptr);
    if (status > CL_COMPLETE) break;
    if (status < 0 && failed_ == CL_SUCCESS) failed_ = status;
    completed_ = marks_.front().ticket;
    clReleaseEvent(marks_.front().event);
    marks_.pop_front();
  }
  for (; !watches_.empty() && watches_.front().ticket <= completed_; watches_.pop_front())
    if (watches_.front().found != 0) errors_.push_back({watches_.front().ticket, watches_.front().message});
}

uint64_t Stream::completed() {
  std::lock_guard lock(mutex_);
  retire_locked();
  return completed_;
}

bp_status Stream::wait(uint64_t ticket) {
  cl_event event = nullptr;
  {
    std::lock_guard lock(mutex_);
    const auto found =
        std::find_if(marks_.begin(), marks_.end(), [&](const Mark& mark) { return mark.ticket >= ticket; });
    if (found != marks_.end()) {
      event = found->event;
      clRetainEvent(event);
    }
  }
  if (event != nullptr) {  // unlocked: others go on recording
    const cl_int status = clWaitForEvents(1, &event);
    clReleaseEvent(event);
    check(status, "clWaitForEvents");
  }
  std::lock_guard lock(mutex_);
  retire_locked();
  check(failed_, "recorded work");
  return !errors_.empty() && errors_.front().ticket <= ticket ? BP_ERROR_DATA : BP_OK;
}

void Stream::wait_behind(Stream& other, uint64_t ticket) {
  cl_event event = nullptr;
  {
    std::lock_guard lock(other.mutex_);
    for (const Mark& mark : other.marks_) {
      if (mark.ticket < ticket) continue;
      event = mark.event;
      clRetainEvent(event);
      break;
    }
  }
  if (event == nullptr) return;  // done already
  const cl_int status = clEnqueueBarrierWithWaitList(queue_, 1, &event, nullptr);
  clReleaseEvent(event);
  check(status, "clEnqueueBarrierWithWaitList");
}

bool Stream::take_error(DeferredError& out) {
  (void)completed();  // the host may know from another stream that this one's work has ended
  std::lock_guard lock(mutex_);
  if (errors_.empty()) return false;
  out = std::move(errors_.front());
  errors_.pop_front();
  return true;
}

}  // namespace opencl

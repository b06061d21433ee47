// Tickets as events; see stream.hpp.
#include "runtime/stream.hpp"

#include <utility>

#include "runtime/check.hpp"

namespace backplane::cuda {

// Non-blocking: the legacy default stream, which other libraries of the process may use, does not order it.
Stream::Stream() { check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreateWithFlags"); }

Stream::~Stream() {
  // After a fatal error these fail, and there is nothing left to free.
  (void)cudaStreamSynchronize(stream_);
  if (blas_) (void)cublasDestroy(blas_);
  (void)cudaStreamDestroy(stream_);
}

cublasHandle_t Stream::blas() {
  if (blas_) return blas_;
  cublasHandle_t made = nullptr;
  check(cublasCreate(&made), "cublasCreate");
  if (const cublasStatus_t status = cublasSetStream(made, stream_); status != CUBLAS_STATUS_SUCCESS) {
    (void)cublasDestroy(made);
    check(status, "cublasSetStream");
  }
  return blas_ = made;
}

Stream::Event Stream::take_event() {
  if (!spare_.empty()) {
    Event event = std::move(spare_.back());
    spare_.pop_back();
    return event;
  }
  cudaEvent_t made = nullptr;
  check(cudaEventCreateWithFlags(&made, cudaEventDisableTiming), "cudaEventCreateWithFlags");
  return Event(made, [](cudaEvent_t event) { (void)cudaEventDestroy(event); });
}

void Stream::flush(uint64_t ticket) {
  std::lock_guard lock(mutex_);
  if (ticket <= completed_ || (!marks_.empty() && marks_.back().ticket >= ticket)) return;
  Event event = take_event();
  check(cudaEventRecord(event.get(), stream_), "cudaEventRecord");
  marks_.push_back({ticket, std::move(event)});
}

uint64_t Stream::completed() {
  std::lock_guard lock(mutex_);
  while (!marks_.empty()) {
    const cudaError_t state = cudaEventQuery(marks_.front().event.get());
    if (state == cudaErrorNotReady) {
      (void)cudaGetLastError();  // an answer, not an error: the next launch's check must not see it
      break;
    }
    check(state, "cudaEventQuery");
    completed_ = marks_.front().ticket;
    // One that a waiting thread still holds must not be recorded anew.
    if (marks_.front().event.use_count() == 1) spare_.push_back(std::move(marks_.front().event));
    marks_.pop_front();
  }
  return completed_;
}

Stream::Event Stream::event_of(uint64_t ticket) {
  std::lock_guard lock(mutex_);
  if (ticket <= completed_) return nullptr;
  for (const Mark& mark : marks_)
    if (mark.ticket >= ticket) return mark.event;
  ::backplane::detail::fail(BP_ERROR_INTERNAL, "cuda: ticket ", ticket, " was waited for before it was flushed");
}

void Stream::wait(uint64_t ticket) {
  const Event event = event_of(ticket);
  if (event) check(cudaEventSynchronize(event.get()), "cudaEventSynchronize");
}

void Stream::wait_behind(Stream& other, uint64_t ticket) {
  if (&other == this) return;
  const Event event = other.event_of(ticket);
  if (event) check(cudaStreamWaitEvent(stream_, event.get(), 0), "cudaStreamWaitEvent");
}

}  // namespace backplane::cuda

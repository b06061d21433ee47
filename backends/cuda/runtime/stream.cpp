// Tickets as events, errors of data as records in host memory that the device writes; see stream.hpp.
#include "runtime/stream.hpp"

#include <cstring>
#include <utility>

namespace backplane::cuda {
namespace {

// "the matrix", or "matrix [1, 3] of the stack".
std::string name_of_matrix(std::span<const int64_t> stack, int64_t i) {
  std::string position;
  for (size_t d = stack.size(); d-- > 0; i /= stack[d])
    position = std::to_string(i % stack[d]) + (position.empty() ? "" : ", ") + position;
  return position.empty() ? "the matrix" : "matrix [" + position + "] of the stack";
}

std::string message_of(const Checked& call, const DataError& error) {
  const std::string& op = call.op;
  const std::string value = std::to_string(error.value), size = std::to_string(error.size);
  const auto of_matrix = [&](const char* what) {
    return op + ": " + name_of_matrix(call.stack, error.value) + " " + what;
  };
  switch (static_cast<DataFault>(error.fault)) {
    case DataFault::kDivisorZero:
      return op + ": an integer divisor is 0; expected every divisor to differ from 0";
    case DataFault::kNegativeExponent:
      return op + ": an integer exponent is " + value + "; expected 0 or more, or a floating dtype";
    case DataFault::kNotPositive:
      return of_matrix("is not positive definite, as was expected");
    case DataFault::kSingular:
      return of_matrix("is singular; a regular one was expected");
    case DataFault::kNotFinite:
      return of_matrix("holds NaN or infinity; finite elements were expected");
    case DataFault::kNoEigenvalues:
      return of_matrix("has eigenvalues that did not converge");
    case DataFault::kNoSingularValues:
      return of_matrix("has singular values that did not converge");
    default:
      return op + ": found index " + value + " along axis " + std::to_string(error.axis) + ", expected one in [-" +
             size + ", " + size + ")";
  }
}

}  // namespace

// Non-blocking: the legacy default stream, which other libraries of the process may use, does not order it.
Stream::Stream(const Driver& driver, const AbortFlag& aborted, int priority) : driver_(driver), aborted_(aborted) {
  check(driver_.cuStreamCreateWithPriority(&stream_, driver::kStreamNonBlocking, priority),
        "cuStreamCreateWithPriority");
}

void Stream::synchronize() {
  wait_until(aborted_, [this] { return is_ready(driver_.cuStreamQuery(stream_), "cuStreamQuery"); });
}

// Under the lock, since CUDA breaks a capture whose stream is asked. Of others' streams up to the last mark: the stream
// itself may be gone.
bool Stream::is_idle() {
  std::lock_guard lock(mutex_);
  if (captured_ || (!is_ours_ && marks_.empty())) return true;
  return is_ours_ ? is_ready(driver_.cuStreamQuery(stream_), "cuStreamQuery")
                  : is_ready(driver_.cuEventQuery(marks_.back().event.get()), "cuEventQuery");
}

void Stream::drain() noexcept {
  try {
    wait_until(aborted_, [this] { return is_idle(); });
  } catch (const Error&) {
  }
}

Stream::~Stream() {
  // After a fatal error these fail, and there is nothing left to free.
  if (captured_) give_capture_up();
  drain();
  if (is_ours_) (void)driver_.cuStreamDestroy_v2(stream_);
}

Stream::Event Stream::take_event() {
  if (!spare_.empty()) {
    Event event = std::move(spare_.back());
    spare_.pop_back();
    return event;
  }
  driver::Event made = nullptr;
  check(driver_.cuEventCreate(&made, driver::kEventDisableTiming), "cuEventCreate");
  return Event(made, [&driver = driver_](driver::Event event) { (void)driver.cuEventDestroy_v2(event); });
}

void Stream::flush(uint64_t ticket) {
  if (captured_) return;
  std::lock_guard lock(mutex_);
  if (ticket <= completed_ || (!marks_.empty() && marks_.back().ticket >= ticket)) return;
  Event event = take_event();
  check(driver_.cuEventRecord(event.get(), stream_), "cuEventRecord");
  marks_.push_back({ticket, std::move(event)});
}

uint64_t Stream::completed() {
  std::lock_guard lock(mutex_);
  while (!marks_.empty()) {
    const driver::Result state = driver_.cuEventQuery(marks_.front().event.get());
    if (state == driver::kNotReady) break;
    check(state, "cuEventQuery");
    collect(marks_.front().ticket);
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
  if (has_captured_) return nullptr;
  ::backplane::detail::fail(BP_ERROR_INTERNAL, "cuda: ticket ", ticket, " was waited for before it was flushed");
}

bp_status Stream::wait_for(uint64_t ticket, uint64_t timeout, bool& done) {
  const Event event = event_of(ticket);
  const auto is_reached = [&] { return is_ready(driver_.cuEventQuery(event.get()), "cuEventQuery"); };
  done = !event || wait_until(aborted_, is_reached, timeout);
  if (!done) return BP_OK;
  std::lock_guard lock(mutex_);
  collect(ticket);
  return !errors_.empty() && errors_.front().ticket <= ticket ? BP_ERROR_DATA : BP_OK;
}

void Stream::wait_behind(Stream& other, uint64_t ticket) {
  if (&other == this) return;
  const Event event = other.event_of(ticket);
  if (event) check(driver_.cuStreamWaitEvent(stream_, event.get(), 0), "cuStreamWaitEvent");
}

void Stream::add_slots() {
  slots_.push_back(std::make_unique<HostBlock>(driver_, kErrorsPerBlock * sizeof(DataError)));
  const HostBlock& block = *slots_.back();
  for (size_t k = 0; k < kErrorsPerBlock; ++k)
    free_.push_back({static_cast<DataError*>(block.data()) + k, reinterpret_cast<DataError*>(block.device()) + k});
}

DataError* Stream::expect_error(uint64_t ticket, Checked call) {
  if (captured_) return captured_->expect_error(driver_, std::move(call));
  std::lock_guard lock(mutex_);
  if (free_.empty()) add_slots();
  const Slot slot = free_.back();
  free_.pop_back();
  std::memset(slot.host, 0, sizeof(DataError));
  expected_.push_back({ticket, slot, std::move(call), nullptr});
  return slot.device;
}

void Stream::expect_errors(uint64_t ticket, const std::shared_ptr<HostBlock>& block, std::span<const Checked> calls) {
  std::lock_guard lock(mutex_);
  auto* record = static_cast<DataError*>(block->data());
  for (const Checked& call : calls) expected_.push_back({ticket, {record++, nullptr}, call, block});
}

// What the calls up to a completed ticket have found.
void Stream::collect(uint64_t ticket) {
  completed_ = std::max(completed_, ticket);
  while (!expected_.empty() && expected_.front().ticket <= ticket) {
    const Expected done = std::move(expected_.front());
    expected_.pop_front();
    if (done.slot.host->taken != 0) errors_.push_back({done.ticket, message_of(done.call, *done.slot.host)});
    if (!done.replays) free_.push_back(done.slot);
  }
  while (!kept_.empty() && kept_.front().first <= ticket) kept_.pop_front();
}

void* Stream::host_scratch(uint64_t ticket, size_t bytes) {
  if (bytes == 0) return nullptr;
  std::lock_guard lock(mutex_);
  return kept_.emplace_back(ticket, std::make_unique<char[]>(bytes)).second.get();
}

std::optional<DeferredError> Stream::take_error() {
  std::lock_guard lock(mutex_);
  if (errors_.empty()) return std::nullopt;
  DeferredError error = std::move(errors_.front());
  errors_.pop_front();
  return error;
}

// Relaxed: kernels that are captured load modules and take memory.
void Stream::begin_capture() {
  std::lock_guard lock(mutex_);
  check(driver_.cuStreamBeginCapture_v2(stream_, driver::kCaptureRelaxed), "cuStreamBeginCapture");
  has_captured_ = true;
  captured_ = std::make_unique<Captured>();
}

std::unique_ptr<Recording> Stream::end_capture() {
  driver::Graph graph = nullptr;
  std::unique_lock lock(mutex_);
  std::unique_ptr<Captured> captured = std::move(captured_);
  check(driver_.cuStreamEndCapture(stream_, &graph), "cuStreamEndCapture");
  lock.unlock();
  driver::Executable executable = nullptr;
  const driver::Result made = driver_.cuGraphInstantiateWithFlags(&executable, graph, 0);
  (void)driver_.cuGraphDestroy(graph);
  check(made, "cuGraphInstantiate");
  return std::make_unique<Recording>(driver_, executable, std::move(captured));
}

void Stream::give_capture_up() {
  driver::Graph graph = nullptr;
  std::unique_lock lock(mutex_);
  (void)driver_.cuStreamEndCapture(stream_, &graph);
  const std::unique_ptr<Captured> ended = std::move(captured_);
  lock.unlock();
  if (graph) (void)driver_.cuGraphDestroy(graph);
}

// What a capture copies is read at each replay: it stays.
void Stream::copy_from_host(driver::Pointer to, const void* from, size_t bytes) {
  if (captured_) {
    captured_->sources.push_back(std::make_unique<HostBlock>(driver_, bytes));
    from = std::memcpy(captured_->sources.back()->data(), from, bytes);
  }
  check(driver_.cuMemcpyHtoDAsync_v2(to, from, bytes, stream_), "cuMemcpyHtoDAsync");
}

}  // namespace backplane::cuda

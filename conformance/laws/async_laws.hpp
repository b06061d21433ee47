// What the laws of mode async share: ops by name, and a stream that is held until a law lets it go.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <initializer_list>
#include <memory>
#include <thread>

#include "backplane/stream.hpp"
#include "laws/table.hpp"

namespace backplane::conformance {

// As run_op; the result is written into `out`.
void run_op_into(const char* op, std::initializer_list<bp_value> args, const Tensor& out);

Tensor floats(const std::vector<float>& values, bp_device device);
std::vector<float> read_floats(const Tensor& tensor);
// x + kLateSteps, one after the other. With kLateCount elements, a device needs a while to reach the last one.
inline constexpr int kLateSteps = 8;
inline constexpr int64_t kLateCount = 1 << 16;
Tensor late(Tensor x);
// Throws with the first element that is not `expected`.
void expect_all(const Tensor& tensor, float expected, const char* what);

// Runs `task` on a new thread. False: it did not end within `seconds`; the thread is abandoned, with all that it
// holds.
bool ends_in(int seconds, std::function<void()> task);

// The stream's work behind this does not run until `release`, or for some seconds at most: a device that cannot go on
// beside it is slow and not stuck. For devices with the extension "callbacks".
class HeldStream {
 public:
  explicit HeldStream(const backplane::Stream& stream, int seconds = 1);
  ~HeldStream() { release(); }
  HeldStream(const HeldStream&) = delete;
  void release() { state_->go = true; }
  bool timed_out() const { return state_->timed_out; }

 private:
  struct State {
    std::atomic<bool> go{false}, timed_out{false};
  };
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace backplane::conformance

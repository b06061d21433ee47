// Functions of the host at positions of a device's streams.
//
// CUDA calls them itself, but drops them once the context is lost. So a thread waits behind each one. It calls the
// functions that were dropped, and those behind work that was given up: each is called once. The device's context must
// be the calling thread's current one in `notify`; any thread may call.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "backplane/abi/device_extensions.h"
#include "runtime/stream.hpp"

namespace backplane::cuda {

class Callbacks {
 public:
  Callbacks(const Driver& driver, driver::Context context, const AbortFlag& aborted)
      : driver_(driver), context_(context), aborted_(aborted) {}
  ~Callbacks();  // waits for all
  Callbacks(const Callbacks&) = delete;

  void notify(Stream& stream, bp_completion_fn function, void* argument);  // throws backplane::Error
  void wait(const Stream& stream);                                         // until those of the stream are over
  void stop();                                                             // waits for all; no other comes

 private:
  struct Call {
    Callbacks* owner;
    const Stream* stream;
    bp_completion_fn function;
    void* argument;
    std::atomic<bool> taken{false};
  };
  struct Watched {
    std::shared_ptr<Call> call;
    driver::Event behind;  // nullptr: it could not be recorded
  };
  static void run_for_cuda(void* call);
  void run(Call& call);
  driver::Event take_event();
  void watch();
  bool comes(driver::Event event) const;

  const Driver& driver_;
  const driver::Context context_;
  const AbortFlag& aborted_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::deque<Watched> watched_;
  std::vector<const Call*> unfinished_;
  std::vector<std::shared_ptr<Call>> dropped_;  // CUDA has their addresses, and may still look at them
  std::vector<driver::Event> spare_;
  bool closing_ = false;
  std::thread thread_;  // started by the first call
};

}  // namespace backplane::cuda

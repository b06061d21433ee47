// Work that a stream captured, as a CUDA graph, and what its replays need beside the host's memory.
//
// What kernels find wrong with their data goes to records of the device: each replay clears them before and brings
// them to the host after, since several replays may be on their way. The host serialises the calls; the device's
// context is the calling thread's current one.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/arguments.hpp"
#include "runtime/blocks.hpp"

namespace backplane::cuda {

class Stream;

inline constexpr size_t kErrorsPerBlock = 64;

// A call that may find something wrong with its data; `stack`: the shape in which it counts matrices.
struct Checked {
  std::string op;
  std::vector<int64_t> stack;
};

// While it is captured.
struct Captured {
  std::vector<std::unique_ptr<HostBlock>> sources;   // copies of what was copied from the host
  std::vector<std::unique_ptr<DeviceBlock>> errors;  // of kErrorsPerBlock records each
  std::vector<Checked> calls;                        // that may write them, in order

  DataError* expect_error(const Driver& driver, Checked call);
};

class Recording {
 public:
  Recording(const Driver& driver, driver::Executable executable, std::unique_ptr<Captured> captured)
      : driver_(driver), executable_(executable), captured_(std::move(captured)) {}
  ~Recording() { (void)driver_.cuGraphExecDestroy(executable_); }
  Recording(const Recording&) = delete;

  void replay(Stream& on, uint64_t ticket);  // throws backplane::Error

 private:
  std::shared_ptr<HostBlock> take_readback();

  const Driver& driver_;
  const driver::Executable executable_;
  const std::unique_ptr<Captured> captured_;
  std::vector<std::shared_ptr<HostBlock>> readbacks_;  // those that no stream holds are free
};

}  // namespace backplane::cuda

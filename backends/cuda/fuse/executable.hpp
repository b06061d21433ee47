// A compiled region: one launch of a kernel of its own.
//
// The kernel depends on how the operands lie (Layout::key), so each way has one, compiled when it is first met; that of
// contiguous operands when the region is compiled. Any number of threads may run it at once.
#pragma once

#include <map>
#include <memory>
#include <mutex>

#include "fuse/kernel_cache.hpp"
#include "fuse/layout.hpp"
#include "runtime/backend.hpp"

namespace backplane::cuda {

class Executable {
 public:
  Executable(const bp_host* host, Backend& backend, const plugin::GraphView& region, const plugin::FusedRules& rules);
  ~Executable();
  Executable(const Executable&) = delete;
  Executable& operator=(const Executable&) = delete;

  void run(const bp_frame* frame, const bp_value* inputs, int32_t n_inputs, bp_value* outs, int32_t n_outs);
  // Each element is read before its place is written, and by the same thread, where both lie alike.
  bool may_share(uint32_t out, uint32_t in) const;

 private:
  struct Launch;  // what one run has beside the region
  std::shared_ptr<const RegionKernel> kernel(const Layout& layout);
  void launch_parts(const Launch& launch, std::vector<plugin::FusedAxis> axes, const std::vector<char*>& data);
  const bp_tensor& constant(const plugin::FusedOperand& load) const {
    return *program_.constants[load.input - n_inputs_];
  }

  const bp_host* host_;
  Backend& backend_;
  plugin::FusedProgram program_;
  uint32_t n_inputs_;
  std::mutex mutex_;                                                    // guards what follows
  std::map<std::string, std::shared_ptr<const RegionKernel>> kernels_;  // by the layout's key
};

}  // namespace backplane::cuda

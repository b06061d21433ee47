// A compiled region: one launch of a kernel of its own.
//
// The kernel depends on how the operands lie (Layout::key), so each way has one, compiled when it is first met; that of
// contiguous operands when the region is compiled. Any number of threads may run it at once.
#pragma once

#include <map>
#include <memory>
#include <mutex>

#include "backplane/plugin/fused_region.hpp"
#include "fuse/kernel_cache.hpp"
#include "fuse/layout.hpp"
#include "runtime/backend.hpp"

namespace backplane::cuda {

class Executable : public plugin::FusedRegion {
 public:
  Executable(const bp_host* host, Backend& backend, const plugin::GraphView& region, const plugin::FusedRules& rules);

  void run(const bp_frame* frame, const bp_value* inputs, int32_t n_inputs, bp_value* outs, int32_t n_outs);

 private:
  struct Launch;  // what one run has beside the region
  std::shared_ptr<const RegionKernel> kernel(const Layout& layout);
  void launch_parts(const Launch& launch, std::vector<plugin::FusedAxis> axes, const std::vector<char*>& data);

  Backend& backend_;
  std::mutex mutex_;                                                    // guards what follows
  std::map<std::string, std::shared_ptr<const RegionKernel>> kernels_;  // by the layout's key
};

}  // namespace backplane::cuda

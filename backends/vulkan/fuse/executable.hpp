// A compiled region: one dispatch of a shader of its own.
//
// The shader depends on how the operands lie (Layout::key), so each way has a pipeline, made when it is first met; the
// one for contiguous operands when the region is compiled. Any number of threads may run it at once.
#pragma once

#include <map>
#include <mutex>

#include "backplane/plugin/fused_region.hpp"
#include "fuse/linker.hpp"
#include "runtime/backend.hpp"

namespace backplane::vulkan {

class Executable : public plugin::FusedRegion {
 public:
  Executable(const bp_host* host, Device& device, const plugin::GraphView& region, const plugin::FusedRules& rules);

  void run(const bp_frame* frame, const bp_value* inputs, int32_t n_inputs, bp_value* outs, int32_t n_outs);

 private:
  SharedPipeline pipeline(const Layout& layout);

  Device& device_;
  std::mutex mutex_;                                 // guards what follows
  std::map<std::string, SharedPipeline> pipelines_;  // by the layout's key
};

}  // namespace backplane::vulkan

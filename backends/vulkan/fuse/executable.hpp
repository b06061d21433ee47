// A compiled region: one dispatch of a shader of its own.
//
// The shader depends on how the operands lie (Layout::key), so each way has a pipeline, made when it is first met; the
// one for contiguous operands when the region is compiled. Any number of threads may run it at once.
#pragma once

#include <map>
#include <mutex>

#include "fuse/linker.hpp"
#include "runtime/backend.hpp"

namespace backplane::vulkan {

class Executable {
 public:
  Executable(const bp_host* host, Device& device, const plugin::GraphView& region, const plugin::FusedRules& rules);
  ~Executable();
  Executable(const Executable&) = delete;

  void run(const bp_frame* frame, const bp_value* inputs, int32_t n_inputs, bp_value* outs, int32_t n_outs);
  // Each element is read before its place is written, and by the same invocation, where both lie alike.
  bool may_share(size_t out, size_t in) const;

 private:
  SharedPipeline pipeline(const Layout& layout);
  const bp_tensor& constant(const plugin::FusedOperand& load) const {
    return *program_.constants[load.input - n_inputs_];
  }

  const bp_host* host_;
  Device& device_;
  plugin::FusedProgram program_;
  uint32_t n_inputs_;
  std::mutex mutex_;                                 // guards what follows
  std::map<std::string, SharedPipeline> pipelines_;  // by the layout's key
};

}  // namespace backplane::vulkan

// A compiled region: one dispatch of a shader of its own.
//
// The shader depends on how the operands lie (key() of Layout or RowLayout), so each way has a pipeline, made when it
// is first met; the one for contiguous operands when the region is compiled. Any number of threads may run it at once.
#pragma once

#include <map>
#include <mutex>
#include <optional>

#include "backplane/plugin/fused_region.hpp"
#include "fuse/layout.hpp"
#include "runtime/backend.hpp"

namespace backplane::vulkan {

class Executable : public plugin::FusedRegion {
 public:
  Executable(const bp_host* host, Device& device, const plugin::GraphView& region, const plugin::FusedRules& rules);

  void run(const bp_frame* frame, const bp_value* inputs, int32_t n_inputs, bp_value* outs, int32_t n_outs);

 private:
  // A dispatch for operands that lie in one way.
  struct Shape {
    SharedPipeline pipeline;
    int64_t count = 0;                  // of elements, or rows
    int64_t groups = 0;                 // workgroups
    std::vector<int32_t> rows;          // of the layouts
    std::optional<uint64_t> row_sizes;  // with rows: a row's length and its lanes
  };
  Shape shape_for(const std::vector<Sizes>& shapes, const std::vector<Sizes>& strides, const std::vector<bool>& wanted,
                  const char* name);
  template <class Link>
  SharedPipeline pipeline(const std::string& key, Link&& link);

  Device& device_;
  std::mutex mutex_;                                 // guards what follows
  std::map<std::string, SharedPipeline> pipelines_;  // by the layout's key
};

}  // namespace backplane::vulkan

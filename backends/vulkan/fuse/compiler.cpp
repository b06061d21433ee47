// Which nodes are claimed, by the registry's lists of scalar functions; see compiler.hpp.
#include "fuse/compiler.hpp"

#include "backplane/plugin/compiler.hpp"
#include "backplane/plugin/scalar_ops.hpp"
#include "fuse/executable.hpp"

namespace backplane::vulkan {
namespace {

// What a dispatch costs, elements of this number hardly do; of larger ones no memory is to live until the last is
// there.
constexpr int64_t kMostAlike = 16384;

// Longer rows would leave most of a device idle where there are few; the reductions' own kernels cut them into slices.
constexpr int64_t kLongestRow = 16384;

// As the kernels of reductions accumulate. Sums that are bools count before they are one, which a join of bools does
// not.
bp_dtype accumulator(uint16_t join, bp_dtype result) {
  const bool counts = join == BP_JOIN_SUM || join == BP_JOIN_PROD;
  return counts && result == BP_BOOL ? bp_dtype{BP_DTYPE_NONE} : partial_dtype(result);
}

plugin::FusedOps fused_ops(bool rows) {
  plugin::FusedOps ops{plugin::scalar_ops(), kMostAlike};
  if (!rows) return ops;
  // The functions of shaders/region_rows.comp; of bools the largest is whether there is any.
  ops.joins[BP_JOIN_SUM] = "sum";
  ops.joins[BP_JOIN_PROD] = "prod";
  ops.joins[BP_JOIN_MAX] = ops.joins[BP_JOIN_ANY] = "max";
  ops.joins[BP_JOIN_MIN] = ops.joins[BP_JOIN_ALL] = "min";
  ops.accumulator = accumulator;
  ops.longest_row = kLongestRow;
  return ops;
}

struct Compiler {
  using Executable = vulkan::Executable;

  static plugin::FusedRules rules(void* context, bp_device device, const plugin::GraphView& graph) {
    static const plugin::FusedOps plain = fused_ops(false), with_rows = fused_ops(true);
    const VkPhysicalDevice physical = static_cast<Backend*>(context)->physical(device.ordinal);
    return {graph, device, Device::shuffles(physical) ? with_rows : plain, Device::lacks(physical)};
  }

  static plugin::Partition partition(void* context, bp_device device, const plugin::GraphView& graph) {
    return plugin::grow_regions(graph, rules(context, device, graph));
  }

  static std::unique_ptr<Executable> compile(const bp_host* host, void* context, bp_device device,
                                             const plugin::GraphView& region) {
    return std::make_unique<Executable>(host, static_cast<Backend*>(context)->device(device.ordinal), region,
                                        rules(context, device, region));
  }
};

constexpr bp_extension_compiler kCompiler = plugin::compiler_extension<Compiler>();

}  // namespace

const bp_extension_compiler* compiler(uint32_t version) { return version <= 1 ? &kCompiler : nullptr; }

}  // namespace backplane::vulkan

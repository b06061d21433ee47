// Which nodes are claimed, by the registry's lists of scalar functions; see compiler.hpp.
#include "fuse/compiler.hpp"

#include "backplane/plugin/compiler.hpp"
#include "backplane/plugin/scalar_ops.hpp"
#include "fuse/executable.hpp"
#include "kernels/refused.hpp"

namespace backplane::vulkan {
namespace {

bool refuses(std::string_view op, bp_dtype dtype) {
  return refused(op.substr(op.rfind(':') + 1), dtype) != FaultKind::kNone;
}

// What a dispatch costs, elements of this number hardly do; of larger ones no memory is to live until the last is
// there.
constexpr int64_t kMostAlike = 16384;

struct Compiler {
  using Executable = vulkan::Executable;

  static plugin::FusedRules rules(void* context, bp_device device, const plugin::GraphView& graph) {
    static const plugin::FusedOps ops{plugin::scalar_ops(),
                                      {"bp::cast", "bp::copy"},
                                      {"bp::reshape", "bp::expand_dims", "bp::squeeze", "bp::broadcast_to"},
                                      refuses,
                                      kMostAlike};
    Backend& backend = *static_cast<Backend*>(context);
    return {graph, device, ops, Device::lacks(backend.physical(device.ordinal))};
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

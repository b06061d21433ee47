// Which nodes are claimed, by the registry's lists of scalar functions; see compiler.hpp.
#include "fuse/compiler.hpp"

#include "backplane/plugin/compiler.hpp"
#include "backplane/plugin/scalar_ops.hpp"
#include "fuse/executable.hpp"
#include "libraries/nvrtc.hpp"

namespace backplane::cuda {
namespace {

// The host reads it as long as the plugin is there. nullptr: NVRTC is.
const char* why_no_compiler() {
  static const std::string* reason = [] {
    auto* made = new std::string();
    if (!find_nvrtc(made)) made->insert(0, "NVRTC: ");
    return made;
  }();
  return reason->empty() ? nullptr : reason->c_str();
}

struct Compiler {
  using Executable = cuda::Executable;
  static constexpr uint32_t kExecutableFlags =
      BP_EXECUTABLE_CAPTURABLE;  // it launches kernels, whose arguments are copied

  static plugin::FusedRules rules(bp_device device, const plugin::GraphView& graph) {
    static const plugin::FusedOps ops{plugin::scalar_ops()};
    return {graph, device, ops, 0};
  }

  static plugin::Partition partition(void*, bp_device device, const plugin::GraphView& graph) {
    if (const char* why = why_no_compiler())
      return {std::vector<uint32_t>(graph.n_nodes(), BP_NO_REGION), std::vector<const char*>(graph.n_nodes(), why), 0};
    return plugin::grow_regions(graph, rules(device, graph));
  }

  static std::unique_ptr<Executable> compile(const bp_host* host, void* context, bp_device device,
                                             const plugin::GraphView& region) {
    return std::make_unique<Executable>(host, *static_cast<Backend*>(context), region, rules(device, region));
  }
};

}  // namespace

constexpr bp_extension_compiler kCompiler = plugin::compiler_extension<Compiler>();

}  // namespace backplane::cuda

// The functions of bp_extension_compiler, which turn exceptions into statuses.
#include "fuse/compiler.hpp"

#include "backplane/plugin/regions.hpp"
#include "fuse/executable.hpp"
#include "fuse/fused_ops.hpp"

namespace backplane::vulkan {
namespace {

Backend& backend_of(void* context) { return *static_cast<Backend*>(context); }
Executable* as_executable(bp_executable* executable) { return reinterpret_cast<Executable*>(executable); }

plugin::FusedRules rules_of(Backend& backend, bp_device device, const plugin::GraphView& graph) {
  return {graph, device, fused_ops(), Device::lacks(backend.physical(device.ordinal))};
}

bp_status BP_CALL claim(void* context, const bp_host* host, bp_device device, const bp_graph* graph, uint32_t* regions,
                        uint32_t* n_regions, const char** reasons) {
  return plugin::guard(host, [&] {
    const plugin::GraphView view(graph);
    const plugin::Partition found = plugin::grow_regions(view, rules_of(backend_of(context), device, view));
    std::copy(found.regions.begin(), found.regions.end(), regions);
    if (reasons != nullptr) std::copy(found.reasons.begin(), found.reasons.end(), reasons);
    *n_regions = found.n_regions;
  });
}

bp_status BP_CALL compile(void* context, const bp_host* host, bp_device device, const bp_graph* region,
                          bp_executable_info* info, bp_executable** executable) {
  return plugin::guard(host, [&] {
    const plugin::GraphView view(region);
    Backend& backend = backend_of(context);
    auto made =
        std::make_unique<Executable>(host, backend.device(device.ordinal), view, rules_of(backend, device, view));
    *executable = reinterpret_cast<bp_executable*>(made.release());
    if (BP_HAS(info, bp_executable_info, scratch)) info->scratch = 0;
  });
}

bp_status BP_CALL run(const bp_frame* frame, bp_executable* executable, const bp_value* inputs, int32_t n_inputs,
                      bp_value* outs, int32_t n_outs) {
  return plugin::guard(frame, [&] { as_executable(executable)->run(frame, inputs, n_inputs, outs, n_outs); });
}

void BP_CALL destroy(void*, bp_executable* executable) { delete as_executable(executable); }

int32_t BP_CALL sharing(void*, const bp_executable* executable, int32_t out, int32_t in) {
  return reinterpret_cast<const Executable*>(executable)->may_share(static_cast<size_t>(out), static_cast<size_t>(in));
}

}  // namespace

const bp_extension_compiler* compiler(uint32_t version) {
  static constexpr bp_extension_compiler kCompiler = [] {
    bp_extension_compiler table{};
    table.header = BP_HEADER(bp_extension_compiler);
    table.partition = claim;
    table.compile = compile;
    table.execute = run;
    table.destroy = destroy;
    table.may_share = sharing;
    return table;
  }();
  return version <= 1 ? &kCompiler : nullptr;
}

}  // namespace backplane::vulkan

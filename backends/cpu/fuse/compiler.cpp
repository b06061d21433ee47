// The edge of the fuser: the functions of bp_extension_compiler, which turn exceptions into statuses.
#include "fuse/compiler.hpp"

#include "fuse/partition.hpp"
#include "fuse/program.hpp"

namespace backplane::cpu::fuse {
namespace {

bp_executable* handle(Program* program) { return reinterpret_cast<bp_executable*>(program); }
const Program* program_of(const bp_executable* executable) { return reinterpret_cast<const Program*>(executable); }

bp_status BP_CALL claim(void*, const bp_host* host, bp_device device, const bp_graph* graph, uint32_t* regions,
                        uint32_t* n_regions, const char** reasons) {
  return plugin::guard(host, [&] {
    const plugin::Partition found = partition(GraphView(graph), device);
    std::copy(found.regions.begin(), found.regions.end(), regions);
    if (reasons != nullptr) std::copy(found.reasons.begin(), found.reasons.end(), reasons);
    *n_regions = found.n_regions;
  });
}

bp_status BP_CALL compile(void*, const bp_host* host, bp_device device, const bp_graph* region,
                          bp_executable_info* info, bp_executable** executable) {
  return plugin::guard(host, [&] {
    *executable = handle(lower(host, device, GraphView(region)).release());
    // Buffers come from the backend's own allocator.
    if (BP_HAS(info, bp_executable_info, scratch)) info->scratch = 0;
  });
}

bp_status BP_CALL run(const bp_frame* frame, bp_executable* executable, const bp_value* inputs, int32_t n_inputs,
                      bp_value* outs, int32_t n_outs) {
  return plugin::guard(frame, [&] { execute(frame, *program_of(executable), inputs, n_inputs, outs, n_outs); });
}

void BP_CALL destroy(void*, bp_executable* executable) { delete program_of(executable); }

int32_t BP_CALL sharing(void*, const bp_executable* executable, int32_t out, int32_t in) {
  return may_share(*program_of(executable), static_cast<uint32_t>(out), static_cast<uint32_t>(in));
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

}  // namespace backplane::cpu::fuse

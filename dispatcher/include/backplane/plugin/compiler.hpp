// A backend's compiler as the contract's extension: the functions of bp_extension_compiler over a C++ class, which turn
// exceptions into statuses.
//
// Not the contract: header-only sugar over backplane/abi. The class says, where `context` is the backend's:
//
//   Executable                                       with run(frame, inputs, n_inputs, outs, n_outs) and
//                                                    may_share(out, in), which any number of threads may call
//   static Partition partition(context, device, graph)
//   static std::unique_ptr<Executable> compile(host, context, device, region)
//   static constexpr uint32_t kExecutableFlags       of all of them: BP_EXECUTABLE_*; optional
#pragma once

#include <algorithm>
#include <memory>

#include "backplane/plugin.hpp"
#include "backplane/plugin/regions.hpp"

namespace backplane::plugin {

template <class Compiler>
class CompilerExtension {
  using Executable = typename Compiler::Executable;
  static Executable* as_executable(bp_executable* handle) { return reinterpret_cast<Executable*>(handle); }

  static bp_status BP_CALL partition(void* context, const bp_host* host, bp_device device, const bp_graph* graph,
                                     uint32_t* regions, uint32_t* n_regions, const char** reasons) {
    return guard(host, [&] {
      const Partition found = Compiler::partition(context, device, GraphView(graph));
      std::copy(found.regions.begin(), found.regions.end(), regions);
      if (reasons != nullptr) std::copy(found.reasons.begin(), found.reasons.end(), reasons);
      *n_regions = found.n_regions;
    });
  }

  static bp_status BP_CALL compile(void* context, const bp_host* host, bp_device device, const bp_graph* region,
                                   bp_executable_info* info, bp_executable** executable) {
    return guard(host, [&] {
      std::unique_ptr<Executable> made = Compiler::compile(host, context, device, GraphView(region));
      *executable = reinterpret_cast<bp_executable*>(made.release());
      if (BP_HAS(info, bp_executable_info, scratch)) info->scratch = 0;
#if BP_TARGET_MINOR >= 3
      if constexpr (requires { Compiler::kExecutableFlags; })
        if (BP_HAS(info, bp_executable_info, flags)) info->flags = Compiler::kExecutableFlags;
#endif
    });
  }

  static bp_status BP_CALL execute(const bp_frame* frame, bp_executable* executable, const bp_value* inputs,
                                   int32_t n_inputs, bp_value* outs, int32_t n_outs) {
    return guard(frame, [&] { as_executable(executable)->run(frame, inputs, n_inputs, outs, n_outs); });
  }

  static void BP_CALL destroy(void*, bp_executable* executable) { delete as_executable(executable); }

  static int32_t BP_CALL may_share(void*, const bp_executable* executable, int32_t out, int32_t in) {
    return reinterpret_cast<const Executable*>(executable)
        ->may_share(static_cast<uint32_t>(out), static_cast<uint32_t>(in));
  }

 public:
  static constexpr bp_extension_compiler table() {
    bp_extension_compiler table{};
    table.header = BP_HEADER(bp_extension_compiler);
    table.partition = partition;
    table.compile = compile;
    table.execute = execute;
    table.destroy = destroy;
    table.may_share = may_share;
    return table;
  }
};

template <class Compiler>
constexpr bp_extension_compiler compiler_extension() {
  return CompilerExtension<Compiler>::table();
}

}  // namespace backplane::plugin

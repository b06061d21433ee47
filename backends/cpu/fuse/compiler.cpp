// The fuser as a compiler of the contract; see compiler.hpp.
#include "fuse/compiler.hpp"

#include "backplane/plugin/compiler.hpp"
#include "fuse/conv_program.hpp"
#include "fuse/partition.hpp"
#include "fuse/program.hpp"

namespace backplane::cpu::fuse {
namespace {

struct Compiler {
  struct Executable {
    // One of them.
    std::unique_ptr<const Program> program;
    std::unique_ptr<const ConvProgram> convolution;
    void run(const bp_frame* frame, const bp_value* inputs, int32_t n_inputs, bp_value* outs, int32_t n_outs) const {
      if (convolution)
        execute(frame, *convolution, inputs, n_inputs, outs, n_outs);
      else
        execute(frame, *program, inputs, n_inputs, outs, n_outs);
    }
    bool may_share(uint32_t out, uint32_t in) const { return program && fuse::may_share(*program, out, in); }
  };

  static plugin::Partition partition(void*, bp_device device, const GraphView& graph) {
    return fuse::partition(graph, device);
  }
  static std::unique_ptr<Executable> compile(const bp_host* host, void*, bp_device device, const GraphView& region) {
    std::unique_ptr<const ConvProgram> convolution = lower_convolution(host, device, region);
    if (convolution) return std::make_unique<Executable>(Executable{nullptr, std::move(convolution)});
    return std::make_unique<Executable>(Executable{lower(host, device, region), nullptr});
  }
};

constexpr bp_extension_compiler kCompiler = plugin::compiler_extension<Compiler>();

}  // namespace

const bp_extension_compiler* compiler(uint32_t version) { return version <= 1 ? &kCompiler : nullptr; }

}  // namespace backplane::cpu::fuse

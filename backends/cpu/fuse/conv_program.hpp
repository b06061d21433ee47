// A compiled chain behind a convolution (conv_chains.hpp). Constant after compilation: any number of threads may run
// it.
#pragma once

#include <memory>

#include "fuse/conv_chains.hpp"

namespace backplane::cpu::fuse {

// Where a step's operand comes from.
struct ConvOperand {
  enum class Kind : uint8_t { kAbsent, kNumber, kInput, kConstant };
  Kind kind = Kind::kAbsent;
  uint32_t at = 0;  // among the inputs, or the program's constants
  float number = 0;
};

struct ConvProgram {
  struct Step {
    ConvStep::Kind kind;
    ConvOperand operands[4];
    double eps;
    bool keeps_ties;
  };
  ConvOperand x, w;
  int64_t options[7];  // stride, padding and dilation by height and width, groups
  std::vector<Step> steps;
  std::vector<bp_tensor*> constants;  // retained
  uint32_t n_inputs = 0;
  const bp_host* host;

  explicit ConvProgram(const bp_host* host) : host(host) {}
  ConvProgram(const ConvProgram&) = delete;
  ConvProgram& operator=(const ConvProgram&) = delete;
  ~ConvProgram() {
    for (bp_tensor* constant : constants) host->release(constant);
  }
};

// NULL for a region that is not one chain.
std::unique_ptr<ConvProgram> lower_convolution(const bp_host* host, bp_device device, const GraphView& region);

// See bp_extension_compiler::execute.
void execute(const bp_frame* frame, const ConvProgram& program, const bp_value* inputs, int32_t n_inputs,
             bp_value* outs, int32_t n_outs);

}  // namespace backplane::cpu::fuse

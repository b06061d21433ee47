// See conv_program.hpp.
#include "fuse/conv_program.hpp"

#include <cmath>
#include <optional>

#include "kernels/nn/conv2d.hpp"
#include "kernels/reduction/moments.hpp"
#include "loops/cast_row.hpp"
#include "loops/row_major.hpp"
#include "runtime/scratch.hpp"

namespace backplane::cpu::fuse {
namespace {

using Kind = ConvStep::Kind;

// A tensor's elements side by side: where it has them, or in a copy.
class Dense {
 public:
  explicit Dense(const bp_tensor* t) : elements_(t), data_(elements_.neighbours()) {}
  const float* read() {
    if (data_ != nullptr) return reinterpret_cast<const float*>(data_);
    float* to = copy();
    elements_.for_each(0, elements_.count(), [&](char* from, int64_t step, int64_t n) {
      cast_row(BP_FLOAT32, from, step, BP_FLOAT32, reinterpret_cast<char*>(to), sizeof(float), n);
      to += n;
    });
    return copy_->get();
  }
  float* write() { return data_ != nullptr ? reinterpret_cast<float*>(const_cast<char*>(data_)) : copy(); }
  void write_back() {
    if (data_ != nullptr) return;
    const float* from = copy_->get();
    elements_.for_each(0, elements_.count(), [&](char* to, int64_t step, int64_t n) {
      cast_row(BP_FLOAT32, reinterpret_cast<const char*>(from), sizeof(float), BP_FLOAT32, to, step, n);
      from += n;
    });
  }

 private:
  float* copy() { return copy_.emplace(elements_.count()).get(); }
  RowMajor elements_;
  const char* data_;
  std::optional<Scratch<float>> copy_;
};

class Run {
 public:
  Run(const ConvProgram& program, const bp_value* inputs, int64_t channels)
      : program_(program), inputs_(inputs), channels_(channels), memory_(2 * kMostTailSteps * channels) {
    for (const ConvProgram::Step& step : program.steps) add(step);
  }
  const ConvTail& tail() const { return tail_; }
  static const bp_tensor* tensor(const ConvProgram& program, const ConvOperand& operand, const bp_value* inputs) {
    return operand.kind == ConvOperand::Kind::kInput ? inputs[operand.at].u.t : program.constants[operand.at];
  }

 private:
  float* fill(const ConvOperand& operand, float* to, float absent) const {
    const bool is_number = operand.kind == ConvOperand::Kind::kNumber;
    if (is_number || operand.kind == ConvOperand::Kind::kAbsent) {
      std::fill_n(to, channels_, is_number ? operand.number : absent);
      return to;
    }
    const bp_tensor* t = tensor(program_, operand, inputs_);
    Dense elements(t);
    const float* from = elements.read();
    if (t->nbytes == sizeof(float))
      std::fill_n(to, channels_, *from);
    else
      std::copy_n(from, channels_, to);
    return to;
  }
  float single(const ConvOperand& operand) const {
    if (operand.kind == ConvOperand::Kind::kNumber) return operand.number;
    return *reinterpret_cast<const float*>(data_of(tensor(program_, operand, inputs_)));
  }

  // The next step, which keeps every number.
  struct Arrays {
    float *scale, *shift;
  };
  Arrays next() {
    float* scale = memory_.get() + 2 * tail_.n_steps * channels_;
    float* shift = scale + channels_;
    std::fill_n(scale, channels_, 1.0f);
    std::fill_n(shift, channels_, -0.0f);
    tail_.steps[tail_.n_steps++] = {scale, shift};
    return {scale, shift};
  }
  void negate(float* all) const {
    for (int64_t c = 0; c < channels_; ++c) all[c] = -all[c];
  }
  // `outward`: an infinity on the bound's own side.
  void bound(const ConvProgram::Step& step, float outward, float& limit, float& from) {
    const float value = single(step.operands[0]);
    if (std::isnan(value)) {
      std::fill_n(next().shift, channels_, value);
      return;
    }
    limit = value;
    from = step.keeps_ties ? std::nextafter(value, outward) : value;
  }
  void normalize(const ConvProgram::Step& step) {
    negate(fill(step.operands[0], next().shift, 0));
    const Arrays to = next();
    fill(step.operands[3], to.shift, 0);
    fill(step.operands[2], to.scale, 1);
    const Scratch<float> variance(channels_);
    fill(step.operands[1], variance.get(), 1);
    for (int64_t c = 0; c < channels_; ++c)
      to.scale[c] *= static_cast<float>(1 / Moments{0, static_cast<double>(variance.get()[c])}.spread(step.eps));
  }
  void add(const ConvProgram::Step& step) {
    const ConvOperand& operand = step.operands[0];
    switch (step.kind) {
      case Kind::kAdd:
        fill(operand, next().shift, 0);
        return;
      case Kind::kSubtract:
        return negate(fill(operand, next().shift, 0));
      case Kind::kSubtractFrom: {
        const Arrays to = next();
        negate(to.scale);
        fill(operand, to.shift, 0);
        return;
      }
      case Kind::kMultiply:
        fill(operand, next().scale, 0);
        return;
      case Kind::kNormalize:
        return normalize(step);
      case Kind::kLow:
        return bound(step, -std::numeric_limits<float>::infinity(), tail_.low, tail_.low_from);
      case Kind::kHigh:
        return bound(step, std::numeric_limits<float>::infinity(), tail_.high, tail_.high_from);
    }
  }

  const ConvProgram& program_;
  const bp_value* inputs_;
  int64_t channels_;
  Scratch<float> memory_;
  ConvTail tail_;
};

bp_value ints(const int64_t* data) {
  bp_value list{};
  list.tag = BP_TAG_INT_LIST;
  list.count = 2;
  list.u.ints = data;
  return list;
}

}  // namespace

std::unique_ptr<ConvProgram> lower_convolution(const bp_host* host, bp_device device, const GraphView& region) {
  const std::vector<ConvChain> chains = conv_chains(region, device);
  if (chains.size() != 1 || chains[0].nodes.size() != region.n_nodes() || region.outputs().size() != 1) return nullptr;
  auto program = std::make_unique<ConvProgram>(host);
  program->n_inputs = static_cast<uint32_t>(region.inputs().size());
  const auto operand = [&](const bp_value& arg) -> ConvOperand {
    if (arg.tag == BP_TAG_ABSENT) return {};
    if (arg.tag != BP_TAG_REF) return {ConvOperand::Kind::kNumber, 0, static_cast<float>(plugin::as_double(arg))};
    for (uint32_t k = 0; k < region.inputs().size(); ++k)
      if (region.inputs()[k] == arg.u.i) return {ConvOperand::Kind::kInput, k, 0};
    bp_tensor* constant = region.value(arg.u.i).constant;
    BP_CHECK(constant != nullptr, VALUE, "the cpu's compiler: nothing in the region makes value ", arg.u.i);
    program->constants.push_back(constant);
    host->retain(constant);
    return {ConvOperand::Kind::kConstant, static_cast<uint32_t>(program->constants.size() - 1), 0};
  };
  const auto args = region.args(chains[0].nodes[0]);
  program->x = operand(args[0]);
  program->w = operand(args[1]);
  for (int i = 0; i < 6; ++i) program->options[i] = args[static_cast<size_t>(2 + i / 2)].u.ints[i % 2];
  program->options[6] = args[5].u.i;
  for (const ConvStep& step : chains[0].steps) {
    ConvProgram::Step made{step.kind, {}, step.eps, step.keeps_ties};
    const int count = step.kind == Kind::kNormalize ? 4 : 1;
    for (int k = 0; k < count; ++k) made.operands[k] = operand(step.operands[k]);
    program->steps.push_back(made);
  }
  return program;
}

void execute(const bp_frame* frame, const ConvProgram& program, const bp_value* inputs, int32_t n_inputs,
             bp_value* outs, int32_t n_outs) {
  BP_CHECK(n_inputs == static_cast<int32_t>(program.n_inputs) && n_outs == 1, VALUE, frame->op->name, ": a region of ",
           program.n_inputs, " inputs and 1 output was given ", n_inputs, " and ", n_outs);
  if (outs[0].tag != BP_TAG_TENSOR) return;
  const bp_tensor *x = Run::tensor(program, program.x, inputs), *w = Run::tensor(program, program.w, inputs);
  const bp_tensor* y = outs[0].u.t;
  bp_value options[4] = {ints(program.options), ints(program.options + 2), ints(program.options + 4), {}};
  options[3].tag = BP_TAG_INT;
  options[3].u.i = program.options[6];
  const Convolution c = convolution_of(x->dl.shape, w->dl.shape, y->dl.shape, options);
  const Run run(program, inputs, c.groups * c.filters);
  Dense images(x), kernels(w), results(y);
  conv2d_with_tail(frame, c, images.read(), kernels.read(), results.write(), run.tail());
  results.write_back();
}

}  // namespace backplane::cpu::fuse

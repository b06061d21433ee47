// See conv_chains.hpp.
#include "fuse/conv_chains.hpp"

#include <cmath>

#include "kernels/nn/conv_tail.hpp"
#include "loops/chain_link.hpp"
#include "loops/conv_step.hpp"

namespace backplane::cpu::fuse {
namespace {

using Kind = ConvStep::Kind;

class Chains {
 public:
  Chains(const GraphView& graph, bp_device device)
      : graph_(graph), device_(device), reads_(graph.n_values(), 0), reader_(graph.n_values(), 0) {
    for (uint32_t i = 0; i < graph.n_nodes(); ++i)
      graph.for_each_read(i, [&](int64_t value) {
        ++reads_[value];
        reader_[value] = i;
      });
    for (const uint32_t value : graph.outputs()) reads_[value] += 2;
  }

  std::vector<ConvChain> find() {
    std::vector<ConvChain> chains;
    for (uint32_t i = 0; i < graph_.n_nodes(); ++i) {
      if (!is_convolution(i)) continue;
      ConvChain chain = chain_of(i);
      if (chain.nodes.size() > 1) chains.push_back(std::move(chain));
    }
    return chains;
  }

 private:
  bool is_here(int64_t value) const {
    const bp_graph_value& v = graph_.value(value);
    if (v.dtype != BP_FLOAT32 || v.device.backend != device_.backend || v.device.ordinal != device_.ordinal)
      return false;
    const Dims dims = graph_.dims(value);
    return std::all_of(dims.begin(), dims.end(), [](int64_t size) { return size > 0; });
  }
  bool computes_here(uint32_t i) const {
    const bp_graph_node& node = graph_.node(i);
    return node.compute == BP_FLOAT32 && node.n_results == 1 && (node.flags & BP_GRAPH_NODE_RECOMPUTED) == 0 &&
           is_here(node.results[0]);
  }
  bool is_convolution(uint32_t i) const {
    const auto args = graph_.args(i);
    const ConvStepOp* op = ConvStepOp::find(graph_.node(i).op);
    if (op == nullptr || op->role != ConvRole::kConvolution || args.size() != 6 || !computes_here(i)) return false;
    for (size_t k = 0; k < 2; ++k)
      if (args[k].tag != BP_TAG_REF || !is_here(args[k].u.i) || graph_.dims(args[k].u.i).size() != 4) return false;
    for (size_t k = 2; k < 5; ++k)
      if (args[k].tag != BP_TAG_INT_LIST || args[k].count != 2) return false;
    return args[5].tag == BP_TAG_INT;
  }

  bool is_number(const bp_value& arg) const { return arg.tag == BP_TAG_INT || arg.tag == BP_TAG_FLOAT; }
  bool is_uniform(const bp_value& arg) const {
    return is_number(arg) || (arg.tag == BP_TAG_REF && is_here(arg.u.i) && all_ones(graph_.dims(arg.u.i)));
  }
  // One number, or one per channel, beside results (n, c, h, w).
  bool is_per_channel(const bp_value& arg, int64_t channels) const {
    if (is_uniform(arg)) return true;
    if (arg.tag != BP_TAG_REF || !is_here(arg.u.i)) return false;
    const Dims dims = graph_.dims(arg.u.i);
    if (dims.size() > 4) return false;
    for (size_t k = 0; k < dims.size(); ++k)
      if (dims[k] != 1 && (k + 4 - dims.size() != 1 || dims[k] != channels)) return false;
    return true;
  }
  bool is_vector(const bp_value& arg, int64_t channels) const {
    return arg.tag == BP_TAG_REF && is_here(arg.u.i) && graph_.dims(arg.u.i).size() == 1 &&
           graph_.dims(arg.u.i)[0] == channels;
  }

  ConvChain chain_of(uint32_t conv) const {
    ConvChain chain{{conv}, {}};
    int64_t value = graph_.node(conv).results[0];
    while (reads_[value] == 1) {
      const uint32_t next = reader_[value];
      if (!computes_here(next) || !same(graph_.dims(graph_.node(next).results[0]), graph_.dims(value))) break;
      const std::vector<ConvStep> steps = steps_of(next, value);
      if (steps.empty() || !takes(chain, steps)) break;
      chain.steps.insert(chain.steps.end(), steps.begin(), steps.end());
      chain.nodes.push_back(next);
      value = graph_.node(next).results[0];
    }
    return chain;
  }

  // Bounds come last, the lower one first. Each may take a step too, where it is NaN.
  static bool takes(const ConvChain& chain, const std::vector<ConvStep>& steps) {
    int used = 2;
    int rank = 0;  // of the last step
    const auto fits = [&](const ConvStep& step) {
      const int own = step.kind == Kind::kLow ? 1 : step.kind == Kind::kHigh ? 2 : 0;
      if (own < rank || (own == rank && own > 0)) return false;
      rank = own;
      if (own == 0) used += step.kind == Kind::kNormalize ? 2 : 1;
      return used <= kMostTailSteps;
    };
    return std::all_of(chain.steps.begin(), chain.steps.end(), fits) && std::all_of(steps.begin(), steps.end(), fits);
  }

  // What node i does to `value`; empty: what no chain takes.
  std::vector<ConvStep> steps_of(uint32_t i, int64_t value) const {
    const auto args = graph_.args(i);
    const auto is_value = [&](size_t k) {
      return k < args.size() && args[k].tag == BP_TAG_REF && args[k].u.i == value;
    };
    if (const ChainLink* link = ChainLink::find(graph_.node(i).op))
      return arithmetic(*link, args, is_value(0), is_value(1), graph_.dims(value)[1]);
    const ConvStepOp* op = ConvStepOp::find(graph_.node(i).op);
    if (op == nullptr) return {};
    const bool is_binary = args.size() == 2 && is_value(0) != is_value(1);
    const bp_value* other = is_binary ? &args[is_value(0) ? 1 : 0] : nullptr;
    switch (op->role) {
      case ConvRole::kConvolution:
        return {};
      case ConvRole::kNormalize:
        return normalize(args, is_value(0), graph_.dims(value)[1]);
      case ConvRole::kLow:
      case ConvRole::kHigh:
        if (other == nullptr || !is_uniform(*other)) return {};
        return {{op->role == ConvRole::kLow ? Kind::kLow : Kind::kHigh, {*other}}};
      case ConvRole::kScalarBounds:
        return bounds(args, is_value(0));
      case ConvRole::kZeroBelow:
        if (!is_value(0)) return {};
        return {{Kind::kLow, {number(0)}, 0, true}};
    }
    return {};
  }
  std::vector<ConvStep> arithmetic(const ChainLink& link, std::span<const bp_value> args, bool is_first, bool is_second,
                                   int64_t channels) const {
    if (args.size() != 2 || is_first == is_second || link.second != ChainLink::Second::kOperand) return {};
    const bp_value& other = args[is_first ? 1 : 0];
    if (!is_per_channel(other, channels)) return {};
    if (link.link == Link::kAdd) return {{Kind::kAdd, {other}}};
    if (link.link == Link::kMultiply) return {{Kind::kMultiply, {other}}};
    if (link.link == Link::kSubtract) return {{is_first ? Kind::kSubtract : Kind::kSubtractFrom, {other}}};
    return {};
  }
  std::vector<ConvStep> normalize(std::span<const bp_value> args, bool is_first, int64_t channels) const {
    if (!is_first || args.size() != 6 || !is_number(args[5])) return {};
    ConvStep step{Kind::kNormalize};
    step.eps = plugin::as_double(args[5]);
    for (size_t k = 0; k < 4; ++k) {
      if (!is_vector(args[k + 1], channels) && (k < 2 || args[k + 1].tag != BP_TAG_ABSENT)) return {};
      step.operands[k] = args[k + 1];
    }
    return {step};
  }
  std::vector<ConvStep> bounds(std::span<const bp_value> args, bool is_first) const {
    if (!is_first || args.size() != 3) return {};
    for (size_t k = 1; k < 3; ++k)
      if (!is_number(args[k]) || std::isnan(plugin::as_double(args[k]))) return {};
    return {{Kind::kLow, {args[1]}, 0, true}, {Kind::kHigh, {args[2]}, 0, true}};
  }
  static bp_value number(int64_t n) {
    bp_value value{};
    value.tag = BP_TAG_INT;
    value.u.i = n;
    return value;
  }

  const GraphView& graph_;
  bp_device device_;
  std::vector<uint32_t> reads_, reader_;  // per value: how often it is read, and by which node
};

}  // namespace

std::vector<ConvChain> conv_chains(const GraphView& graph, bp_device device) { return Chains(graph, device).find(); }

}  // namespace backplane::cpu::fuse

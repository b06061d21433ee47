// A region as an ordered list of scalar function calls. A backend's compiler emits it in its own language: one load
// for each way in which an operand is read, one or more calls per node, reductions over rows, one store per output.
//
// It names functions as codegen does, and does not deal with memory or threads. Half floats are held as float32 and
// rounded after each op (`rounded_float16`, `rounded_bfloat16`: the backend's own), as kernels round their stores. So a
// result has the same bits as the separate ops. Header-only.
#pragma once

#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "backplane/plugin.hpp"
#include "backplane/plugin/fused_nodes.hpp"

namespace backplane::plugin {

// Where the elements of a tensor lie in the space, and the variable that holds one.
struct FusedOperand {
  bp_dtype dtype;
  std::vector<int32_t> axes;  // per dim of the space, the tensor's axis; -1: all elements are one
  uint32_t variable;
  uint32_t input = 0;  // of what is loaded: its number; beyond the inputs, that of a constant
  bool uniform() const { return covers_none_from(0); }
  // Is it one along the dims of the space from `first` on?
  bool covers_none_from(size_t first) const {
    return std::all_of(axes.begin() + static_cast<std::ptrdiff_t>(first), axes.end(),
                       [](int32_t axis) { return axis < 0; });
  }
};

// A Python number among the arguments: an operand too, so that regions which differ in it alone are one program.
struct FusedNumber {
  bp_dtype dtype;
  uint32_t variable;
  alignas(16) char bytes[16] = {};
};

struct FusedCall {
  std::string function;
  std::vector<uint32_t> args;  // variables
  uint32_t result;
};

// Of the elements of a row, converted to `dtype` before; `function` is the backend's name of what joins two.
struct FusedReduction {
  std::string function;
  bp_dtype dtype;
  uint32_t operand, result;  // variables
};

// A variable has a greater number than its operands.
struct FusedProgram {
  FusedSpace space;
  std::vector<bool> uniform;               // per variable: it is one in all
  std::vector<FusedOperand> loads;         // before the calls
  std::vector<FusedNumber> numbers;        // before the calls
  std::vector<FusedCall> calls;            // each after its operands
  std::vector<FusedReduction> reductions;  // each after its operands
  std::vector<FusedOperand> stores;        // one for each output
  std::vector<bp_tensor*> constants;       // borrowed
  bool has_rows() const { return space.reduced > 0; }
};

class FusedLowering {
 public:
  // Throws if grow_regions would not claim this region by these rules.
  FusedLowering(const GraphView& region, const FusedRules& rules)
      : graph_(region), rules_(rules), made_(region.n_values(), kNone) {}

  FusedProgram run() {
    for (uint32_t i = 0; i < graph_.n_nodes(); ++i)
      BP_CHECK(rules_[i].kind != FusedKind::kNone, NOT_IMPLEMENTED, "a region holds ", graph_.node(i).op,
               ", which is not fused: ", rules_[i].reason);
    // Rows first: a value with one element per row fits into them.
    for (const bool rows : {true, false})
      for (uint32_t i = 0; i < graph_.n_nodes(); ++i) {
        if ((rules_[i].space.reduced > 0) != rows) continue;
        const auto space = united(program_.space, rules_[i].space);
        BP_CHECK(space, VALUE, "a region holds nodes of two shapes at ", graph_.node(i).op);
        program_.space = *space;
      }
    for (uint32_t i = 0; i < graph_.n_nodes(); ++i) lower(i);
    for (const uint32_t value : graph_.outputs()) {
      BP_CHECK(made_[value] != kNone, VALUE, "nothing in the region makes its output, value ", value);
      program_.stores.push_back({graph_.value(value).dtype, axes_of(value, graph_.dims(value)), made_[value]});
    }
    return std::move(program_);
  }

 private:
  static constexpr uint32_t kNone = 0xffffffff;

  uint32_t new_variable(bool uniform) {
    program_.uniform.push_back(uniform);
    return static_cast<uint32_t>(program_.uniform.size() - 1);
  }

  // The axes of a value's dims in the space, where they align at the right with a result's.
  std::vector<int32_t> axes_of(int64_t value, Dims result) const {
    const Dims dims = graph_.dims(value);
    std::vector<int32_t> axes = aligned_axes(dims, result);
    const std::vector<int64_t> sizes = fused_space(result);
    for (size_t d = 0; d < axes.size(); ++d)
      BP_CHECK(axes[d] < 0 || dims[static_cast<size_t>(axes[d])] == sizes[d], VALUE, "value ", value,
               " does not broadcast to its region");
    axes.resize(program_.space.dims.size(), -1);  // what has an element per row is one along it
    return axes;
  }

  uint32_t load(int64_t value, Dims result) {
    auto axes = axes_of(value, result);
    const auto [found, fresh] = loaded_.try_emplace({value, axes}, kNone);
    if (fresh) {
      FusedOperand operand{graph_.value(value).dtype, std::move(axes), 0, source_of(value)};
      found->second = operand.variable = new_variable(operand.uniform());
      program_.loads.push_back(std::move(operand));
    }
    return found->second;
  }

  uint32_t source_of(int64_t value) {
    const auto inputs = graph_.inputs();
    for (uint32_t k = 0; k < inputs.size(); ++k)
      if (inputs[k] == value) return k;
    bp_tensor* constant = graph_.value(value).constant;
    BP_CHECK(constant != nullptr, VALUE, "nothing in the region makes value ", value);
    program_.constants.push_back(constant);
    return static_cast<uint32_t>(inputs.size() + program_.constants.size() - 1);
  }

  uint32_t operand(int64_t value, Dims result) { return made_[value] != kNone ? made_[value] : load(value, result); }

  uint32_t call(std::string function, std::vector<uint32_t> args) {
    bool uniform = true;
    for (const uint32_t arg : args) uniform = uniform && program_.uniform[arg];
    const uint32_t result = new_variable(uniform);
    program_.calls.push_back({std::move(function), std::move(args), result});
    return result;
  }
  // What a kernel of a half float's dtype stores and the next one loads.
  uint32_t rounded(bp_dtype dtype, uint32_t x) {
    return is_half(dtype) ? call(std::string("rounded_") + dtype_name(dtype), {x}) : x;
  }
  uint32_t cast(uint32_t x, bp_dtype from, bp_dtype to) {
    if (from == to) return x;
    const bp_dtype a = held_dtype(from), b = held_dtype(to);
    if (a != b) x = call(std::string("bp_cast_") + dtype_name(a) + "_" + dtype_name(b), {x});
    return rounded(to, x);
  }
  uint32_t number(const bp_value& value, bp_dtype dtype) {
    FusedNumber made{held_dtype(dtype), new_variable(true)};
    dispatch_dtype<BP_MASK_ANY>(dtype, [&]<class T>() {
      const auto element = static_cast<Compute<T>>(number_as<T>(value));
      std::memcpy(made.bytes, &element, sizeof(element));
    });
    program_.numbers.push_back(made);
    return made.variable;
  }

  void lower_reduction(uint32_t i) {
    const bp_graph_node& node = graph_.node(i);
    const int64_t from = node.args[0].u.i, result = node.results[0];
    const bp_dtype own = graph_.value(from).dtype, read = (node.shares & 1) != 0 ? node.compute : own;
    const bp_dtype accumulator = rules_[i].accumulator;
    const uint32_t x = cast(cast(operand(from, graph_.dims(from)), own, read), read, accumulator);
    const uint32_t total = new_variable(false);
    program_.reductions.push_back({*rules_[i].reduction, accumulator, x, total});
    made_[result] = cast(total, accumulator, graph_.value(result).dtype);
  }

  void lower(uint32_t i) {
    const bp_graph_node& node = graph_.node(i);
    const int64_t result = node.results[0];
    const bp_dtype dtype = graph_.value(result).dtype;
    const Dims dims = graph_.dims(result);
    if (rules_[i].kind == FusedKind::kReduce) return lower_reduction(i);
    if (rules_[i].kind != FusedKind::kMap) {
      // The operand's elements in their order, or its one element.
      const int64_t from = node.args[0].u.i;
      const bool alike = fused_space(graph_.dims(from)) == fused_space(dims);
      const uint32_t x = operand(from, alike ? graph_.dims(from) : dims);
      made_[result] = rules_[i].kind == FusedKind::kView ? x : cast(x, graph_.value(from).dtype, dtype);
      return;
    }
    const ScalarOp& op = *rules_[i].op;
    std::vector<uint32_t> args;
    for (uint32_t k = 0; k < node.n_args; ++k) {
      const bp_value& arg = node.args[k];
      const bp_dtype wanted = op.operands == 3 && k == 0 ? bp_dtype{BP_BOOL} : node.compute;
      args.push_back(arg.tag == BP_TAG_REF ? cast(operand(arg.u.i, dims), graph_.value(arg.u.i).dtype, wanted)
                                           : number(arg, wanted));
    }
    made_[result] = rounded(dtype, call(op.function, std::move(args)));
  }

  const GraphView& graph_;
  const FusedRules& rules_;
  std::vector<uint32_t> made_;  // per value that the region makes: its variable
  std::map<std::pair<int64_t, std::vector<int32_t>>, uint32_t> loaded_;
  FusedProgram program_;
};

}  // namespace backplane::plugin

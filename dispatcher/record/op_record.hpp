// The core's own, verified copy of an op record, with what calls need precomputed.
//
// `copy_record` reads a caller's bp_op_def (possibly of an older or newer minor: only members within struct_size,
// arrays by their stride), copies everything it points to into the record's arena, and verifies it: names, types,
// bounds of every node and input, arity, topological order, one shape and dtype rule per result, defaults of the
// right kind. It throws Error(BP_ERROR_VALUE) naming the op and the first fault. Nothing is registered here.
// A record never changes after that, except `calls` and `fit_ops`, which link() fills once, under the registry's lock.
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backplane/error.hpp"
#include "record/formula_plan.hpp"
#include "record/host_table.hpp"

namespace backplane::core {

struct ShapeWord;    // shape_rules.hpp
struct ResolvedArg;  // resolved_args.hpp
struct Builtin;      // builtins.hpp

// A record beyond these is refused, so that no stack buffer of a call depends on a plugin.
inline constexpr int kMaxLoopOperands =
    16;  // of an elementwise op or a reduction: results, and tensors among arguments
inline constexpr uint32_t kMaxArgs = 64;
inline constexpr uint32_t kMaxResults = 16;
inline constexpr uint32_t kMaxNodes = 4096;

struct OpRecord {
  bp_op_def def{};    // all pointers lead into `arena`
  bp_op_info info{};  // `op` is the registry's to fill
  std::string_view name;
  std::span<const bp_arg_def> args;
  std::span<const bp_result_def> results;
  std::span<const bp_formula> formulas;
  std::span<const bp_shape_rule> shapes;
  std::span<const bp_result_dtype> dtypes;
  std::span<const bp_dtype_mask> accepts;       // per argument; 0: not checked
  uint32_t n_required = 0;                      // up to and with the last argument that has no default
  uint64_t tensor_args = 0;                     // bit i: argument i is Tensor, Tensor? or a list of them
  uint64_t needed_tensors = 0;                  // bit i: of those, it may not be absent
  uint64_t axis_args = 0;                       // bit i: argument i is Axis or Axes
  bool simple_tensors = true;                   // no list among them
  bp_dtype_mask promote_accepts = BP_MASK_ANY;  // what all arguments of `promote` accept
  // If `promote` is the first argument (1) or the first two (2), and nothing else is checked: the dtypes in which a
  // call whose tensors have one dtype computes in that dtype. 0: the general way.
  uint8_t n_alike = 0;
  bp_dtype_mask alike_dtypes = 0;
  // The result has the dtype that an argument states, or else accumulates: elements of a higher kind are cast to it
  // first, as NumPy, PyTorch and the array API have it.
  bool adds_in_stated = false;
  uint64_t checked_args = 0;                  // bit i: outside `promote`, and does not accept every dtype
  std::vector<const ShapeWord*> shape_words;  // per result; nullptr for "expr", "function", "dynamic"
  const bp_formula* shape_formula = nullptr;  // of "expr"
  std::vector<FormulaPlan> plans;             // per formula
  bool indexes = false;                       // the shape rule is that of advanced indexing
  std::vector<ResolvedArg> resolved;          // what kernels receive in another form than callers give

  std::vector<const Builtin*> builtins;  // for names[i]; nullptr: an op
  // Linked on first use: for names[i], the op's handle (BP_NO_OP: a builtin).
  std::vector<uint32_t> calls;
  uint32_t fit_ops[3] = {BP_NO_OP, BP_NO_OP, BP_NO_OP};
  std::atomic<bool> linked{false};

  const bp_formula* find_formula(uint16_t rule) const;                   // the first of that rule
  const bp_formula* find_formula(uint16_t rule, uint32_t target) const;  // whose targets contain `target`
  const FormulaPlan& plan(const bp_formula& formula) const {
    return plans[static_cast<size_t>(&formula - formulas.data())];
  }

  OpRecord() = default;
  OpRecord(const OpRecord&) = delete;
  OpRecord& operator=(const OpRecord&) = delete;
  ~OpRecord();
  struct Arena;
  std::unique_ptr<Arena> arena;
};

// The frame of a function of the record, or of a formula: no device, no compute dtype.
inline bp_frame frame_of(const OpRecord& op) {
  bp_frame frame{};
  frame.header = BP_HEADER(bp_frame);
  frame.host = &host_table;
  frame.op = &op.info;
  frame.compute = BP_DTYPE_NONE;
  return frame;
}

std::unique_ptr<OpRecord> copy_record(const bp_op_def& def);

}  // namespace backplane::core

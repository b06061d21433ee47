#include "functions/recomputed_call.hpp"

#include "call/formulas/decomposition.hpp"
#include "call/formulas/role_calls.hpp"
#include "functions/closed_function.hpp"
#include "functions/graph_node.hpp"
#include "levels/kernel_below.hpp"
#include "record/mapped_value.hpp"
#include "record/owned_value.hpp"
#include "record/plain_value.hpp"

namespace backplane::core {
namespace {

// A call's decomposition as a function of its tensors, with copies of its other arguments.
class DecomposedCall final : public ClosedFunction {
 public:
  explicit DecomposedCall(const Call& call)
      : ClosedFunction(std::string(call.op.record->name), true),
        op_(call.op),
        args_(call.args, call.args + call.n_args) {
    size_t bytes = 0;
    for (const bp_value& v : args_) bytes += extra_bytes(v);
    extra_.resize(bytes);
    char* place = extra_.data();
    for (bp_value& v : args_)
      if (v.tag == BP_TAG_TENSOR_LIST)
        v = mapped(v, lists_, [](bp_tensor* t) { return t; });
      else
        v = copy_plain(v, place);
  }

  std::vector<Tensor> call(Args tensors) override {
    bp_value args[kMaxArgs], outs[kMaxResults] = {};
    TensorLists lists;
    size_t next = 0;
    for (size_t i = 0; i < args_.size(); ++i)
      args[i] = mapped(args_[i], lists, [&](bp_tensor*) { return tensors[next++].get(); });
    call_decomposition({op_, args, static_cast<int32_t>(args_.size()), outs, op_.n_results, roles::kAllKeys});
    std::vector<Tensor> results;
    for (int32_t j = 0; j < op_.n_results; ++j) results.push_back(Tensor::adopt(outs[j].u.t));
    return results;
  }

 private:
  const OpEntry& op_;           // leased by the node
  std::vector<bp_value> args_;  // in a tensor's place any tensor's address, which is not read
  std::vector<char> extra_;
  TensorLists lists_;
};

// A graph shows the parts instead: a compiler joins them, and what the backward pass computes again is there already.
bool can_record(const Call& call, const GradLevel* level) {
  return !(call.op.flags & (BP_OP_VIEW | BP_OP_MAYBE_VIEW)) && kernel_below(level, call);
}

// The arguments with a history, as the node's edges.
void note_arguments(const std::vector<Tensor>& args, const GradLevel* level, Captures& captures) {
  for (const Tensor& t : args)
    if (level ? impl(t)->node && wrapper_of(*level, impl(t)) : wants_grad(impl(t))) captures.note(impl(t));
}

std::vector<Tensor> tensors_of(const bp_value* args, int32_t n_args) {
  std::vector<Tensor> tensors;
  each_tensor(args, n_args, [&](TensorImpl* t) { tensors.push_back(Tensor::share(t)); });
  return tensors;
}

}  // namespace

bool record_recomputed_call(const Call& call, const GradLevel* level) {
  if (!can_record(call, level)) return false;
  const std::vector<Tensor> outer = tensors_of(call.args, call.n_args);
  Captures captures;
  note_arguments(outer, level, captures);
  if (captures.empty()) return false;
  std::vector<Tensor> inner = outer, results;
  bp_value outs[kMaxResults] = {};
  if (level) {
    const Unwrapped below(*level, call);
    const BelowLevel below_level(*level);
    dispatch({call.op, below.args, call.n_args, outs, call.n_outs, call.mask});
    inner = tensors_of(below.args, call.n_args);
  } else {
    dispatch({call.op, call.args, call.n_args, outs, call.n_outs, call.mask & ~kTapeKey});
  }
  std::vector<bool> constant;
  for (int32_t j = 0; j < call.n_outs; ++j) {
    results.push_back(Tensor::adopt(outs[j].u.t));
    constant.push_back((call.op.record->results[static_cast<size_t>(j)].flags & BP_RESULT_NONDIFF) != 0);
  }
  std::vector<Tensor> recorded = record_checkpoint(
      {call.op, std::make_shared<DecomposedCall>(call), level, outer, inner, {}}, results, captures, constant);
  for (int32_t j = 0; j < call.n_outs; ++j) call.outs[j] = owned_value(std::move(recorded[static_cast<size_t>(j)]));
  return true;
}

namespace {
[[gnu::constructor]] void register_recomputed() { record_recomputed = record_recomputed_call; }
}  // namespace

}  // namespace backplane::core

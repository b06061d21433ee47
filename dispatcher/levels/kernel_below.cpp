#include "levels/kernel_below.hpp"

#include "call/operand_checks.hpp"
#include "call/row.hpp"
#include "record/dtype_rules.hpp"

namespace backplane::core {
namespace {

bool is_whole_below(const Level* level, const Call& call) {
  bool whole = true;
  each_tensor(call.args, call.n_args, [&](TensorImpl* t) {
    if (level && wrapper_of(*level, t)) t = t->wrapper->inner;
    for (; t->wrapper; t = t->wrapper->inner) whole = whole && !t->wrapper->batched && !t->wrapper->tangent;
  });
  return whole;
}

bool makes_new_tensors(const Call& call) {
  for (int32_t j = 0; j < call.n_outs; ++j)
    if (call.outs[j].flags || (call.op.record->results[static_cast<size_t>(j)].flags & BP_ARG_LIST)) return false;
  return true;
}

}  // namespace

bool kernel_below(const Level* level, const Call& call) {
  if (thread_state.level && thread_state.level->every_call) return false;
  if ((call.op.flags & (BP_OP_RANDOM | BP_OP_DYNAMIC)) || !makes_new_tensors(call)) return false;
  if (force_decomposition.load(std::memory_order_relaxed) || !is_whole_below(level, call)) return false;
  const Device& device = device_of_operands(call);
  const bp_dtype compute = compute_dtype(*call.op.record, call.args, call.n_args);
  if (lacked_dtype(call, device, compute) != BP_DTYPE_NONE) return false;
  ResultShapes shapes(call);
  return pick_row(call, device, compute, shapes, nullptr) != nullptr;
}

}  // namespace backplane::core

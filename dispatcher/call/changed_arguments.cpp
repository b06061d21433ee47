#include "call/changed_arguments.hpp"

#include <algorithm>
#include <vector>

#include "backplane/autograd.hpp"
#include "backplane/changed_arguments.hpp"
#include "call/formulas/role_calls.hpp"
#include "call/operand_checks.hpp"
#include "memory/tensors/history.hpp"
#include "memory/tensors/shared_bytes.hpp"
#include "record/dtype_rules.hpp"

namespace backplane::core {
namespace {

// Does a transform or a derivative follow any of the tensors?
bool is_followed(const bp_value* args, int32_t n_args) {
  if (thread_state.level || thread_state.captures) return true;
  bool followed = false;
  each_tensor(args, n_args, [&](TensorImpl* t) {
    followed = followed || t->wrapper || (!thread_state.grad_disabled && (keys_now(t) & kTapeKey));
  });
  return followed;
}

void check_targets(const OpEntry& op, const bp_value* args, int32_t n_args, bp_value* outs) {
  const OpRecord& record = *op.record;
  for (size_t i = 0; i < record.results.size(); ++i) {
    const int32_t k = argument_of_result(record, i);
    const char* const name = k >= 0 ? record.args[static_cast<size_t>(k)].name : record.results[i].name;
    BP_CHECK(k >= 0 && k < n_args && args[k].tag == BP_TAG_TENSOR && args[k].u.t, TYPE, record.name, ": argument '",
             name, "' is changed in place, so it must be a tensor that is not empty, and not a number");
    const TensorImpl& target = *impl(args[k].u.t);
    if (!target.wrapper) check_writable(op, target);
    BP_CHECK(target.wrapper || target.node || target.view || thread_state.grad_disabled ||
                 !requires_grad(Tensor::share(impl(args[k].u.t))),
             VALUE, record.name, ": argument '", name,
             "' is changed in place, but it requires a gradient and is a leaf. Fix: change it under no_grad");
    outs[i] = args[k];
    outs[i].flags = BP_VALUE_GIVEN;
    for (size_t j = 0; j < i; ++j)
      BP_CHECK(outs[i].u.t != outs[j].u.t && !may_share_bytes(*impl(outs[i].u.t), *impl(outs[j].u.t)), VALUE,
               record.name, ": arguments '", record.results[j].name, "' and '", name,
               "' are both changed in place and share elements. Fix: pass a copy of one of them");
  }
}

// The arguments of the call that makes the new values. Values computed again from them for a derivative
// must use their present contents: copies replace arguments that are changed afterwards.
struct BeforeChange {
  BeforeChange(const OpEntry& op, const bp_value* given, int32_t n_args, const bp_value* targets) {
    std::copy_n(given, n_args, args);
    if (op.derivative != Derivative::kDecompose || thread_state.level || thread_state.captures) return;
    for (int32_t i = 0; i < op.n_results; ++i) {
      copies.push_back(roles::copy(impl(targets[i].u.t)));
      for (int32_t k = 0; k < n_args; ++k)
        if (given[k].tag == BP_TAG_TENSOR && given[k].u.t == targets[i].u.t)
          args[k] = tensor_value(impl(copies.back()));
    }
  }
  bp_value args[kMaxArgs];
  std::vector<Tensor> copies;
};

}  // namespace

bool changes_by_decomposition(const OpEntry& op, const bp_value* args, int32_t n_args) {
  return op.derivative == Derivative::kDecompose && !thread_state.level && !thread_state.captures &&
         is_followed(args, n_args);
}

int32_t argument_of_result(const OpRecord& record, size_t result) {
  for (size_t k = 0; k < record.args.size(); ++k)
    if (std::string_view(record.args[k].name) == record.results[result].name) return static_cast<int32_t>(k);
  return record.results.size() == 1 && !record.args.empty() ? 0 : -1;
}

void change_arguments(const OpEntry& op, const bp_value* args, int32_t n_args) {
  bp_value outs[kMaxResults];
  check_targets(op, args, n_args, outs);
  if (!is_followed(args, n_args)) return call(op, args, n_args, outs, op.n_results);
  bp_value results[kMaxResults] = {};
  const BeforeChange before(op, args, n_args, outs);
  call(op, before.args, n_args, results, op.n_results);
  std::vector<Tensor> made;
  for (int32_t i = 0; i < op.n_results; ++i) made.push_back(Tensor::adopt(results[i].u.t));
  for (int32_t i = 0; i < op.n_results; ++i) {
    const auto at = static_cast<size_t>(i);
    const TensorImpl &result = *impl(made[at]), &target = *impl(outs[i].u.t);
    BP_CHECK(same_shape(result, target), SHAPE, op.record->name, ": argument '", op.record->results[at].name,
             "' is changed in place, and its new value has another shape");
    BP_CHECK(dtype_kind(result.dtype) <= dtype_kind(target.dtype), DTYPE, op.record->name, ": a value of dtype ",
             kDtypeNames[result.dtype], " cannot be written into argument '", op.record->results[at].name,
             "' of dtype ", kDtypeNames[target.dtype], "; cast it first");
    if (result.dtype != target.dtype) made[at] = roles::cast(impl(made[at]), target.dtype);
  }
  for (int32_t i = 0; i < op.n_results; ++i)
    roles::copy_into(tensor_value(impl(made[static_cast<size_t>(i)])), outs[i], ~uint64_t{0});
}

}  // namespace backplane::core

namespace backplane {

std::vector<int32_t> changed_arguments(OpHandle op) {
  const core::OpEntry* entry = core::op_entry(op);
  std::vector<int32_t> changed;
  for (size_t i = 0; entry && (entry->flags & BP_OP_INPLACE) && i < entry->record->results.size(); ++i)
    changed.push_back(core::argument_of_result(*entry->record, i));
  return changed;
}

}  // namespace backplane

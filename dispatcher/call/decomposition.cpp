// Runs an op's decomposition: its formula, over arguments of the compute dtype.
#include "call/decomposition.hpp"

#include <utility>
#include <vector>

#include "call/operand_checks.hpp"
#include "call/own_results.hpp"
#include "call/result_shapes.hpp"
#include "call/role_calls.hpp"
#include "call/row.hpp"
#include "call/run_formula.hpp"
#include "memory/history.hpp"
#include "record/builtin_numbers.hpp"
#include "record/dtype_rules.hpp"
#include "record/mapped_value.hpp"
#include "record/owned_value.hpp"

namespace backplane::core {

namespace {

// The arguments in the form in which a kernel sees them, as far as dtypes go: those that promote, in the compute dtype.
class PromotedArguments {
 public:
  explicit PromotedArguments(const Call& call)
      : args_(call.args), promote_(call.op.record->def.promote), mask_(call.mask) {
    compute_ = compute_dtype(*call.op.record, call.args, call.n_args);
    if (compute_ == BP_DTYPE_NONE) return;
    bool differ = false;
    for (int32_t i = 0; i < call.n_args; ++i)
      if (promotes(i)) each_tensor(call.args + i, 1, [&](TensorImpl* t) { differ = differ || t->dtype != compute_; });
    if (differ) [[unlikely]]
      cast_all(call);
  }
  PromotedArguments(const PromotedArguments&) = delete;
  ~PromotedArguments() {
    for (TensorImpl* t : held_) release(t);
  }
  const bp_value* get() const { return args_; }

 private:
  bool promotes(int32_t i) const { return i < 64 && (promote_ >> i & 1); }

  bp_tensor* cast(bp_tensor* t) {
    if (t->dtype == compute_) return t;
    held_.push_back(impl(roles::cast(impl(t), compute_, mask_).detach_handle()));
    return held_.back();
  }

  void cast_all(const Call& call) {
    values_.assign(call.args, call.args + call.n_args);
    for (int32_t i = 0; i < call.n_args; ++i) {
      bp_value& v = values_[static_cast<size_t>(i)];
      if (promotes(i)) v = mapped(v, lists_, [this](bp_tensor* t) { return cast(t); });
    }
    args_ = values_.data();
  }

  const bp_value* args_;
  uint64_t promote_;
  uint64_t mask_;
  bp_dtype compute_;
  std::vector<bp_value> values_;
  TensorLists lists_;
  std::vector<TensorImpl*> held_;
};

// The parts of an in-place call write its target last, and what they keep for the tape's derivatives may be the target:
// there they read a copy of it.
class TargetsBefore {
 public:
  explicit TargetsBefore(const Call& call) : args_(call.args) {
    if (thread_state.grad_disabled || !(call.mask & kTapeKey)) return;
    for (int32_t j = 0; j < call.n_outs; ++j)
      if (call.outs[j].flags & BP_VALUE_GIVEN) replace(call, call.outs[j].u.t);
  }
  TargetsBefore(const TargetsBefore&) = delete;
  const bp_value* get() const { return args_; }

 private:
  void replace(const Call& call, const bp_tensor* target) {
    bool read = false, followed = false;
    each_tensor(call.args, call.n_args, [&](TensorImpl* t) {
      read = read || t == target;
      followed = followed || (!t->wrapper && (keys_now(t) & kTapeKey));
    });
    if (!read || !followed) return;
    const Tensor& copy = copies_.emplace_back(roles::copy(impl(const_cast<bp_tensor*>(target)), call.mask));
    values_.assign(args_, args_ + call.n_args);
    for (bp_value& v : values_) v = mapped(v, lists_, [&](bp_tensor* t) { return t == target ? copy.get() : t; });
    args_ = values_.data();
  }

  const bp_value* args_;
  std::vector<bp_value> values_;
  std::vector<Tensor> copies_;
  TensorLists lists_;
};

// An inner op may have refused what this op's own rules refuse in the user's terms.
bool blames_arguments(bp_status code) {
  return code == BP_ERROR_SHAPE || code == BP_ERROR_VALUE || code == BP_ERROR_TYPE || code == BP_ERROR_INDEX ||
         code == BP_ERROR_DATA;
}

}  // namespace

// The shape rule is asked when an op further down has refused: asked first, a rule that is a formula would take up to
// three quarters of the call. A decomposition that would take what the rule refuses says `require` itself.
void call_decomposition(const Call& call) {
  try {
    decompose_checked(call);
  } catch (const Error& error) {
    if (blames_arguments(error.code())) ResultShapes(call).check();
    throw;
  }
}

namespace {

// What the formula gave and nobody has taken yet.
struct Results {
  bp_value values[kMaxResults] = {};
  Results() = default;
  Results(const Results&) = delete;
  ~Results() {
    for (bp_value& value : values) release_owned(value, [](bp_tensor* t) { release(impl(t)); });
  }
};

// As views are remembered, at any remove: one inside a transform has no memory of its own to compare.
bool is_view_of(const TensorImpl& tensor, const TensorImpl* base) {
  const TensorImpl* t = &tensor;
  while (t->view && t != base) t = t->view->base;
  return t == base;
}

bool is_handed_on(const Call& call, const TensorImpl& result) {
  bool found = false;
  each_tensor(call.args, call.n_args, [&](TensorImpl* t) {
    found = found || (result.storage && t->storage == result.storage) || is_view_of(result, t);
  });
  for (int32_t i = 0; i < call.n_outs; ++i)
    found = found || (call.outs[i].tag == BP_TAG_TENSOR && call.outs[i].u.t == &result);
  return found;
}

// A formula may hand on an argument, a view of one, or what is another result already. As the result of an op that is
// no view it would be written to, and given a history, as a tensor of its own.
void make_own(const Call& call, bp_tensor*& result) {
  if (!result || !is_handed_on(call, *impl(result))) [[likely]]
    return;
  bp_tensor* copy = roles::copy(impl(result), call.mask).detach_handle();
  release(impl(std::exchange(result, copy)));
}

void make_own(const Call& call, bp_value& result) {
  if (call.op.flags & (BP_OP_COMPOSITE | BP_OP_VIEW | BP_OP_MAYBE_VIEW)) return;
  if (result.tag == BP_TAG_TENSOR) make_own(call, result.u.t);
  if (result.tag != BP_TAG_TENSOR_LIST) return;
  for (uint32_t k = 0; k < result.count; ++k) make_own(call, owned_tensors(result)[k]);
}

}  // namespace

void decompose_checked(const Call& call) {
  const OpEntry& op = call.op;
  BP_CHECK(op.decompose, INTERNAL, op.record->name, ": has no decomposition");
  const TargetsBefore before(call);
  PromotedArguments promoted({call.op, before.get(), call.n_args, call.outs, call.n_outs, call.mask});
  FormulaInputs inputs;
  inputs.args = promoted.get();
  Results results;
  run_formula(op, *op.decompose, inputs, results.values, call.mask);
  for (int32_t i = 0; i < call.n_outs; ++i) {
    bp_value& result = results.values[i];
    if (is_number(result)) {  // a number in the position of a tensor, which the formula hands on
      const bp_dtype dtype = result_dtype(*op.record, call.args, call.n_args, i, number_dtype(result.tag));
      result = owned_value(tensor_of_number(result, dtype, device_of_call(call), call.mask));
    }
  }
  if (op.owner != core_plugin()) check_decomposed(call, results.values);  // ours are held against their rules by tests
  for (int32_t i = 0; i < call.n_outs; ++i) {
    bp_value &out = call.outs[i], &result = results.values[i];
    if (out.flags & BP_VALUE_GIVEN) {
      roles::copy_into(result, out, call.mask);
    } else if (!(out.flags & BP_VALUE_NOT_WANTED)) {
      make_own(call, result);
      out = std::exchange(result, {});
    }
  }
}

}  // namespace backplane::core

#include "jvp/jvp_level.hpp"

#include <deque>

#include "call/dispatch.hpp"
#include "call/formulas/decomposition.hpp"
#include "call/formulas/role_calls.hpp"
#include "call/formulas/run_formula.hpp"
#include "call/row.hpp"
#include "levels/inplace.hpp"
#include "memory/process/epoch.hpp"
#include "record/dtype_rules.hpp"
#include "record/owned_value.hpp"
#include "tape/engine.hpp"
#include "tape/node.hpp"
#include "tape/record.hpp"

namespace backplane::core {
namespace {

bool is_differentiable(const OpEntry& op, size_t result, const bp_value& v) {
  return v.tag == BP_TAG_TENSOR && is_inexact(v.u.t->dtype) && !(op.record->results[result].flags & BP_RESULT_NONDIFF);
}

bool has_differentiable_result(const Call& call) {
  for (int32_t j = 0; j < call.n_outs; ++j)
    if (is_differentiable(call.op, static_cast<size_t>(j), call.outs[j])) return true;
  return false;
}

TensorImpl* tangent_of(const Level& level, const bp_tensor* tensor) {
  if (!tensor) return nullptr;
  const Wrapper* wrapper = wrapper_of(level, static_cast<const TensorImpl*>(tensor));
  return wrapper ? wrapper->tangent : nullptr;
}

bool has_tangent(const Level& level, const bp_value& v) {
  if (v.tag == BP_TAG_TENSOR) return tangent_of(level, v.u.t) != nullptr;
  if (v.tag == BP_TAG_TENSOR_LIST)
    for (uint32_t k = 0; k < v.count; ++k)
      if (tangent_of(level, v.u.tensors[k])) return true;
  return false;
}

// The tangents of one call, as its formulas read them.
class Tangents {
 public:
  Tangents(const Level& level, const Call& call, const bp_value* inner, bp_dtype dtype)
      : level_(level), call_(call), inner_(inner), dtype_(dtype) {}

  // Reads the tangents of a formula's targets; false if all are zero. Otherwise creates the zero ones.
  bool read(const bp_formula& formula) {
    bool any = false;
    for (uint32_t k = 0; k < formula.n_targets; ++k) any = any || has_tangent(level_, call_.args[formula.targets[k]]);
    if (!any) return false;
    for (uint32_t k = 0; k < formula.n_targets; ++k) values_[formula.targets[k]] = of_argument(formula.targets[k]);
    return true;
  }
  const bp_value* values() const { return values_; }

 private:
  bp_value of_argument(uint32_t i) {
    const bp_value& v = call_.args[i];
    switch (v.tag) {
      case BP_TAG_ABSENT:
        return v;
      case BP_TAG_TENSOR:
        return value(of_tensor(v.u.t, inner_[i].u.t));
      case BP_TAG_TENSOR_LIST: {
        auto& list = lists_.emplace_back(v.count);
        for (uint32_t k = 0; k < v.count; ++k)
          list[k] = v.u.tensors[k] ? of_tensor(v.u.tensors[k], inner_[i].u.tensors[k]).get() : nullptr;
        bp_value copy = v;
        copy.u.tensors = list.data();
        return copy;
      }
      default:
        return number(value(0.0));
    }
  }

  // Held until the call is over.
  const Tensor& of_tensor(const bp_tensor* tensor, const bp_tensor* inner) {
    if (TensorImpl* tangent = tangent_of(level_, tensor)) return held_.emplace_back(Tensor::share(tangent));
    const bp_dtype dtype = is_inexact(inner->dtype) ? inner->dtype : dtype_;
    return held_.emplace_back(
        filled({inner->dl.shape, static_cast<size_t>(inner->dl.ndim)}, 0.0, dtype, {inner->backend, inner->ordinal}));
  }

  const Level& level_;
  const Call& call_;
  const bp_value* inner_;
  bp_dtype dtype_;
  bp_value values_[kMaxArgs] = {};
  std::deque<Tensor> held_;
  std::deque<std::vector<bp_tensor*>> lists_;
};

// An addend in the result's dtype and shape, into which it may broadcast.
Tensor fitted(Tensor addend, const bp_tensor& result) {
  if (addend.dtype() != result.dtype) addend = roles::cast(impl(addend), result.dtype);
  if (same_shape(*addend.get(), result)) return addend;
  return roles::expand(impl(addend), {result.dl.shape, static_cast<size_t>(result.dl.ndim)});
}

// One per result; empty where it is zero.
struct ResultTangents {
  Tensor of[kMaxResults];

  void add(size_t j, const bp_value& addend, const bp_tensor& result) {
    if (addend.tag == BP_TAG_ABSENT) return;
    Tensor given;
    if (addend.tag == BP_TAG_TENSOR)
      given = Tensor::share(addend.u.t);
    else  // a constant slope
      given = tensor_of_number(addend, result.dtype, device_at({result.backend, result.ordinal}), roles::kAllKeys);
    Tensor t = fitted(std::move(given), result);
    of[j] = of[j] ? roles::add(impl(of[j]), impl(t)) : std::move(t);
  }
};

void check_rule(const Level& level, const OpEntry& op, uint32_t i, const bp_formula* formula) {
  const OpRecord& record = *op.record;
  BP_CHECK(formula, NOT_IMPLEMENTED, record.name, ": has no forward derivative with respect to \"", record.args[i].name,
           "\", which ", level.transform, " needs; state one under jvp in its entry (",
           record.def.file ? record.def.file : "?", ":", record.def.line, ")");
  BP_CHECK(!(formula->flags & BP_FORMULA_REFUSED), NOT_IMPLEMENTED, record.name,
           ": has no forward derivative with respect to \"", record.args[i].name,
           "\": ", formula->text ? formula->text : "");
}

void run_formulas(const Level& level, const Call& call, const bp_value* inner, ResultTangents& tangents) {
  const OpEntry& op = call.op;
  const OpRecord& record = *op.record;
  Tangents given(level, call, inner,
                 call.outs[0].tag == BP_TAG_TENSOR ? call.outs[0].u.t->dtype : bp_dtype{BP_FLOAT32});
  FormulaInputs inputs;
  inputs.args = inner;
  inputs.outs = call.outs;
  inputs.tangents = given.values();
  uint64_t done = 0;
  for (uint32_t i = 0; i < record.args.size(); ++i) {
    if ((done >> i & 1) || !has_tangent(level, call.args[i])) continue;
    const bp_formula* formula = op.jvp_of_arg[i];
    check_rule(level, op, i, formula);
    for (uint32_t k = 0; k < formula->n_targets; ++k) done |= uint64_t{1} << formula->targets[k];
    if ((formula->flags & BP_FORMULA_ZERO) || !given.read(*formula)) continue;
    bp_value addends[kMaxResults] = {};
    run_formula(op, *formula, inputs, addends);
    for (int32_t j = 0; j < call.n_outs; ++j) {
      if (is_differentiable(op, static_cast<size_t>(j), call.outs[j]))
        tangents.add(static_cast<size_t>(j), addends[j], *call.outs[j].u.t);
      release_owned(addends[j], [](bp_tensor* t) { release(impl(t)); });
    }
  }
}

}  // namespace

void JvpLevel::handle(const Call& call) {
  bool wanted = false;
  for (int32_t i = 0; i < call.n_args; ++i) wanted = wanted || has_tangent(*this, call.args[i]);
  if (wanted && call.op.forward == Derivative::kDecompose) return call_decomposition(call);
  Unwrapped inner(*this, call);
  ResultTangents tangents;
  {
    BelowLevel below_level(*this);
    dispatch({call.op, inner.args, call.n_args, call.outs, call.n_outs, call.mask});
    if (wanted) refuse_lists(call, transform);
    try {
      if (wanted && has_differentiable_result(call)) run_formulas(*this, call, inner.args, tangents);
    } catch (...) {
      bp_value empty[kMaxResults] = {};
      release_outputs(call.outs, call.n_outs, empty);
      throw;
    }
  }
  for (int32_t j = 0; j < call.n_outs; ++j) {
    if (call.outs[j].tag != BP_TAG_TENSOR) continue;
    TensorImpl* wrapped = wrap(*this, impl(call.outs[j].u.t));
    wrapped->wrapper->tangent = impl(tangents.of[j].detach_handle());
    call.outs[j].u.t = wrapped;
  }
}

}  // namespace backplane::core

namespace backplane {

using namespace core;

JvpScope::JvpScope(const char* transform) : level_(std::make_unique<JvpLevel>(transform)) {}
JvpScope::~JvpScope() = default;

Tensor JvpScope::enter(const Tensor& primal, const Tensor& tangent) {
  CallGuard guard;
  level_->check_active();
  const char* who = level_->transform;
  if (tangent) {
    BP_CHECK(is_inexact(primal.dtype()), DTYPE, who, ": a primal of dtype ", kDtypeNames[primal.dtype()],
             " has no tangent; only floating and complex tensors have one: cast it, or leave its tangent out");
    BP_CHECK(tangent.dtype() == primal.dtype(), DTYPE, who, ": a tangent of dtype ", kDtypeNames[tangent.dtype()],
             " for a primal of dtype ", kDtypeNames[primal.dtype()], "; they must agree: cast it");
    BP_CHECK(same_shape(*tangent.get(), *primal.get()), SHAPE, who,
             ": a tangent does not have the shape of its primal");
  }
  retain(impl(primal));
  Tensor wrapped = Tensor::adopt(wrap(*level_, impl(primal)));
  if (tangent) {
    retain(impl(tangent));
    impl(wrapped)->wrapper->tangent = impl(tangent);
  }
  return wrapped;
}

JvpScope::Dual JvpScope::leave(const Tensor& result) {
  CallGuard guard;
  level_->check_innermost();
  TensorImpl* t = impl(result);
  const Wrapper* wrapper = wrapper_of(*level_, t);
  if (wrapper && t->view) refresh(t);
  Dual dual{wrapper ? Tensor::share(wrapper->inner) : result, {}};
  BelowLevel below_level(*level_);
  if (wrapper && wrapper->tangent)
    dual.tangent = Tensor::share(wrapper->tangent);
  else
    dual.tangent = filled(result.shape(), 0.0, result.dtype(), result.device());
  return dual;
}

ValuesAndTangents jvp(const Function& function, std::span<const Tensor> primals, std::span<const Tensor> tangents) {
  check_function(function, "jvp");
  BP_CHECK(primals.size() == tangents.size(), VALUE, "jvp: found ", primals.size(), " primals and ", tangents.size(),
           " tangents; expected one tangent per primal");
  JvpScope scope;
  std::vector<Tensor> entered;
  for (size_t i = 0; i < primals.size(); ++i) entered.push_back(scope.enter(primals[i], tangents[i]));
  ValuesAndTangents result;
  for (const Tensor& t : function(entered)) {
    JvpScope::Dual dual = scope.leave(t);
    result.values.push_back(std::move(dual.primal));
    result.tangents.push_back(std::move(dual.tangent));
  }
  return result;
}

}  // namespace backplane

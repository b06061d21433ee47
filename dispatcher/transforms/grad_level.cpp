#include "transforms/grad_level.hpp"

#include "core/device_call.hpp"
#include "core/epoch.hpp"
#include "transforms/tape.hpp"

namespace backplane::core {
namespace {

// The arguments as seen below a level.
struct Unwrapped {
  bp_value args[kMaxArgs];
  std::vector<std::vector<bp_tensor*>> lists;
  bool wanted = false;  // some argument has a history here

  Unwrapped(const Level& level, const Call& call) {
    auto below = [&](bp_tensor* t) {
      TensorImpl* inner = unwrap(level, impl(t));
      if (!inner) return t;
      wanted = wanted || wants_grad(impl(t));
      return static_cast<bp_tensor*>(inner);
    };
    for (int32_t i = 0; i < call.n_args; ++i) {
      args[i] = call.args[i];
      if (args[i].tag == BP_TAG_TENSOR) {
        args[i].u.t = below(args[i].u.t);
      } else if (args[i].tag == BP_TAG_TENSOR_LIST) {
        auto& list = lists.emplace_back(args[i].u.tensors, args[i].u.tensors + args[i].count);
        for (bp_tensor*& t : list)
          if (t) t = below(t);
        args[i].u.tensors = list.data();
      }
    }
  }
};

Tensor below(const Level& level, const Tensor& t) {
  TensorImpl* inner = unwrap(level, impl(t));
  return inner ? Tensor::share(inner) : t;
}

}  // namespace

void call_grad_level(Level& level, const Call& call) {
  for (int32_t i = 0; i < call.n_outs; ++i)
    BP_CHECK(!(call.outs[i].flags & BP_VALUE_GIVEN), NOT_IMPLEMENTED, call.op.record->name,
             ": writing into a tensor is refused inside ", level.transform, "; use the op that returns a new one");
  Unwrapped inner(level, call);
  if (inner.wanted && call.op.derivative == Derivative::kDecompose) return call_decomposition(call);
  {
    BelowLevel below_level(level);
    dispatch({call.op, inner.args, call.n_args, call.outs, call.n_outs, call.mask});
  }
  if (!inner.wanted) return;
  bp_value outs[kMaxResults];
  TensorImpl* results[kMaxResults];
  for (int32_t j = 0; j < call.n_outs; ++j) {
    outs[j] = call.outs[j];
    results[j] = nullptr;
    if (outs[j].tag != BP_TAG_TENSOR) continue;
    results[j] = wrap(level, impl(outs[j].u.t));
    call.outs[j].u.t = results[j];
  }
  record_node({call.op, inner.args, outs, call.args, results, nullptr, 0});
}

ValueAndGradients value_and_gradients(const Function& function, std::span<const Tensor> inputs) {
  CallGuard guard;
  LevelScope scope("grad", call_grad_level, nullptr);
  Level& level = scope.level();
  std::vector<Tensor> wrapped;
  for (const Tensor& input : inputs) {
    retain(impl(input));
    wrapped.push_back(Tensor::adopt(wrap(level, impl(input))));
    autograd_of(impl(wrapped.back())).requires_grad = true;
  }
  std::vector<Tensor> values = function(wrapped);
  BP_CHECK(!values.empty(), VALUE, "grad: the function returned nothing to differentiate");
  ValueAndGradients result;
  result.gradients.resize(inputs.size());
  TensorImpl* root = impl(values[0]);
  BelowLevel below_level(level);
  if (unwrap(level, root) && wants_grad(root)) {
    std::vector<TensorImpl*> handles;
    for (const Tensor& w : wrapped) handles.push_back(impl(w));
    TensorImpl* roots[] = {root};
    run_backward({roots, {}, handles, &result.gradients, false, true});
  }
  for (size_t i = 0; i < inputs.size(); ++i)
    if (!result.gradients[i]) result.gradients[i] = filled(inputs[i].shape(), 0.0, inputs[i].dtype(), inputs[i].device());
  for (const Tensor& v : values) result.values.push_back(below(level, v));
  return result;
}

}  // namespace backplane::core

// In-place changes of a level's tensors, as functional calls. A change of a view is written back into its base with the
// view's `put`, and so on up the chain; other views of a changed base take their value from it when they are next used.
#include "levels/inplace.hpp"

#include "call/dispatch.hpp"
#include "call/role_calls.hpp"
#include "call/run_formula.hpp"
#include "call/view_record.hpp"
#include "record/dtype_rules.hpp"

namespace backplane::core {

namespace {

// `target` gets the value of `source`, of its shape and dtype, as this level sees it: also its history and tangent.
void assign(Level& level, TensorImpl* target, TensorImpl* source) {
  Wrapper& to = *target->wrapper;
  TensorImpl *inner = source, *tangent = nullptr;
  bool batched = false;
  if (const Wrapper* from = wrapper_of(level, source)) {
    inner = from->inner;
    tangent = from->tangent;
    batched = from->batched;
  }
  retain(inner);
  if (tangent) retain(tangent);
  TensorImpl *old_inner = to.inner, *old_tangent = to.tangent;
  to.inner = inner;
  to.tangent = tangent;
  to.batched = batched;
  Node* old_node = target->node;
  if (source->node && source->wrapper) history_owner.retain(source->node);
  target->node = source->wrapper ? source->node : nullptr;
  target->node_output = source->node_output;
  if (old_node) history_owner.release(old_node);
  release(old_inner);
  if (old_tangent) release(old_tangent);
}

// The base with the view's value written into it.
Tensor put_back(const TensorImpl& view, const Tensor& piece) {
  ViewRecord& record = *view.view;
  const OpRecord& op = *record.op->record;
  const bp_formula* put = op.find_formula(BP_RULE_PUT);
  BP_CHECK(put && !(put->flags & BP_FORMULA_REFUSED), VALUE, op.name, ": its result cannot be written through inside ",
           view.wrapper->transform, put && put->text ? ": " : "", put && put->text ? put->text : "", "; copy it first");
  return run_put(*record.op, *put, record.args(), value(piece));
}

// The new values up the chain of views first, as all of them are made of the old ones; then each is given, from the
// base down.
void write(Level& level, TensorImpl* target, Tensor source) {
  std::vector<std::pair<TensorImpl*, Tensor>> chain{{target, std::move(source)}};
  for (TensorImpl* t = target; t->view; t = t->view->base)
    chain.emplace_back(t->view->base, put_back(*t, chain.back().second));
  inplace_changes.fetch_add(1, std::memory_order_release);
  for (size_t i = chain.size(); i-- > 0;) {
    auto& [tensor, value] = chain[i];
    if (tensor->view) tensor->view->base_stamp = tensor->view->base->wrapper->version;
    assign(level, tensor, impl(value));
    ++tensor->wrapper->version;
  }
}

// The result in the target's dtype; its shape must be the target's.
Tensor fitted(const Call& call, const TensorImpl& target, Tensor result) {
  const std::string_view name = call.op.record->name;
  BP_CHECK(same_shape(*result.get(), target), SHAPE, name,
           ": an in-place call cannot change the shape of its tensor: ", result.ndim(), " dimensions with ",
           element_count(*result.get()), " elements would be written into ", target.dl.ndim, " with ",
           element_count(target));
  if (result.dtype() == target.dtype) return result;
  BP_CHECK(dtype_kind(result.dtype()) <= dtype_kind(target.dtype), DTYPE, name, ": a result of dtype ",
           kDtypeNames[result.dtype()], " cannot be written into a tensor of dtype ", kDtypeNames[target.dtype],
           "; cast it first");
  return roles::cast(impl(result), target.dtype);
}

}  // namespace

namespace {

// May the op have given a view or a copy, and the level that takes every call says neither? The walk to the end of a
// chain is for those ops alone: chains are long.
bool is_unknown(const TensorImpl& view) {
  const ViewRecord& record = *view.view;
  const Level* every_call = thread_state.level ? thread_state.level->every_call : nullptr;
  if (record.op->flags & BP_OP_VIEW || !every_call || !wrapper_of(*every_call, &view)) return false;
  const TensorImpl* whole = record.base;
  while (whole->view) whole = whole->view->base;
  return !every_call->knows_strides(*whole);
}

void take_anew(TensorImpl* view, bool may_be_unknown) {
  ViewRecord& record = *view->view;
  if (record.base_stamp == record.base->wrapper->version) return;
  BP_CHECK(may_be_unknown || !is_unknown(*view), VALUE, record.op->record->name,
           ": its tensor was changed in place since, and inside ", view->wrapper->transform,
           " nothing says whether this is a view, which changes too, or a copy. Fix: call it after the change, or copy "
           "the tensor first");
  Tensor again = Tensor::adopt(call_one(*record.op, record.args(), static_cast<int32_t>(record.n_args)));
  Level* level = thread_state.level;
  while (level && level->serial != view->wrapper->serial) level = level->below;
  BP_CHECK(level, VALUE, record.op->record->name, ": a view belongs to a ", view->wrapper->transform,
           " that has ended; return it from the transformed function instead of keeping it");
  assign(*level, view, impl(again));
  ++view->wrapper->version;
  record.base_stamp = record.base->wrapper->version;
}

}  // namespace

void refresh(TensorImpl* view) {
  refresh_chain(view, [](TensorImpl* t) { take_anew(t, false); });
}

void take_view_anew(TensorImpl* view) {
  for (TensorImpl* t = view; t->view; t = t->view->base) t->view->base_stamp = ~uint64_t{0};
  inplace_changes.fetch_add(1, std::memory_order_release);
  refresh_chain(view, [](TensorImpl* t) { take_anew(t, true); });
}

void change_in_place(Level& level, const Call& call) {
  const std::string_view name = call.op.record->name;
  TensorImpl* target = call.n_outs == 1 ? impl(call.outs[0].u.t) : nullptr;
  const bool inplace =
      target && call.n_args > 0 && call.args[0].tag == BP_TAG_TENSOR && impl(call.args[0].u.t) == target;
  BP_CHECK(inplace || (target && &call.op == &role_op(Role::kCopy)), VALUE, name,
           ": writing into a given output (out) is refused inside ", level.transform,
           "; use the result that the op returns");
  BP_CHECK(
      wrapper_of(level, target), VALUE, name, ": a value of ", level.transform,
      " cannot be written into a tensor from outside of it; make the tensor inside (zeros, copy), or return the value");
  const TensorImpl* whole = target;
  while (whole->view) whole = whole->view->base;
  level.check_write(call, *whole);
  const bool strides_known = level.knows_strides(*whole);
  for (const TensorImpl* t = target; t->view; t = t->view->base)
    BP_CHECK(t->view->op->flags & BP_OP_VIEW || strides_known, VALUE, name, ": writing through the result of ",
             t->view->op->record->name, ", which may be a view or a copy, is refused inside ", level.transform,
             "; copy it first");
  bp_value out{};
  dispatch({call.op, call.args, call.n_args, &out, 1, call.mask});
  Tensor result = fitted(call, *target, Tensor::adopt(out.u.t));
  if (target->view) refresh(target);
  write(level, target, std::move(result));
}

}  // namespace backplane::core

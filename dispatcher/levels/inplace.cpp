// In-place changes of a level's tensors, as functional calls. A change of a view is written back into its base with the
// view's `put`, and so on up the chain; other views of a changed base take their value from it when they are next used.
// What a tensor was detached to is a view of it, too: through that the tensor gets another value under its history.
#include "levels/inplace.hpp"

#include <string_view>
#include <utility>

#include "backplane/autograd.hpp"
#include "backplane/transforms.hpp"
#include "call/dispatch.hpp"
#include "call/formulas/role_calls.hpp"
#include "call/formulas/run_formula.hpp"
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

// Does the level record now?
bool records(Level& level) {
  const bool* own = level.recording();
  return own ? *own : records_now();
}

void note_change(Wrapper& wrapper, bool recorded) {
  ++wrapper.version;
  if (recorded) wrapper.recorded = wrapper.version;
}

// The level of the thread's stack that the wrapper belongs to; nullptr: it has ended.
Level* level_of(const TensorImpl& tensor) {
  Level* level = thread_state.level;
  while (level && level->serial != tensor.wrapper->serial) level = level->below;
  return level;
}

// Where a tensor keeps the history that it has, though its value changes: everywhere, with its tangents, or where
// nothing is recorded now.
enum class Keep { kEverywhere, kUnrecorded };

bool is_kept(Keep keep, const TensorImpl& tensor, Level* level) {
  if (keep == Keep::kEverywhere) return true;
  if (!tensor.wrapper) return thread_state.grad_disabled;
  const bool* recording = level ? level->recording() : nullptr;
  return recording && !*recording;
}

// `tensor`, which nobody else has, gets the history of another of its shape.
void adopt_history(const Tensor& tensor, const TensorImpl& of) {
  uint32_t output = 0;
  if (Node* node = history_owner.edge(const_cast<TensorImpl*>(&of), output)) {
    impl(tensor)->node = node;
    impl(tensor)->node_output = output;
    if (!impl(tensor)->wrapper) impl(tensor)->set_keys(impl(tensor)->keys_seen() | kTapeKey);
  }
}

// `value` with the history of `target` (which may be empty), if that is kept.
Tensor keeping(const TensorImpl& target, const Tensor& value, Keep keep) {
  const TensorImpl* source = impl(value);
  Level* level = target.wrapper ? level_of(target) : nullptr;
  const bool here = is_kept(keep, target, level);
  if (!target.wrapper) {
    const bool has = requires_grad(Tensor::share(const_cast<TensorImpl*>(&target)));
    if (!here || !source->storage || (!has && !requires_grad(value))) return value;
    Tensor made = detach(value);
    adopt_history(made, target);
    return made;
  }
  if (!level) return value;
  const Wrapper* from = wrapper_of(*level, source);
  TensorImpl* inner = from ? from->inner : const_cast<TensorImpl*>(source);
  Tensor below = keeping(*target.wrapper->inner, Tensor::share(inner), keep);
  TensorImpl* const own_tangent = from ? from->tangent : nullptr;
  TensorImpl* const tangent = keep == Keep::kEverywhere ? target.wrapper->tangent : own_tangent;
  const bool has_histories = target.node || (from && source->node);
  if (below.get() == inner && tangent == own_tangent && !(here && has_histories)) return value;
  const bool batched = from && from->batched;
  BP_CHECK(
      batched == target.wrapper->batched, VALUE, level->transform,
      ": a tensor shared by all rows would get a value for each row, and lose its gradient, because the change is not "
      "recorded. Fix: make it one tensor per row first, or change it where changes are recorded");
  Tensor made = Tensor::adopt(wrap(*level, impl(below.detach_handle()), batched));
  if (here)
    adopt_history(made, target);
  else if (from)
    adopt_history(made, *source);
  if (tangent) retain(tangent);
  impl(made)->wrapper->tangent = tangent;
  return made;
}

bool is_differentiated(const TensorImpl& tensor) {
  TensorImpl* t = const_cast<TensorImpl*>(&tensor);
  if (differentiated_by(Tensor::share(t))) return true;
  while (t->wrapper) t = t->wrapper->inner;
  return requires_grad(Tensor::share(t));
}

// The base with the view's value written into it.
Tensor put_back(const TensorImpl& view, const Tensor& piece) {
  ViewRecord& record = *view.view;
  if (record.op->flags & kDetaches) {
    // A trace has no op that gives a tensor another value and keeps its derivatives.
    BP_CHECK(!thread_state.level || !thread_state.level->every_call, VALUE, record.op->record->name,
             ": writing through the result of detach, data or stop_gradient is refused inside ",
             thread_state.level->every_call->transform, ". Fix: change the tensor itself, under no_grad");
    return keeping(*record.base, piece, Keep::kEverywhere);
  }
  const OpRecord& op = *record.op->record;
  const Level* innermost = thread_state.level;
  BP_CHECK(!is_constant_view(*record.op) || !((innermost && innermost->every_call) || is_differentiated(*record.base) ||
                                              is_differentiated(*impl(piece))),
           VALUE, op.name, ": its result cannot be written through inside ", view.wrapper->transform,
           ", as it has no derivative. Fix: write into a copy");
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
  if (!records_now())
    for (auto& [tensor, value] : chain) value = keeping(*tensor, value, Keep::kUnrecorded);
  inplace_changes.fetch_add(1, std::memory_order_release);
  for (size_t i = chain.size(); i-- > 0;) {
    auto& [tensor, value] = chain[i];
    if (tensor->view) tensor->view->base_stamp = tensor->view->base->wrapper->version;
    assign(level, tensor, impl(value));
    note_change(*tensor->wrapper, records(level));
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
  if (record.op->flags & (BP_OP_VIEW | kDetaches) || !every_call || !wrapper_of(*every_call, &view)) return false;
  const TensorImpl* whole = record.base;
  while (whole->view) whole = whole->view->base;
  return !every_call->knows_strides(*whole);
}

// A view has its base's history also where it is looked at under no_grad, or in a function whose calls are noted and
// not recorded. An unrecorded view never has a history.
class WithRecording {
 public:
  explicit WithRecording(bool on) : before_(records_now()), captures_(std::exchange(thread_state.captures, nullptr)) {
    set_recording(on);
    suspend_notes(1);
  }
  ~WithRecording() {
    suspend_notes(-1);
    set_recording(before_);
    thread_state.captures = captures_;
  }
  WithRecording(const WithRecording&) = delete;

 private:
  static void suspend_notes(int by) noexcept {
    for (Level* level = thread_state.level; level; level = level->below) level->notes_suspended += by;
  }
  bool before_;
  Captures* captures_;
};

void refresh_one(TensorImpl* view, bool may_be_unknown) {
  ViewRecord& record = *view->view;
  if (record.base_stamp == record.base->wrapper->version) return;
  BP_CHECK(
      may_be_unknown || !is_unknown(*view), VALUE, record.op->record->name,
      ": its tensor was changed in place since, and inside ", view->wrapper->transform,
      " it is not known whether this is a view, which changes too, or a copy. Fix: call it after the change, or copy "
      "the tensor first");
  const bool changed_recorded = record.base_stamp < record.base->wrapper->recorded;
  record.unrecorded = record.unrecorded && !changed_recorded;
  const WithRecording recording(!record.unrecorded);
  Tensor again = Tensor::adopt(call_one(*record.op, record.args(), static_cast<int32_t>(record.n_args)));
  Level* level = level_of(*view);
  BP_CHECK(level, VALUE, record.op->record->name, ": a view belongs to a ", view->wrapper->transform,
           " that has ended; return it from the transformed function instead of keeping it");
  // A tensor that was detached from it since has a different history.
  if (record.op->flags & kDetaches) again = keeping(*view, again, Keep::kEverywhere);
  assign(*level, view, impl(again));
  note_change(*view->wrapper, changed_recorded);
  record.base_stamp = record.base->wrapper->version;
}

}  // namespace

void refresh(TensorImpl* view) {
  refresh_chain(view, [](TensorImpl* t) { refresh_one(t, false); });
}

void force_refresh(TensorImpl* view) {
  for (TensorImpl* t = view; t->view; t = t->view->base) t->view->base_stamp = ~uint64_t{0};
  inplace_changes.fetch_add(1, std::memory_order_release);
  refresh_chain(view, [](TensorImpl* t) { refresh_one(t, true); });
}

namespace {

// A trace has no op that gives a tensor another value and keeps its derivatives. There, a detached tensor that is
// written to no longer follows its source. The level decides whether that is an error.
void end_detached(TensorImpl* target) {
  for (TensorImpl* t = target; t->view; t = t->view->base) {
    if (!(t->view->op->flags & kDetaches)) continue;
    refresh(t);
    return release(end_view_record(std::exchange(t->view, nullptr)));
  }
}

// A view that was made under no_grad is a constant to its readers. A recorded write through it changes its base, so the
// view gets the base's history first.
void join_base(Level& level, TensorImpl* target) {
  if (!records(level) || !target->view || !target->view->unrecorded) return;
  for (TensorImpl* t = target; t->view && t->view->unrecorded; t = t->view->base) {
    t->view->unrecorded = false;
    t->view->base_stamp = ~uint64_t{0};
    t->view->fresh_at = 0;
  }
  refresh(target);
}

// A call that writes into what the caller of the transform holds too.
void write_below(Level& level, const Call& call, TensorImpl* target) {
  const Unwrapped below(level, call);
  bp_value out = call.outs[0];
  if (TensorImpl* inner = unwrap(level, target)) out.u.t = inner;
  BelowLevel scope(level);
  dispatch({call.op, below.args, call.n_args, &out, 1, call.mask});
}

// Is the call recorded, and does an argument have a history at this level?
bool is_recorded(Level& level, const Call& call) {
  bool any = false;
  each_tensor(call.args, call.n_args, [&](TensorImpl* t) {
    if (!wrapper_of(level, t)) return;
    if (t->view) refresh(t);
    any = any || t->node;
  });
  return any && records(level);
}

// `out` of a function that is written down: what the op returns is copied into the given tensors.
void write_outputs(Level& level, const Call& call) {
  const std::string_view name = call.op.record->name;
  BP_CHECK(&level == level.every_call || level.writes_through(), VALUE, name,
           ": writing into a given output (out) is refused inside ", level.transform,
           "; use the result that the op returns");
  bool differentiated = false;
  each_tensor(call.args, call.n_args, [&](TensorImpl* t) { differentiated = differentiated || is_differentiated(*t); });
  BP_CHECK(!differentiated || !records_now(), VALUE, name,
           ": writing into a given output (out) is refused while a derivative is recorded; use the result that the op "
           "returns");
  bp_value results[kMaxResults];
  for (int32_t i = 0; i < call.n_outs; ++i)
    results[i] = call.outs[i].flags & BP_VALUE_GIVEN ? bp_value{} : call.outs[i];
  dispatch({call.op, call.args, call.n_args, results, call.n_outs, call.mask});
  std::vector<std::pair<bp_value, Tensor>> writes;
  for (int32_t i = 0; i < call.n_outs; ++i) {
    if (call.outs[i].flags & BP_VALUE_GIVEN)
      writes.emplace_back(call.outs[i], Tensor::adopt(results[i].u.t));
    else
      call.outs[i] = results[i];
  }
  for (auto& [target, result] : writes) {
    result = fitted(call, *impl(target.u.t), std::move(result));
    roles::copy_into(tensor_value(impl(result)), target, call.mask);
  }
}

}  // namespace

namespace {
thread_local constinit const KeepsOlderTensors* keeps_older_tensors = nullptr;
}

KeepsOlderTensors::KeepsOlderTensors(const std::string& function) noexcept
    : outer_(std::exchange(keeps_older_tensors, this)), function_(function), older_(wrappers_made) {}
KeepsOlderTensors::~KeepsOlderTensors() { keeps_older_tensors = outer_; }

void KeepsOlderTensors::check(const Call& call, const TensorImpl& whole) {
  const KeepsOlderTensors* now = keeps_older_tensors;
  BP_CHECK(!now || whole.wrapper->number > now->older_, VALUE, call.op.record->name, ": ", now ? now->function_ : "",
           " writes into a tensor from outside while it is differentiated. Its rules give the derivatives of its "
           "results only. Fix: return the value, and write it outside of the function");
}

void change_in_place(Level& level, const Call& call) {
  const std::string_view name = call.op.record->name;
  TensorImpl* target = call.n_outs == 1 ? impl(call.outs[0].u.t) : nullptr;
  const bool inplace =
      target && call.n_args > 0 && call.args[0].tag == BP_TAG_TENSOR && impl(call.args[0].u.t) == target;
  if (!inplace && !(target && &call.op == &role_op(Role::kCopy))) return write_outputs(level, call);
  if (!wrapper_of(level, target) && level.writes_through() && !is_recorded(level, call))
    return write_below(level, call, target);
  BP_CHECK(wrapper_of(level, target), VALUE, name, ": a value of ", level.transform,
           " cannot be written into a tensor that ", level.transform,
           " does not follow: a tensor from outside, or one computed only from such tensors. Fix: write "
           "into a copy that is made inside, with copy(x) or x.clone(), or return the value");
  if (&level == level.every_call) end_detached(target);
  const TensorImpl* whole = target;
  while (whole->view) whole = whole->view->base;
  BP_CHECK(wrapper_of(level, whole), VALUE, name, ": writing through a view of a tensor from outside of ",
           level.transform, " is refused. Fix: copy that tensor inside, and return the new value");
  level.check_write(call, *whole);
  KeepsOlderTensors::check(call, *whole);
  if (whole->wrapper->shared) return write_below(level, call, target);
  const bool strides_known = level.knows_strides(*whole);
  for (const TensorImpl* t = target; t->view; t = t->view->base)
    BP_CHECK(t->view->op->flags & (BP_OP_VIEW | kDetaches) || strides_known, VALUE, name,
             ": writing through the result of ", t->view->op->record->name,
             ", which may be a view or a copy, is refused inside ", level.transform, "; copy it first");
  const InsideLevel inside(level);
  join_base(level, target);
  bp_value out{};
  dispatch({call.op, call.args, call.n_args, &out, 1, call.mask});
  Tensor result = fitted(call, *target, Tensor::adopt(out.u.t));
  if (target->view) refresh(target);
  write(level, target, std::move(result));
}

}  // namespace backplane::core

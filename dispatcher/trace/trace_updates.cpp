#include "trace/trace_updates.hpp"

#include <algorithm>

#include "backplane/attached.hpp"
#include "backplane/autograd.hpp"
#include "backplane/traced_tensors.hpp"
#include "call/dispatch.hpp"
#include "call/formulas/role_calls.hpp"
#include "graph/updates.hpp"
#include "levels/inplace.hpp"
#include "memory/devices/device.hpp"
#include "memory/tensors/shared_bytes.hpp"
#include "trace/trace_level.hpp"

// What a function leaves in its arguments and in tensors from outside is found when it has returned: those wrappers
// whose versions have grown.
namespace backplane::core {

using graph::ValueId;

// The stand-in for a tensor from outside, or for another that shows the same elements of the same memory, such as one
// that was detached from it; nullptr without one.
TensorImpl* TraceLevel::stand_in_for(const TensorImpl* tensor) const {
  if (stand_ins_.empty()) return nullptr;
  if (const auto known = stand_in_of_.find(tensor); known != stand_in_of_.end())
    return impl(stand_ins_[known->second].wrapper);
  if (!tensor->storage) return nullptr;
  const auto [first, last] = stand_ins_over_.equal_range(tensor->storage);
  for (auto place = first; place != last; ++place) {
    const StandIn& s = stand_ins_[place->second];
    const bp_tensor& of = *graph_->constants()[graph_->value(s.constant).index].tensor.get();
    const bool same = of.dtype == tensor->dtype && of.dl.byte_offset == tensor->dl.byte_offset &&
                      same_shape(of, *tensor) &&
                      std::equal(of.dl.strides, of.dl.strides + of.dl.ndim, tensor->dl.strides);
    if (same) return impl(s.wrapper);
  }
  return nullptr;
}

// Tensors of other levels are those levels' to change, and a body's are further arguments.
TensorImpl* TraceLevel::stand_in(TensorImpl* tensor) {
  if (lifted_ || tensor->wrapper) return tensor;
  if (TensorImpl* known = stand_in_for(tensor)) return known;
  const ValueId constant = value_of(tensor);
  const bp_tensor& like = *tensor;
  TensorImpl* t = traced(constant, device_of(like), like.dtype, like.dl.ndim, like.dl.shape, like.dl.strides);
  stand_in_of_.emplace(tensor, stand_ins_.size());
  if (tensor->storage) stand_ins_over_.emplace(tensor->storage, stand_ins_.size());
  stand_ins_.push_back({Tensor::adopt(t), constant});
  return t;
}

// Does the tensor, or one over the same memory, have a value that it only gets when the graph runs?
bool TraceLevel::is_over_changed(const TensorImpl& tensor) const {
  const auto has_version = [&](size_t place) { return impl(stand_ins_[place].wrapper)->wrapper->version != 0; };
  if (const auto known = stand_in_of_.find(&tensor); known != stand_in_of_.end() && has_version(known->second))
    return true;
  const auto [first, last] = stand_ins_over_.equal_range(tensor.storage);
  return tensor.storage && std::any_of(first, last, [&](const auto& place) { return has_version(place.second); });
}

std::vector<Tensor> TraceLevel::changed_outside() const {
  std::vector<Tensor> changed;
  for (const StandIn& s : stand_ins_)
    if (impl(s.wrapper)->wrapper->version != 0)
      changed.push_back(graph_->constants()[graph_->value(s.constant).index].tensor);
  return changed;
}

bool TraceLevel::has_changed(const Tensor& tensor) const {
  return wrapper_of(*this, impl(tensor)) && impl(tensor)->wrapper->version != 0;
}

bool TraceLevel::may_share_outside_memory(const TensorImpl& tensor) const {
  const TensorImpl* base = &tensor;
  while (base->view) base = base->view->base;
  const auto is_base = [base](const Tensor& t) { return impl(t) == base; };
  if (std::any_of(inputs_.begin(), inputs_.end(), is_base) ||
      std::any_of(stand_ins_.begin(), stand_ins_.end(), [&](const StandIn& s) { return is_base(s.wrapper); }))
    return true;
  return graph_->value(root_of(tensor.wrapper->inner->node_output)).kind != graph::Value::Kind::kResult;
}

void TraceLevel::note_read(TensorImpl& tensor, const char* who) {
  BP_CHECK(!is_over_changed(tensor), VALUE, who, ": the tensor was changed in place by a function that ", transform,
           " is tracing, so it has no value yet", line_of_program(),
           ". Fix: choose elementwise with where, branch with cond, or read the "
           "value outside of the traced function");
  const Tensor read = Tensor::share(&tensor);
  reads_.try_emplace(&tensor, TensorRead{read, version_of(read)});
  if (below && below->every_call) below->every_call->note_read(tensor, who);
}

std::vector<TensorRead> TraceLevel::reads() const {
  std::vector<TensorRead> all;
  for (const auto& [tensor, read] : reads_) all.push_back(read);
  return all;
}

// A view of another level's tensor, or of one that becomes an argument, is not a view of a traced one: nothing would
// carry the change to its base. Values of a tensor from outside that were saved for a derivative are stale, as if it
// had been changed.
void TraceLevel::check_write(const Call& call, const TensorImpl& target) {
  if (!wrapper_of(*this, &target)) return;
  const TensorImpl* inner = target.wrapper->inner;
  const bool is_as_made = target.wrapper->version == 0;  // what it was given since is its own
  const bool is_traced = inner->flags & BP_TENSOR_WRAPPER && !inner->wrapper;
  if (is_as_made && is_traced) {
    const ValueId of = alias_of(inner->node_output);
    const bool is_view =
        of != graph::kNone && (graph_->value(of).node == graph::kNone ||
                               graph_->node(graph_->value(inner->node_output).node).op->flags & BP_OP_VIEW);
    BP_CHECK(!is_view, VALUE, call.op.record->name, ": writing through a view of a tensor from outside of ", transform,
             " is refused. Fix: copy that tensor inside, and return the new value");
  }
  if (is_traced && is_detached(inner->node_output))
    detached_.push_back({Tensor::share(const_cast<TensorImpl*>(&target)), detached_from(inner->node_output)});
  for (Detached& d : detached_) {
    if (d.copy.get() == &target) d.unseen_write = call.op.record->name;
    // x.data = d, which is the second half of x.data += 1
    const bool is_source = is_traced && inner->node_output == d.source;
    each_tensor(call.args, call.n_args, [&](const TensorImpl* t) {
      if (is_source && d.copy.get() == t && t != &target) d.unseen_write = {};
    });
  }
  if (recording_) recorded_.insert(&target);
  // The tensor keeps the history that it has, which no value of the graph does.
  if (!recording_ && is_traced && graph_->value(inner->node_output).node != graph::kNone &&
      unrecorded_.count(inner->node_output) == 0)
    graph_->own_rules = graph::kUnrecordedChange;
  for (const auto& [outside, index] : stand_in_of_)
    if (stand_ins_[index].wrapper.get() == &target && outside->storage) ++outside->storage->version;
}

bool TraceLevel::is_detached(ValueId value) const {
  const graph::NodeId id = graph_->value(value).node;
  return id != graph::kNone && graph_->node(id).op->flags & kDetaches;
}

ValueId TraceLevel::detached_from(ValueId value) const {
  const graph::Argument& source = graph_->arguments(graph_->node(graph_->value(value).node))[0];
  return source.is_value() ? source.value() : graph::kNone;
}

// What the value is a view of, or may be; kNone: of nothing.
ValueId TraceLevel::alias_of(ValueId value) const {
  const graph::NodeId id = graph_->value(value).node;
  if (id == graph::kNone) return graph::kNone;
  const graph::Node& node = graph_->node(id);
  if (!(node.op->flags & (BP_OP_VIEW | BP_OP_MAYBE_VIEW))) return graph::kNone;
  const graph::Argument& viewed = graph_->arguments(node)[static_cast<size_t>(node.op->record->def.alias)];
  return viewed.is_value() ? viewed.value() : graph::kNone;
}

// The value at the end of its views.
ValueId TraceLevel::root_of(ValueId value) const {
  for (ValueId of = alias_of(value); of != graph::kNone; of = alias_of(of)) value = of;
  return value;
}

// The constant that the value is, or is a view of; kNone: none.
ValueId TraceLevel::constant_under(ValueId value) const {
  value = root_of(value);
  return graph_->value(value).kind == graph::Value::Kind::kConstant ? value : graph::kNone;
}

const Tensor& TraceLevel::constant(ValueId value) const {
  return graph_->constants()[graph_->value(value).index].tensor;
}

// Is it a tensor, or a view of one, that nobody holds but the graph and `results`, and whose memory is its own? It was
// made inside the function, which would make it anew at each call.
bool TraceLevel::is_own_constant(ValueId value, std::span<const Tensor> results) const {
  const ValueId under = constant_under(value);
  if (under == graph::kNone || lent_.contains(impl(constant(under)))) return false;
  const Tensor& own = constant(under);
  const auto given =
      std::count_if(results.begin(), results.end(), [&](const Tensor& t) { return t.get() == own.get(); });
  const bp_storage* storage = impl(own)->storage;
  return impl(own)->refs.load(std::memory_order_relaxed) == 1 + given &&
         (!storage || storage->refs.load(std::memory_order_relaxed) == 1);
}

// The same of a constant that others still hold, such as the recorder of a Python function. All tensors over its memory
// were made inside.
bool TraceLevel::is_made_inside(ValueId value) const {
  const ValueId under = made_inside_.empty() ? graph::kNone : constant_under(value);
  if (under == graph::kNone || !made_inside_.contains(impl(constant(under)))) return false;
  return has_own_memory(*impl(constant(under)));
}

bool TraceLevel::has_own_memory(const TensorImpl& tensor) const {
  const auto is_over = [&](const auto& made) { return impl(made.second)->storage == tensor.storage; };
  return !tensor.storage || tensor.storage->refs.load(std::memory_order_relaxed) ==
                                std::count_if(made_inside_.begin(), made_inside_.end(), is_over);
}

std::vector<Tensor> TraceLevel::made_inside() const {
  std::vector<Tensor> all;
  for (const auto& [of, tensor] : made_inside_)
    if (has_own_memory(*of)) all.push_back(tensor);
  return all;
}

// Who holds one of them after the trace may change it: the graph keeps a copy.
void TraceLevel::keep_own_copies() {
  for (size_t i = 0; i < graph_->constants().size(); ++i) {
    TensorImpl* t = impl(graph_->constants()[i].tensor);
    if (made_inside_.contains(t) && has_own_memory(*t)) graph_->set_constant(i, roles::copy(t, 0));
  }
}

// The same view of another tensor.
static Tensor view_of(ViewRecord& view, const Tensor& base) {
  std::vector<bp_value> args(view.args(), view.args() + view.n_args);
  args[static_cast<size_t>(view.op->record->def.alias)] = value(base);
  return Tensor::adopt(call_one(*view.op, args.data(), static_cast<int32_t>(args.size())));
}

// A view, or a view of one, taken of another tensor than the last base.
static Tensor views_of(const TensorImpl* t, const Tensor& base) {
  return t->view ? view_of(*t->view, views_of(t->view->base, base)) : base;
}

// A result that each run makes anew. Tensors over the memory of one share that of one copy, as in eager mode, where
// the sizes are numbers.
ValueId TraceLevel::copied(TensorImpl* t) {
  if (!graph_->symbols().empty()) return used_value(impl(roles::copy(t)));
  TensorImpl* whole = t;
  while (whole->view) whole = whole->view->base;
  whole = stand_in(whole);
  Tensor& copy = copies_[value_of(whole)];
  if (!copy) copy = roles::copy(whole);
  return used_value(impl(views_of(t, copy)));
}

std::vector<TraceLevel::Changed> TraceLevel::changes(std::span<const Tensor> results) const {
  std::vector<Changed> changed;
  const auto add = [&](const Tensor& t, ValueId target) {
    if (impl(t)->wrapper->version != 0) changed.push_back({impl(t), {target, recorded_.contains(impl(t))}});
  };
  for (size_t i = 0; i < inputs_.size(); ++i) add(inputs_[i], graph_->inputs()[i].value);
  // An update of a tensor over another library's memory changes that memory.
  for (const StandIn& s : stand_ins_) {
    const bool is_others = is_external(impl(constant(s.constant))->storage);
    const bool is_own = is_own_constant(s.constant, results) || is_made_inside(s.constant);
    if (is_others || !is_own) add(s.wrapper, s.constant);
  }
  return changed;
}

// The new value becomes one that a node computes for this tensor alone.
void TraceLevel::settle(std::vector<Changed>& changed) {
  for (size_t i = 0; i < changed.size(); ++i) {
    TensorImpl* t = changed[i].tensor;
    const ValueId value = value_of(t);
    const bool shared = graph_->value(value).node == graph::kNone || alias_of(value) != graph::kNone ||
                        std::any_of(changed.begin(), changed.begin() + static_cast<ptrdiff_t>(i),
                                    [&](const Changed& other) { return other.value == value; });
    if (shared) roles::copy_into(tensor_value(t), tensor_value(t), roles::kAllKeys);
    changed[i].value = shared ? value_of(t) : value;
  }
}

// Does the value share memory with a tensor that is changed, before or after?
bool TraceLevel::is_of(ValueId value, std::span<const Changed> changed) const {
  for (; value != graph::kNone; value = alias_of(value))
    for (const Changed& c : changed)
      if (value == c.value || value == c.update.target) return true;
  return false;
}

ValueId TraceLevel::output(const Tensor& result, std::span<const Changed> changed, std::span<const Tensor> results) {
  TensorImpl* t = impl(result);
  if (TensorImpl* known = stand_in_for(t)) t = known;
  if (t->view && wrapper_of(*this, t)) refresh(t);
  const TensorImpl* whole = t;
  while (whole->view) whole = whole->view->base;
  // A view through which its base was changed has a value of its own: as a result it is a view of the base again.
  if (t->view && wrapper_of(*this, whole) && whole->wrapper->version != 0) force_refresh(t);
  if (std::any_of(changed.begin(), changed.end(), [&](const Changed& c) { return c.tensor == whole; }))
    return value_of(t);
  const ValueId value = value_of(t);
  if (!lifted_ && (is_own_constant(value, results) || is_made_inside(value))) return copied(t);
  return is_of(value, changed) ? used_value(impl(roles::copy(t))) : used_value(t);
}

std::shared_ptr<graph::Graph> TraceLevel::finish(std::span<const Tensor> results) {
  check_innermost();
  for (const Detached& d : detached_)
    BP_CHECK(d.unseen_write.empty(), VALUE, d.unseen_write,
             ": writing through the result of detach, data or stop_gradient is refused inside ", transform,
             ", because it is a copy there. Fix: change the tensor itself, under no_grad");
  std::vector<Changed> changed = changes(results);
  settle(changed);
  std::unordered_map<const bp_tensor*, ValueId> known;  // one that is given twice is one value
  for (const Tensor& result : results) {
    const auto [place, is_new] = known.try_emplace(result.get(), graph::kNone);
    if (is_new) place->second = output(result, changed, results);
    graph_->outputs.push_back(place->second);
  }
  for (const Changed& c : changed) {
    graph_->outputs.push_back(c.value);
    graph_->updates.push_back(c.update);
  }
  trace_sites = outer_sites_;
  end();
  keep_own_copies();
  return graph_;
}

void check_no_updates(const graph::Graph& graph, std::string_view who) {
  if (graph.updates.empty()) return;
  detail::fail(BP_ERROR_NOT_IMPLEMENTED, who, ": its function changes ", name_of_target(graph, graph.updates[0]),
               " in place, but the caller would not see the change. Fix: copy it first, and return the new value");
}

}  // namespace backplane::core

namespace backplane {

Tensor attached(const Tensor& tensor) {
  using namespace core;
  TensorImpl* t = impl(tensor);
  if (!t->view) return tensor;
  ViewRecord& view = *t->view;
  const Tensor base = Tensor::share(view.base), attached_base = attached(base);
  if (view.op->flags & kDetaches) return attached_base;
  if (attached_base.get() == base.get()) return tensor;
  return view_of(view, attached_base);
}

bool may_share_outside_memory(const Tensor& tensor) {
  const core::TensorImpl* t = core::impl(tensor);
  for (core::Level* level = core::thread_state.level; t->wrapper && level; level = level->below)
    if (auto* trace = core::wrapper_of(*level, t) ? dynamic_cast<core::TraceLevel*>(level) : nullptr)
      return trace->may_share_outside_memory(*t);
  return !t->wrapper;
}

static core::TraceLevel* innermost_trace() {
  core::Level* level = core::thread_state.level;
  return level ? dynamic_cast<core::TraceLevel*>(level->every_call) : nullptr;
}

void note_new_tensor(bp_tensor& tensor) {
  const core::TensorImpl* t = core::impl(&tensor);
  if (t->wrapper || t->refs.load(std::memory_order_relaxed) > 1) return;
  if (core::TraceLevel* trace = innermost_trace()) trace->note_made_inside(*core::impl(&tensor));
}

std::vector<Tensor> noted_tensors() {
  const core::TraceLevel* trace = innermost_trace();
  return trace ? trace->made_inside() : std::vector<Tensor>{};
}

void note_lent_tensor(const Tensor& tensor) {
  if (core::TraceLevel* trace = innermost_trace()) trace->note_lent(*core::impl(tensor));
}

bool is_over_lent_memory(const bp_tensor& tensor) noexcept {
  return core::is_external(core::impl(const_cast<bp_tensor*>(&tensor))->storage);
}

}  // namespace backplane

#include "levels/level.hpp"

#include <algorithm>
#include <atomic>
#include <new>

#include "backplane/transforms.hpp"
#include "call/view_record.hpp"
#include "levels/inplace.hpp"
#include "levels/replaced_tensors.hpp"
#include "memory/devices/device.hpp"
#include "record/shape_rules.hpp"

namespace backplane::core {
namespace {

std::atomic<uint64_t> next_serial{1};

// While a level is active, ops without tensor arguments are intercepted through this thread's included keys.
void set_innermost(Level* level) {
  thread_state.level = level;
  thread_state.depth = level ? level->depth : 0;
  thread_state.included_keys &= ~(kCreationKey | kEveryCallKey);
  if (level) thread_state.included_keys |= level->every_call ? kCreationKey | kEveryCallKey : kCreationKey;
}

Level* find_level(uint64_t serial) {
  for (Level* l = thread_state.level; l; l = l->below)
    if (l->serial == serial) return l;
  return nullptr;
}

// The highest level among the wrappers of a call; nullptr where it has none.
Level* highest_level(const Call& call) {
  Level* highest = nullptr;
  auto consider = [&](TensorImpl* t) {
    if (!t->wrapper || (highest && t->wrapper->serial == highest->serial)) return;
    Level* level = find_level(t->wrapper->serial);
    if (!level)
      detail::fail(BP_ERROR_VALUE, call.op.record->name, ": an argument belongs to a ", t->wrapper->transform,
                   " that has ended or is not active here; return it from the transformed function instead of keeping "
                   "it, and give it to a custom op as an argument");
    if (!highest || level->depth > highest->depth) highest = level;
  };
  each_tensor(call.args, call.n_args, consider);
  for (int32_t i = 0; i < call.n_outs; ++i)
    if (call.outs[i].flags & BP_VALUE_GIVEN) consider(impl(call.outs[i].u.t));
  return highest;
}

// Did what may be a view or a copy give a copy? A level without strides of its own computed it below, where what ops
// make is row-major as it would be without the level. So the result there, a copy or a view, is the answer.
bool is_copy(const Level& level, const Call& call, const TensorImpl& base, const TensorImpl& result) {
  if (!(call.op.flags & BP_OP_MAYBE_VIEW)) return false;
  const TensorImpl* whole = &base;
  while (whole->view) whole = whole->view->base;
  // A tensor from outside of the level, as a function in a graph captures it, has the strides that it shows.
  const TensorImpl* base_below = unwrap(level, &base);
  if (base_below && !level.knows_strides(*whole)) {
    const TensorImpl* below = result.wrapper->inner;
    if (base_below->storage) return below->storage != base_below->storage;
    return base_below->wrapper && !below->view;
  }
  ShapeResult shape;
  infer_shape(*call.op.record, call.args, call.n_args, 0, shape);
  return !shape.is_view;
}

}  // namespace

Level::Level(const char* name, Takes takes) : Level(name, next_serial.fetch_add(1, std::memory_order_relaxed)) {
  if (takes == Takes::kItsOwn) return;
  every_call = this;
  set_innermost(this);
}

Level::Level(const char* name, uint64_t number)
    : below(thread_state.level),
      every_call(below ? below->every_call : nullptr),
      depth(below ? below->depth + 1 : 1),
      serial(number),
      transform(name),
      outer_records(records_now()) {
  check_stack(name);  // a transform may be taken of itself without end, and no op be called
  set_innermost(this);
}

Level::~Level() {
  if (active_) end();
}

bool records_now() noexcept {
  for (Level* level = thread_state.level; level; level = level->below)
    if (const bool* recording = level->recording()) return *recording;
  return !thread_state.grad_disabled;
}

void set_recording(bool on) noexcept {
  for (Level* level = thread_state.level; level; level = level->below)
    if (bool* recording = level->recording()) {
      *recording = on;
      on = on && level->outer_records;
    }
  thread_state.grad_disabled = !on;
  if (on)
    thread_state.excluded_keys &= ~kTapeKey;
  else
    thread_state.excluded_keys |= kTapeKey;
}

void Level::end() noexcept {
  if (thread_state.level == this)
    set_innermost(below);
  else
    for (Level* l = thread_state.level; l; l = l->below) {
      if (l->every_call == this) l->every_call = below ? below->every_call : nullptr;
      if (l->below == this) l->below = below;
    }
  active_ = false;
}

void Level::check_write(const Call&, const TensorImpl&) {}
bool Level::knows_strides(const TensorImpl&) const { return false; }

void Level::check_active() const {
  BP_CHECK(active_, VALUE, transform, ": its scope has ended; make a new one for every pass");
}

void Level::check_innermost() const {
  check_active();
  BP_CHECK(thread_state.level == this, VALUE, transform, ": its scope is left ",
           find_level(serial) ? "while an inner scope is still open" : "on another thread than it was made on",
           "; scopes end in the reverse order of their making, on their thread");
}

BelowLevel::BelowLevel(Level* innermost) : saved_(thread_state.level) { set_innermost(innermost); }

BelowLevel::~BelowLevel() { set_innermost(saved_); }

thread_local constinit uint64_t wrappers_made = 0;

TensorImpl* wrap(const Level& level, TensorImpl* inner, bool batched) {
  const int32_t skip = batched ? 1 : 0;
  TensorImpl* t = new_handle(device_of(*inner), inner->dtype, inner->dl.ndim - skip, inner->dl.shape + skip);
  t->flags |= BP_TENSOR_WRAPPER;
  t->set_keys(kLevelKey);
  t->wrapper = new (WrapperPool::take())
      Wrapper{level.serial, level.depth, 0, inner, nullptr, batched, false, 0, level.transform, ++wrappers_made};
  return t;
}

Unwrapped::Unwrapped(const Level& level, const Call& call) {
  auto below = [&](bp_tensor* t) -> bp_tensor* {
    TensorImpl* inner = unwrap(level, impl(t));
    if (!inner) return t;
    any = true;
    return inner;
  };
  for (int32_t i = 0; i < call.n_args; ++i) {
    args[i] = call.args[i];
    if (args[i].tag == BP_TAG_TENSOR) {
      args[i].u.t = below(args[i].u.t);
    } else if (args[i].tag == BP_TAG_TENSOR_LIST) {
      auto& list = lists_.emplace_back(args[i].u.tensors, args[i].u.tensors + args[i].count);
      for (bp_tensor*& t : list)
        if (t) t = below(t);
      args[i].u.tensors = list.data();
    }
  }
}

namespace {

// Is the result's value another when that argument's memory is changed?
bool follows_argument(const OpEntry& op) { return (op.flags & (BP_OP_VIEW | BP_OP_MAYBE_VIEW | kDetaches)) != 0; }

bool writes_outputs(const Call& call) {
  for (int32_t i = 0; i < call.n_outs; ++i)
    if (call.outs[i].flags & BP_VALUE_GIVEN) return true;
  return false;
}

// A call that writes or makes a view, at a level that takes every call, with stand-ins for tensors from outside.
class WithStandIns {
 public:
  WithStandIns(Level& level, const Call& call) {
    const auto place = [&](bp_value& v) {
      if (v.tag == BP_TAG_TENSOR && !impl(v.u.t)->wrapper) v.u.t = level.stand_in(impl(v.u.t));
    };
    std::copy_n(call.args, call.n_args, args);
    std::copy_n(call.outs, call.n_outs, outs);
    for (int32_t i = 0; i < call.n_outs; ++i) {
      if (!(outs[i].flags & BP_VALUE_GIVEN)) continue;
      place(outs[i]);
      for (int32_t k = 0; k < call.n_args; ++k)
        if (args[k].tag == BP_TAG_TENSOR && args[k].u.t == call.outs[i].u.t) args[k].u.t = outs[i].u.t;
    }
    if (!writes_outputs(call)) place(args[base_argument(call.op)]);
  }
  bp_value args[kMaxArgs], outs[kMaxResults];
};

void call_at(Level& level, const Call& call) {
  if (writes_outputs(call)) return change_in_place(level, call);
  each_tensor(call.args, call.n_args, [&](TensorImpl* t) {
    if (t->view && wrapper_of(level, t)) refresh(t);
  });
  level.handle(call);
  if (!follows_argument(call.op)) return;
  TensorImpl* base = impl(call.args[base_argument(call.op)].u.t);
  TensorImpl* view = impl(call.outs[0].u.t);
  if (base->wrapper && wrapper_of(level, view) && !is_copy(level, call, *base, *view))
    remember_view(call.op, call.args, call.n_args, base, view, !records_now());
}

void send(const Call& call) {
  Level* level = highest_level(call);
  Level* every_call = thread_state.level ? thread_state.level->every_call : nullptr;
  const bool writes = writes_outputs(call);
  // What an op creates is the innermost level's, whatever tensor it takes its form or its values from.
  if (!level || (call.op.flags & kCreates && !writes))
    level = every_call && !(call.op.flags & kCreates) ? every_call : thread_state.level;
  if (every_call && every_call->depth > level->depth) level = every_call;
  if (level != every_call || !(writes || follows_argument(call.op))) return call_at(*level, call);
  WithStandIns with(*level, call);
  call_at(*level, {call.op, with.args, call.n_args, with.outs, call.n_outs, call.mask});
  for (int32_t i = 0; i < call.n_outs; ++i)
    if (!(call.outs[i].flags & BP_VALUE_GIVEN)) call.outs[i] = with.outs[i];
}

}  // namespace

void call_level(const Call& call) {
  if (!ReplacedTensors::any()) [[likely]]
    return send(call);
  WithReplaced with(call);
  if (with.any()) return with.dispatch();  // what stands for a tensor may be of no level
  send(call);
}

namespace {
[[gnu::constructor]] void register_keys() {
  const auto handle = [](const Call& call, const KeySlot*) { call_level(call); };
  register_layer(kLevelKey, "levels", kLevelRank, handle);
  register_layer(kCreationKey, "creation", kLevelRank, handle);
  register_layer(kEveryCallKey, "every call", kLevelRank - 1, handle);
}
}  // namespace

}  // namespace backplane::core

namespace backplane {

void check_stack_left(const char* who) {
  core::cold();  // from when on the end of the stack is known
  core::check_stack(who);
}

std::vector<const char*> transforms_of(const Tensor& tensor) {
  std::vector<const char*> names;
  for (const core::TensorImpl* t = core::impl(tensor); t->wrapper; t = t->wrapper->inner)
    names.push_back(t->wrapper->transform);
  return names;
}

const char* differentiated_by(const Tensor& tensor) {
  for (core::TensorImpl* t = core::impl(tensor); t->wrapper; t = t->wrapper->inner) {
    if (t->view) core::refresh(t);
    if (t->node || t->wrapper->tangent) return t->wrapper->transform;
  }
  return nullptr;
}

bool transforms_active() noexcept { return core::thread_state.level != nullptr; }
uint32_t transform_depth() noexcept { return core::thread_state.depth; }

bool every_call_taken() noexcept { return core::thread_state.level && core::thread_state.level->every_call; }

bool recorded_outside() noexcept {
  const core::Level* level = core::thread_state.level;
  return !level || level->every_call != level || level->outer_records;
}

bool is_transformed(const Tensor& tensor) { return core::impl(tensor)->wrapper != nullptr; }

Tensor innermost_value(const Tensor& tensor) {
  core::TensorImpl* t = core::impl(tensor);
  for (; t->wrapper; t = t->wrapper->inner)
    if (t->view) core::refresh(t);
  return Tensor::share(t);
}

// A tensor of a trace, to be read.
[[noreturn]] static void fail_to_read(const core::Wrapper& wrapper, const char* who) {
  if (const core::Level* level = core::find_level(wrapper.serial))
    detail::fail(BP_ERROR_VALUE, who, ": the tensor belongs to a graph that ", wrapper.transform,
                 " is tracing, so it has no value yet", level->line_of_program(),
                 ". Fix: choose elementwise with where, branch with cond, loop with while_loop or scan, or read the "
                 "value outside of the traced function");
  detail::fail(BP_ERROR_VALUE, who, ": the tensor belongs to a graph that ", wrapper.transform,
               " traced: it was kept after the trace ended, and has no value. Fix: return it from the traced function, "
               "and keep the result of a call");
}

Tensor plain_value(const Tensor& tensor, const char* who) {
  core::TensorImpl* t = core::impl(tensor);
  while (t->wrapper) {
    if (t->view) core::refresh(t);
    BP_CHECK(!t->wrapper->batched, VALUE, who, ": the tensor differs from row to row of the batch of ",
             t->wrapper->transform,
             ", so it has no single value; return it from the function, or choose elementwise with where");
    const core::Wrapper& wrapper = *t->wrapper;
    t = wrapper.inner;
    if (!t->wrapper && (t->flags & BP_TENSOR_WRAPPER)) fail_to_read(wrapper, who);
  }
  if (core::Level* level = core::thread_state.level; level && level->every_call) level->every_call->note_read(*t, who);
  return Tensor::share(t);
}

Tensor value_beside(const Tensor& tensor, const Tensor& other, const char* who) {
  const core::Level* level = core::thread_state.level;
  const core::Wrapper* beside = core::impl(other)->wrapper;
  const uint32_t depth =
      std::max(level && level->every_call ? level->every_call->depth : 0u, beside ? beside->depth : 0u);
  core::TensorImpl* t = core::impl(tensor);
  while (t->wrapper && t->wrapper->depth > depth) {
    if (t->view) core::refresh(t);
    BP_CHECK(!t->wrapper->batched, VALUE, who, ": the tensor differs from row to row of the batch of ",
             t->wrapper->transform, ", so it has no single value");
    t = t->wrapper->inner;
  }
  return Tensor::share(t);
}

}  // namespace backplane

#include "transforms/level.hpp"

#include <atomic>
#include <new>

#include "core/device_call.hpp"
#include "tensor/pool.hpp"

namespace backplane::core {
namespace {

std::atomic<uint64_t> next_serial{1};
using WrapperPool = Pool<sizeof(Wrapper)>;

// Levels that take every call while they are active are found through this thread's included keys.
void refresh_included_keys() {
  if (everything_active())
    thread_state.included_keys |= kLevelKey;
  else
    thread_state.included_keys &= ~kLevelKey;
}

Level* find_level(uint64_t serial) {
  for (Level* l = thread_state.level; l; l = l->below)
    if (l->serial == serial) return l;
  return nullptr;
}

}  // namespace

void destroy(Wrapper* wrapper) noexcept {
  release(wrapper->inner);
  WrapperPool::give(wrapper);
}

LevelScope::LevelScope(const char* transform, Level::Handler handle, void* context, bool everything) {
  level_.below = thread_state.level;
  level_.depth = level_.below ? level_.below->depth + 1 : 1;
  level_.serial = next_serial.fetch_add(1, std::memory_order_relaxed);
  level_.everything = everything;
  level_.transform = transform;
  level_.handle = handle;
  level_.context = context;
  thread_state.level = &level_;
  refresh_included_keys();
}

LevelScope::~LevelScope() {
  thread_state.level = level_.below;
  refresh_included_keys();
}

BelowLevel::BelowLevel(const Level& level) : saved_(thread_state.level) {
  thread_state.level = level.below;
  refresh_included_keys();
}

BelowLevel::~BelowLevel() {
  thread_state.level = saved_;
  refresh_included_keys();
}

TensorImpl* wrap(const Level& level, TensorImpl* inner, int32_t batch_axis) {
  int64_t sizes[kMaxRank];
  int32_t ndim = 0;
  for (int32_t i = 0; i < inner->dl.ndim; ++i)
    if (i != batch_axis) sizes[ndim++] = inner->dl.shape[i];
  TensorImpl* t = new_handle(device_of(*inner), inner->dtype, ndim, sizes);
  t->flags |= BP_TENSOR_WRAPPER;
  t->keys = kLevelKey;
  t->wrapper = new (WrapperPool::take()) Wrapper{level.serial, level.depth, inner, batch_axis};
  return t;
}

void call_level(const Call& call) {
  Level* highest = nullptr;
  for (Level* l = thread_state.level; l; l = l->below)
    if (l->everything) {
      highest = l;
      break;
    }
  auto consider = [&](TensorImpl* t) {
    if (!t->wrapper) return;
    Level* level = find_level(t->wrapper->serial);
    if (!level)
      detail::fail(BP_ERROR_VALUE, call.op.record->name,
                   ": an argument belongs to a transform that has ended or is not active here; return it from the "
                   "transformed function instead of keeping it");
    if (!highest || level->depth > highest->depth) highest = level;
  };
  each_tensor(call.args, call.n_args, consider);
  for (int32_t i = 0; i < call.n_outs; ++i)
    if (call.outs[i].flags & BP_VALUE_GIVEN) consider(impl(call.outs[i].u.t));
  BP_CHECK(highest, INTERNAL, call.op.record->name, ": no level takes the call");
  highest->handle(*highest, call);
}

}  // namespace backplane::core

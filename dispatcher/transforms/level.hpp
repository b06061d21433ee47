// Levels: the active transforms of a thread, innermost last, and the wrapper tensors that they make.
//
// A level handles the calls that concern it: those with a wrapper of its own among the arguments, or all while it is
// active (`everything`). Its handler unwraps its own wrappers only and calls the op again below. Tensors of other levels
// are constants to it. Levels live on the stack of the thread that pushed them.
#pragma once

#include "core/dispatch.hpp"

namespace backplane::core {

struct Level {
  using Handler = void (*)(Level& level, const Call& call);
  Level* below = nullptr;
  uint32_t depth = 0;   // 1 for the outermost
  uint64_t serial = 0;  // never reused: a wrapper whose serial is on no stack has escaped
  bool everything = false;
  const char* transform = "";  // "grad", "vmap": for errors
  Handler handle = nullptr;
  void* context = nullptr;
};

struct Wrapper {
  uint64_t serial;
  uint32_t depth;
  TensorImpl* inner;   // owned
  int32_t batch_axis;  // of inner; -1 for levels that do not batch
};
void destroy(Wrapper* wrapper) noexcept;

// Pushes a level for its lifetime.
class LevelScope {
 public:
  LevelScope(const char* transform, Level::Handler handle, void* context, bool everything = false);
  ~LevelScope();
  LevelScope(const LevelScope&) = delete;
  Level& level() { return level_; }

 private:
  Level level_;
};

// Runs what is below a level: the thread's stack ends under it for a scope.
class BelowLevel {
 public:
  explicit BelowLevel(const Level& level);
  ~BelowLevel();
  BelowLevel(const BelowLevel&) = delete;

 private:
  Level* saved_;
};

// A wrapper of `level` around `inner`, whose reference it takes over. With a batch axis, its shape lacks that axis.
TensorImpl* wrap(const Level& level, TensorImpl* inner, int32_t batch_axis = -1);
// The inner tensor if `tensor` is a wrapper of exactly this level, else nullptr.
inline TensorImpl* unwrap(const Level& level, const TensorImpl* tensor) {
  return tensor->wrapper && tensor->wrapper->serial == level.serial ? tensor->wrapper->inner : nullptr;
}

// Sends a call to the highest level that it concerns.
void call_level(const Call& call);
// Does an active level take part in this call? (kLevelKey is set for wrappers; `everything` levels have no argument.)
inline bool everything_active() {
  for (const Level* l = thread_state.level; l; l = l->below)
    if (l->everything) return true;
  return false;
}

}  // namespace backplane::core

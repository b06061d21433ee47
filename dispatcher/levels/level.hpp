// Levels: the active transforms of a thread, innermost last, and the wrapper tensors that they make.
//
// A level handles the calls that concern it: those with a wrapper of its own among the arguments, and those that make a
// tensor out of nothing (creation, random numbers) while it is the innermost. A level that takes every call handles
// also what concerns no level above it. Its `handle` unwraps its own wrappers only and calls the op again below.
// Tensors of other levels are constants to it. Levels live on the stack of the thread that pushed them.
//
// An in-place change never reaches a level as such: call_level turns it into the functional op, writes the piece back
// through the chain of views with their `put`, and gives the wrapper its new value (inplace.cpp). So a level sees
// values that never change.
#pragma once

#include <span>
#include <vector>

#include "backplane/graph_function.hpp"
#include "call/dispatch.hpp"
#include "memory/tensors/history.hpp"

namespace backplane::core {

class Level {
 public:
  enum class Takes : uint8_t { kItsOwn, kEveryCall };
  explicit Level(const char* transform, Takes takes = Takes::kItsOwn);  // becomes the thread's innermost
  // The same level again, which is not on the stack now: tensors that it made belong to this one.
  Level(const char* transform, uint64_t serial);
  virtual ~Level();  // ends it, where `end` has not
  Level(const Level&) = delete;
  Level& operator=(const Level&) = delete;

  // A call without given out slots that concerns this level. The thread's stack is as the caller left it: the handler
  // calls on under a BelowLevel.
  virtual void handle(const Call& call) = 0;
  // The call of an op that takes a function, which every level handles (graph_call.hpp).
  virtual std::vector<Tensor> call_graph(const OpEntry& op, GraphFunction& function, std::span<const Tensor> args) = 0;

  // Around a function that runs as a whole, and not as a transform's: what it writes into tensors from outside reaches
  // them, where no derivative is lost.
  virtual bool writes_through() const { return false; }
  // Throws if an in-place change of this wrapper, which is not a view of another, would be lost.
  virtual void check_write(const Call& call, const TensorImpl& target);
  // Of a level that takes every call: the wrapper that stands for a tensor from outside, as long as it is active, in
  // calls that write into it or make views of it; or the tensor itself.
  virtual TensorImpl* stand_in(TensorImpl* tensor) { return tensor; }
  // Hears of a tensor without wrapper whose values are read, and throws where it has, by what the level has seen,
  // others than its memory holds.
  virtual void note_read(TensorImpl&, const char* /*who*/) {}

  // From now on: tensors from outside that require a gradient, and that are used while calls are recorded, are
  // appended.
  virtual void note_differentiable(std::vector<Tensor>* /*noted*/) {}

  // For errors, where the level knows the user's program: " (FILE:LINE in FUNCTION)", the line that runs now.
  virtual std::string line_of_program() const { return {}; }

  // Does this wrapper, which is not a view, have the strides that the tensor would have without the level, and do its
  // views? Then it is known whether such a result is a view or a copy.
  virtual bool knows_strides(const TensorImpl& whole) const;

  // Whether calls are recorded, of a level that has such a switch: no_grad acts on all that are active, and on the
  // tape.
  virtual bool* recording() { return nullptr; }

  // Removes the level from the thread's stack, wherever it stands there.
  void end() noexcept;
  // Throws where the level has ended, or another is inside it, whose tensors would count as constants here.
  void check_innermost() const;
  void check_active() const;

  Level* below;
  Level* every_call;         // the innermost from here down that takes every call, or nullptr
  uint32_t depth;            // 1 for the outermost
  uint64_t serial;           // never reused: a wrapper whose serial is on no stack has escaped
  const char* transform;     // "grad", "vmap": for errors
  const bool outer_records;  // what is outside of it, when it begins
  int notes_suspended = 0;   // where above 0, calls are recorded also in a function whose calls are noted alone

 private:
  bool active_ = true;
};

// Are calls recorded, by the innermost level that can or by the tape?
bool records_now() noexcept;
// Switches that on or off. A level that began inside no_grad records, even if the levels outside do not.
void set_recording(bool on) noexcept;

// What a transform is taken of: an empty std::function is refused.
template <class Callable>
void check_function(const Callable& function, const char* transform) {
  BP_CHECK(function, VALUE, transform, ": the function is empty; expected one from tensors to tensors");
}

// Runs calls below a level: for a scope, the thread's stack ends under the level.
class BelowLevel {
 public:
  explicit BelowLevel(const Level& level) : BelowLevel(level.below) {}
  ~BelowLevel();
  BelowLevel(const BelowLevel&) = delete;

 protected:
  explicit BelowLevel(Level* innermost);

 private:
  Level* saved_;
};
// Until the end of this scope the thread is inside `level`, and not inside those above it, which none of the tensors at
// hand belongs to: what an op creates is then not theirs.
class InsideLevel : BelowLevel {
 public:
  explicit InsideLevel(Level& level) : BelowLevel(&level) {}
};

// How many wrappers this thread has made.
extern thread_local constinit uint64_t wrappers_made;
// A wrapper of `level` around `inner`, whose reference it takes over. Where `batched`, its shape lacks inner's axis 0.
TensorImpl* wrap(const Level& level, TensorImpl* inner, bool batched = false);
// The wrapper's record if `tensor` is one of exactly this level, else nullptr.
inline Wrapper* wrapper_of(const Level& level, const TensorImpl* tensor) {
  return tensor->wrapper && tensor->wrapper->serial == level.serial ? tensor->wrapper : nullptr;
}
// The inner tensor if `tensor` is a wrapper of exactly this level, else nullptr.
inline TensorImpl* unwrap(const Level& level, const TensorImpl* tensor) {
  Wrapper* wrapper = wrapper_of(level, tensor);
  return wrapper ? wrapper->inner : nullptr;
}

// A call's arguments as seen below a level: inner tensors replace the level's wrappers. Borrows from the call.
class Unwrapped {
 public:
  Unwrapped(const Level& level, const Call& call);
  bp_value args[kMaxArgs];
  bool any = false;  // some argument is a wrapper of this level

 private:
  std::vector<std::vector<bp_tensor*>> lists_;
};

// Sends a call to the highest level that it concerns.
void call_level(const Call& call);

}  // namespace backplane::core

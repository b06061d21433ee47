// Which random numbers a function took, so that running it again takes the same.
//
// Scopes stand on the stack of one thread, nested; `reserve_random` (backplane/graph_function.hpp) asks the innermost.
// A recording scope notes what the scopes around it, or the generator, give.
#pragma once

#include <vector>

#include "backplane/abi/value.h"

namespace backplane::core {

struct Reservation {
  bp_generator_state state;
  uint64_t count;
};
using RandomLog = std::vector<Reservation>;

class RandomScope {
 public:
  RandomScope(const RandomScope&) = delete;

 protected:
  RandomScope();
  ~RandomScope();

 private:
  friend bool is_recomputing();
  friend bp_generator_state derived_generator(const bp_generator_state& from, uint64_t stream);
  friend bp_generator_state reserve_through(RandomScope* scope, bp_generator_state& generator, uint64_t count);
  virtual bp_generator_state reserve(RandomScope* outer, bp_generator_state& generator, uint64_t count) = 0;
  // `state` was derived from what this or another scope gave.
  virtual void note_derived(const bp_generator_state&, uint64_t, const bp_generator_state&) {}
  virtual bool replays() const { return false; }
  RandomScope* outer_;
};

// A sequence of its own for `stream`, which no other stream shares but by chance.
bp_generator_state derived_generator(const bp_generator_state& from, uint64_t stream);

// Does this thread run a function again for its backward pass?
bool is_recomputing();

class RecordRandom final : public RandomScope {
 public:
  RandomLog take() { return std::move(log_); }

 private:
  bp_generator_state reserve(RandomScope* outer, bp_generator_state& generator, uint64_t count) override;
  RandomLog log_;
};

class ReplayRandom final : public RandomScope {
 public:
  // `name`: of the function, for messages. The log must outlive the scope.
  ReplayRandom(const RandomLog& log, const char* name) : log_(log), name_(name) {}

 private:
  bp_generator_state reserve(RandomScope* outer, bp_generator_state& generator, uint64_t count) override;
  bool replays() const override { return true; }
  const RandomLog& log_;
  const char* name_;
  size_t next_ = 0;
};

}  // namespace backplane::core

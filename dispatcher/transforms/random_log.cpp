#include "transforms/random_log.hpp"

#include "backplane/graph_function.hpp"

namespace backplane::core {

namespace {
thread_local constinit RandomScope* innermost = nullptr;
}

bp_generator_state reserve_through(RandomScope* scope, bp_generator_state& generator, uint64_t count) {
  if (scope) return scope->reserve(scope->outer_, generator, count);
  const bp_generator_state reserved = generator;
  generator.counter += count;
  return reserved;
}

RandomScope::RandomScope() : outer_(innermost) { innermost = this; }
RandomScope::~RandomScope() { innermost = outer_; }

bp_generator_state RecordRandom::reserve(RandomScope* outer, bp_generator_state& generator, uint64_t count) {
  const bp_generator_state reserved = reserve_through(outer, generator, count);
  log_.push_back({reserved, count});
  return reserved;
}

bp_generator_state ReplayRandom::reserve(RandomScope*, bp_generator_state&, uint64_t count) {
  BP_CHECK(next_ < log_.size() && log_[next_].count == count, VALUE, name_,
           ": running it again for the backward pass takes other random numbers than the first run did (reservation ",
           next_ + 1, " of ", log_.size(), "); it must do the same each time");
  return log_[next_++].state;
}

}  // namespace backplane::core

namespace backplane {

bp_generator_state reserve_random(bp_generator_state& generator, uint64_t count) {
  return core::reserve_through(core::innermost, generator, count);
}

}  // namespace backplane

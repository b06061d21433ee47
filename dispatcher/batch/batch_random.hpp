// Random numbers inside a batch: generators derived from the caller's (key, counter), so that every row has numbers of
// its own, the same at every run, which no later draw of the caller's generator repeats.
#pragma once

#include "batch/batched_call.hpp"

namespace backplane::core {

// By the level's policy. Not yet below the level. True: the results have a row each; false: one value for all rows.
bool run_random(BatchedCall& call);

// For the time of a row's call: its generators, where the policy wants them to differ.
class RowGenerator {
 public:
  RowGenerator(const BatchedCall& call, int64_t row, bp_value* args);

 private:
  bp_generator_state states_[4];
};

}  // namespace backplane::core

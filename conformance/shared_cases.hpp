// The cases that the threads of a run try now, in memory that the run's process shares with the one that watches it.
//
// The run's process writes, the watching one reads. Without `share`, as under a debugger, nothing is written.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "outcome.hpp"

namespace backplane::conformance::shared_cases {

// Before the fork; a second time for the next process: no case is tried.
void share();

// ---- in the run's process ----

// The run is over, and what follows may end the process.
void set_over();
// The calling thread tries this case from now on.
void begin(const Outcome& outcome);
// The calling thread tries `before` again, or nothing.
void end(const std::optional<Outcome>& before);
// A call that the kit waited for has returned, or the next one begins. Any thread; of a thread without a case, it
// counts for all cases.
void step();

// ---- in the watching process ----

bool is_over();
// "in or after bp::add, check "values", ..."
std::string latest_text();

// What does not go on. One object per process that is watched.
class Watch {
 public:
  // `seconds` have passed since the last look. The case without a step for the longest time, and how long that is. An
  // outcome without an op: no case is tried, and nothing happens between cases.
  std::pair<Outcome, double> look(double seconds);

 private:
  struct Seen {
    uint64_t steps = 0;
    double quiet = 0;
  };
  std::vector<Seen> seen_;
  Seen between_;
};

}  // namespace backplane::conformance::shared_cases

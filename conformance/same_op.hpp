// A part of mode stress: many calls of one op at a time. See same_op.cpp.
#pragma once

#include "subject.hpp"

namespace backplane::conformance {

// For devices without streams, whose kernels run on the threads that call.
void run_same_op(const Subject& subject, const std::vector<Entry>& entries, const Progress& progress,
                 std::vector<Outcome>& outcomes);

}  // namespace backplane::conformance

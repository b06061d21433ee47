// Running an op's decomposition.
#pragma once

#include "call/dispatch.hpp"

namespace backplane::core {

// Evaluates the DECOMPOSE formula; its calls see call.mask.
void call_decomposition(const Call& call);
// The same, without asking the op's shape rule should this fail.
void decompose_checked(const Call& call);

}  // namespace backplane::core

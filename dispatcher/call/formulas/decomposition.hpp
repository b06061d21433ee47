// Running an op's decomposition.
#pragma once

#include "call/dispatch.hpp"

namespace backplane::core {

// Evaluates the DECOMPOSE formula; its calls see call.mask.
void call_decomposition(const Call& call);
// The same, without asking the op's shape rule should this fail.
void decompose_checked(const Call& call);
// Does a result of the call, of the number `own`, lie in the memory of an output that was given for another result?
bool lies_in_another_output(const Call& call, const TensorImpl& result, int32_t own);

}  // namespace backplane::core

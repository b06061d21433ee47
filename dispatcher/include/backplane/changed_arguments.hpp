// Which arguments the in-place form of an op changes.
#pragma once

#include <vector>

#include "backplane/op.hpp"

namespace backplane {

// Per result, the index of the argument that the in-place form gives this result to. For an op with one result this is
// the first argument; for an op with several, the argument of the result's name. Empty if the op has no in-place form.
BACKPLANE_API std::vector<int32_t> changed_arguments(OpHandle op);

}  // namespace backplane

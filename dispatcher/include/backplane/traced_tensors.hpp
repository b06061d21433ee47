// Whose the tensors are that a function has while it is traced: made by it, or there before.
#pragma once

#include <vector>

#include "backplane/tensor.hpp"

namespace backplane {

// Is the tensor an argument of the function that a TraceScope of this thread traces, a tensor from outside, or a view
// of one of these (for ops such as reshape: may it be)? Tensors of no trace are from outside. Nothing is read.
BACKPLANE_API bool may_share_outside_memory(const Tensor& tensor);

// If the caller holds the only reference, and the trace did not make the tensor, the function that this thread traces
// has made it. Each run of the graph then makes it anew, with the function's changes.
BACKPLANE_API void note_new_tensor(bp_tensor& tensor);
// Such a tensor is over memory that was there before: it is no longer one that the function made.
BACKPLANE_API void note_lent_tensor(const Tensor& tensor);
// Those that were noted for this thread's innermost trace and share memory with no others.
BACKPLANE_API std::vector<Tensor> noted_tensors();

// Is it over memory that a caller lent, as a NumPy array's?
BACKPLANE_API bool is_over_lent_memory(const bp_tensor& tensor) noexcept;

}  // namespace backplane

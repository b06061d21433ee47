// Whose the tensors are that a function has while it is traced: made by it, or there before.
#pragma once

#include <vector>

#include "backplane/tensor.hpp"

namespace backplane {

// Is the tensor an argument of the function that a TraceScope of this thread traces, a tensor from outside, or a view
// of one of these (for ops such as reshape: may it be)? Tensors of no trace are from outside. Nothing is read.
BACKPLANE_API bool may_share_outside_memory(const Tensor& tensor);

// For a caller who holds the only reference: the function that this thread traces has made the tensor, if it is none of
// the trace. What the function changes in it and returns of it is then made anew at each run of the graph.
BACKPLANE_API void note_new_tensor(bp_tensor& tensor);
// Such a tensor is over memory that was there before: it is no longer one that the function made.
BACKPLANE_API void note_lent_tensor(const Tensor& tensor);
// Those that were noted for this thread's innermost trace and share memory with no others.
BACKPLANE_API std::vector<Tensor> noted_tensors();

// Does somebody else hold the tensor than the caller, who has one reference?
BACKPLANE_API bool has_other_holders(const bp_tensor& tensor) noexcept;
// Is it over memory that a caller lent, as a NumPy array's?
BACKPLANE_API bool is_over_lent_memory(const bp_tensor& tensor) noexcept;

}  // namespace backplane

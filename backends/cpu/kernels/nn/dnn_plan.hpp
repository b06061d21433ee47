// One convolution compiled by oneDNN, and the reorders between our layout (channels before pixels) and its own.
//
// A plan is for one thread: the threads are the host's. It is made once per shape and thread, and any thread may run
// it, several at a time.
#pragma once

#include <dnnl.hpp>
#include <memory>

#include "kernels/nn/convolution.hpp"
#include "runtime/dnn.hpp"

namespace backplane::cpu {

// What a plan computes: `c`'s images, groups, channels and filters are those of one piece of `whole`, in whose memory
// its operands lie.
struct Problem {
  Pass pass;
  Convolution c, whole;
  bool winograd;
};

// One operand: as it lies in our memory, and as the compiled kernel wants it.
struct Operand {
  int argument;  // DNNL_ARG_…
  dnnl::memory::dims shape;
  dnnl::memory::desc plain, wanted;
  dnnl::primitive reorder;  // into the wanted layout, of the result out of it; where the two differ
  bool direct() const { return plain == wanted; }
};

struct Plan {
  dnnl::primitive convolution;
  Operand operands[3];  // x, w, y
  dnnl::memory::desc scratchpad;
};

// The plan from this thread's cache, made where it is not there; NULL where oneDNN has no compiled kernel.
std::shared_ptr<const Plan> plan_of(const Problem& problem);

}  // namespace backplane::cpu

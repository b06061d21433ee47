// What every use of oneDNN shares: its engine, and what its calls stand in. Any thread.
#pragma once

#include <omp.h>

#include <dnnl.hpp>

#include "runtime/library_call.hpp"

namespace backplane::cpu {

inline const dnnl::engine& dnn_engine() {
  static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

// Stands around calls of oneDNN, and may stand around another one: a LibraryCall. While it lives, loops in OpenMP run
// on the calling thread alone; and signals wait, for oneDNN 2.6's products, which some convolutions run too, keep
// values below the stack's red zone, where a handler's frame overwrites them.
class DnnCall {
 public:
  DnnCall();
  ~DnnCall();
  DnnCall(const DnnCall&) = delete;
  DnnCall& operator=(const DnnCall&) = delete;

 private:
  LibraryCall call_;
  int threads_before_;
};

}  // namespace backplane::cpu

// What every use of oneDNN shares: its engine, and what its calls stand in. Any thread.
#pragma once

#include <omp.h>

#include <dnnl.hpp>

namespace backplane::cpu {

inline const dnnl::engine& dnn_engine() {
  static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

// Stands around calls of oneDNN, and may stand around another one. While it lives, loops in OpenMP run on the calling
// thread alone, and no fork begins: oneDNN has locks that nobody could give back in the child. The thread does nothing
// meanwhile that waits for another.
class DnnCall {
 public:
  DnnCall();
  ~DnnCall();
  DnnCall(const DnnCall&) = delete;
  DnnCall& operator=(const DnnCall&) = delete;

 private:
  int threads_before_;
};

}  // namespace backplane::cpu

// What every use of oneDNN shares: its engine, and the threads of its loops, which are the host's. Any thread.
#pragma once

#include <omp.h>

#include <dnnl.hpp>

namespace backplane::cpu {

inline const dnnl::engine& dnn_engine() {
  static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

// oneDNN's loops in OpenMP run on the calling thread alone while one of these lives.
class OneThread {
 public:
  OneThread() : before_(omp_get_max_threads()) {
    if (before_ != 1) omp_set_num_threads(1);
  }
  ~OneThread() {
    if (before_ != 1) omp_set_num_threads(before_);
  }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  int before_;
};

}  // namespace backplane::cpu

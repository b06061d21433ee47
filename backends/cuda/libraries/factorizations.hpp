// Factorisations of matrices by cuSOLVER on one device. Matrices lie in columns, side by side; a routine takes one.
#pragma once

#include <functional>
#include <map>
#include <mutex>

#include "backplane/abi/base.h"
#include "libraries/cusolver.hpp"

namespace backplane::cuda {

// The library's handle. Any thread; the device's context is the thread's current one.
class Factorizations {
 public:
  explicit Factorizations(const cusolver::Functions& library);
  ~Factorizations();
  Factorizations(const Factorizations&) = delete;
  Factorizations& operator=(const Factorizations&) = delete;

 private:
  friend class Factorizing;
  const cusolver::Functions& library_;
  cusolver::Handle handle_ = nullptr;
  cusolver::Parameters parameters_ = nullptr;
  std::mutex mutex_;  // the handle's stream is that of whoever holds it
};

// Memory of one call: both stay until the work that the call records has ended.
struct Workspaces {
  std::function<void*(size_t bytes)> device, host;
};

// The routines on one stream, for matrices of one dtype and size. Every routine records its work, and `info` with it:
// on the device, 0 where it went well. What a routine needs of the device's memory is taken once, since its calls run
// one behind the other; NVIDIA does not say until when it reads the host's, so each call has its own.
class Factorizing {
 public:
  Factorizing(Factorizations& owner, bp_dtype dtype, driver::Stream stream, Workspaces memory);
  Factorizing(const Factorizing&) = delete;
  Factorizing& operator=(const Factorizing&) = delete;

  void potrf(cusolver::Fill fill, int64_t n, void* a, int* info);
  void getrf(int64_t n, void* a, int64_t* pivots, int* info);
  void getrs(cusolver::Operation operation, int64_t n, int64_t columns, const void* a, const int64_t* pivots, void* b,
             int* info);
  void geqrf(int64_t m, int64_t n, void* a, void* tau, int* info);
  void ungqr(int64_t m, int64_t n, int64_t k, void* a, const void* tau, int* info);
  void syevd(cusolver::Vectors vectors, int64_t n, void* a, void* values, int* info);
  // m >= n. `job`: 'N' no vectors, 'S' n columns of u, 'A' m; `v` is n x n and holds the vectors' adjoints as rows.
  void gesvd(char job, int64_t m, int64_t n, void* a, void* s, void* u, void* v, int* info);

 private:
  struct Work {
    void* device = nullptr;
    size_t device_bytes = 0, host_bytes = 0;
  };
  template <class Sizes>
  const Work& work(const char* routine, Sizes&& sizes);
  template <class T, class Sizes, class Run>
  void ungqr_of(Sizes sizes, Run run, int64_t m, int64_t n, int64_t k, void* a, const void* tau, int* info);

  const cusolver::Functions& library_;
  const std::lock_guard<std::mutex> lock_;
  const cusolver::Handle handle_;
  const cusolver::Parameters parameters_;
  const bp_dtype dtype_;
  const cusolver::DataType type_, real_;
  const Workspaces memory_;
  std::map<const char*, Work> works_;  // by routine
};

}  // namespace backplane::cuda

// Factorisations of matrices by cuSOLVER on one device. Matrices lie in columns, side by side; a routine takes one.
#pragma once

#include <map>
#include <mutex>
#include <vector>

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

// The routines on one stream, for matrices of one dtype and size: workspaces are taken once for each. Every routine
// records its work, and `info` with it: on the device, 0 where it went well.
class Factorizing {
 public:
  using Scratch = void* (*)(void* context, size_t bytes);  // device memory until the work of the call has ended

  Factorizing(Factorizations& library, bp_dtype dtype, driver::Stream stream, Scratch scratch, void* context);
  ~Factorizing();  // waits where a routine still reads memory of the host
  Factorizing(const Factorizing&) = delete;
  Factorizing& operator=(const Factorizing&) = delete;

  void potrf(cusolver::Fill fill, int64_t n, void* a, int* info);
  void getrf(int64_t n, void* a, int64_t* pivots, int* info);
  void getrs(cusolver::Operation operation, int64_t n, int64_t columns, const void* a, const int64_t* pivots, void* b,
             int* info);
  void geqrf(int64_t m, int64_t n, void* a, void* tau, int* info);
  void ungqr(int64_t m, int64_t n, int64_t k, void* a, const void* tau, int* info);
  void syevd(cusolver::Vectors vectors, int64_t n, void* a, void* w, int* info);
  // m >= n. `job`: 'N' no vectors, 'S' n columns of u, 'A' m.
  void gesvd(char job, int64_t m, int64_t n, void* a, void* s, void* u, void* v, int* info);

 private:
  struct Work {
    void* device = nullptr;
    size_t bytes = 0;
    std::vector<char> host;
  };
  template <class Sizes>
  Work& work(const char* routine, Sizes&& sizes);
  template <class T, class Sizes, class Run>
  void ungqr_of(Sizes sizes, Run run, int64_t m, int64_t n, int64_t k, void* a, const void* tau, int* info);

  Factorizations& owner_;
  const cusolver::Functions& library_;
  std::lock_guard<std::mutex> lock_;
  const bp_dtype dtype_;
  const cusolver::DataType type_, real_;
  const driver::Stream stream_;
  const Scratch scratch_;
  void* const context_;
  std::map<const char*, Work> works_;  // by routine
};

}  // namespace backplane::cuda

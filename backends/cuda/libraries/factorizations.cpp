// Handles, workspaces and routines of cuSOLVER; see factorizations.hpp.
#include "libraries/factorizations.hpp"

#include <utility>

#include "backplane/error.hpp"
#include "backplane/plugin/dtype.hpp"

namespace backplane::cuda {
namespace {

using namespace cusolver;

void check_solver(Status status, const char* call) {
  if (status == kSuccess) [[likely]]
    return;
  ::backplane::detail::fail(status == kAllocFailed ? BP_ERROR_MEMORY : BP_ERROR_DEVICE, "cuda: ", call,
                            ": cuSOLVER's status ", status);
}

DataType type_of(bp_dtype dtype) {
  switch (dtype) {
    case BP_FLOAT32:
      return kReal32;
    case BP_FLOAT64:
      return kReal64;
    case BP_COMPLEX64:
      return kComplex32;
    default:
      return cusolver::kComplex64;
  }
}

}  // namespace

Factorizations::Factorizations(const Functions& library) : library_(library) {
  check_solver(library_.cusolverDnCreate(&handle_), "cusolverDnCreate");
  if (const Status status = library_.cusolverDnCreateParams(&parameters_); status != kSuccess) {
    (void)library_.cusolverDnDestroy(handle_);
    check_solver(status, "cusolverDnCreateParams");
  }
}

Factorizations::~Factorizations() {
  (void)library_.cusolverDnDestroyParams(parameters_);
  (void)library_.cusolverDnDestroy(handle_);
}

Factorizing::Factorizing(Factorizations& owner, bp_dtype dtype, driver::Stream stream, Workspaces memory)
    : library_(owner.library_),
      lock_(owner.mutex_),
      handle_(owner.handle_),
      parameters_(owner.parameters_),
      dtype_(dtype),
      type_(type_of(dtype)),
      real_(dtype == BP_FLOAT32 || dtype == BP_COMPLEX64 ? kReal32 : kReal64),
      memory_(std::move(memory)) {
  check_solver(library_.cusolverDnSetStream(handle_, stream), "cusolverDnSetStream");
}

template <class Sizes>
const Factorizing::Work& Factorizing::work(const char* routine, Sizes&& sizes) {
  const auto [found, fresh] = works_.try_emplace(routine);
  Work& made = found->second;
  if (!fresh) return made;
  check_solver(sizes(&made.device_bytes, &made.host_bytes), routine);
  made.device = memory_.device(made.device_bytes);
  return made;
}

#define BP_CUSOLVER_HANDLES handle_, parameters_
#define BP_CUSOLVER_WORKSPACE type_, w.device, w.device_bytes, memory_.host(w.host_bytes), w.host_bytes

void Factorizing::potrf(Fill fill, int64_t n, void* a, int* info) {
  const Work& w = work("cusolverDnXpotrf", [&](size_t* device, size_t* host) {
    return library_.cusolverDnXpotrf_bufferSize(BP_CUSOLVER_HANDLES, fill, n, type_, a, n, type_, device, host);
  });
  check_solver(library_.cusolverDnXpotrf(BP_CUSOLVER_HANDLES, fill, n, type_, a, n, BP_CUSOLVER_WORKSPACE, info),
               "cusolverDnXpotrf");
}

void Factorizing::getrf(int64_t n, void* a, int64_t* pivots, int* info) {
  const Work& w = work("cusolverDnXgetrf", [&](size_t* device, size_t* host) {
    return library_.cusolverDnXgetrf_bufferSize(BP_CUSOLVER_HANDLES, n, n, type_, a, n, type_, device, host);
  });
  check_solver(library_.cusolverDnXgetrf(BP_CUSOLVER_HANDLES, n, n, type_, a, n, pivots, BP_CUSOLVER_WORKSPACE, info),
               "cusolverDnXgetrf");
}

void Factorizing::getrs(Operation operation, int64_t n, int64_t columns, const void* a, const int64_t* pivots, void* b,
                        int* info) {
  check_solver(
      library_.cusolverDnXgetrs(BP_CUSOLVER_HANDLES, operation, n, columns, type_, a, n, pivots, type_, b, n, info),
      "cusolverDnXgetrs");
}

void Factorizing::geqrf(int64_t m, int64_t n, void* a, void* tau, int* info) {
  const Work& w = work("cusolverDnXgeqrf", [&](size_t* device, size_t* host) {
    return library_.cusolverDnXgeqrf_bufferSize(BP_CUSOLVER_HANDLES, m, n, type_, a, m, type_, tau, type_, device,
                                                host);
  });
  check_solver(
      library_.cusolverDnXgeqrf(BP_CUSOLVER_HANDLES, m, n, type_, a, m, type_, tau, BP_CUSOLVER_WORKSPACE, info),
      "cusolverDnXgeqrf");
}

template <class T, class Sizes, class Run>
void Factorizing::ungqr_of(Sizes sizes, Run run, int64_t m, int64_t n, int64_t k, void* a, const void* tau, int* info) {
  const int rows = static_cast<int>(m), columns = static_cast<int>(n), reflectors = static_cast<int>(k);
  auto* matrix = static_cast<T*>(a);
  const auto* scales = static_cast<const T*>(tau);
  const auto item = static_cast<size_t>(plugin::kItemSize[dtype_]);
  const Work& w = work("cusolverDn ungqr", [&](size_t* device, size_t*) {
    int elements = 0;
    const Status status = sizes(handle_, rows, columns, reflectors, matrix, rows, scales, &elements);
    *device = static_cast<size_t>(elements) * item;
    return status;
  });
  check_solver(run(handle_, rows, columns, reflectors, matrix, rows, scales, static_cast<T*>(w.device),
                   static_cast<int>(w.device_bytes / item), info),
               "cusolverDn ungqr");
}

void Factorizing::ungqr(int64_t m, int64_t n, int64_t k, void* a, const void* tau, int* info) {
  switch (type_) {
    case kReal32:
      return ungqr_of<float>(library_.cusolverDnSorgqr_bufferSize, library_.cusolverDnSorgqr, m, n, k, a, tau, info);
    case kReal64:
      return ungqr_of<double>(library_.cusolverDnDorgqr_bufferSize, library_.cusolverDnDorgqr, m, n, k, a, tau, info);
    case kComplex32:
      return ungqr_of<cusolver::Complex64>(library_.cusolverDnCungqr_bufferSize, library_.cusolverDnCungqr, m, n, k, a,
                                           tau, info);
    default:
      return ungqr_of<cusolver::Complex128>(library_.cusolverDnZungqr_bufferSize, library_.cusolverDnZungqr, m, n, k, a,
                                            tau, info);
  }
}

void Factorizing::syevd(Vectors vectors, int64_t n, void* a, void* values, int* info) {
  const Work& w = work("cusolverDnXsyevd", [&](size_t* device, size_t* host) {
    return library_.cusolverDnXsyevd_bufferSize(BP_CUSOLVER_HANDLES, vectors, kLower, n, type_, a, n, real_, values,
                                                type_, device, host);
  });
  check_solver(library_.cusolverDnXsyevd(BP_CUSOLVER_HANDLES, vectors, kLower, n, type_, a, n, real_, values,
                                         BP_CUSOLVER_WORKSPACE, info),
               "cusolverDnXsyevd");
}

void Factorizing::gesvd(char job, int64_t m, int64_t n, void* a, void* s, void* u, void* v, int* info) {
  const auto wanted = static_cast<signed char>(job);
  const Work& w = work("cusolverDnXgesvd", [&](size_t* device, size_t* host) {
    return library_.cusolverDnXgesvd_bufferSize(BP_CUSOLVER_HANDLES, wanted, wanted, m, n, type_, a, m, real_, s, type_,
                                                u, m, type_, v, n, type_, device, host);
  });
  check_solver(library_.cusolverDnXgesvd(BP_CUSOLVER_HANDLES, wanted, wanted, m, n, type_, a, m, real_, s, type_, u, m,
                                         type_, v, n, BP_CUSOLVER_WORKSPACE, info),
               "cusolverDnXgesvd");
}

#undef BP_CUSOLVER_HANDLES
#undef BP_CUSOLVER_WORKSPACE

}  // namespace backplane::cuda

// A stand-in for cuSOLVER: factorisations by LAPACK of what the arguments say (types, sizes, leading dimensions, the
// triangle, the transposition), on the emulated device's memory, in the order of its streams. What the library's manual
// forbids or leaves open is refused by name, as a status and on standard error.
#include "libraries/cusolver.hpp"

#include <atomic>
#include <cmath>
#include <cstdio>
#include <string>

#include "lapack.hpp"
#include "services.hpp"
#include "solver_memory.hpp"

using namespace backplane::cuda;
using namespace backplane::cuda::cusolver;
namespace lapack = emulator::lapack;
using emulator::everything, emulator::line, emulator::matrix, emulator::Matrix, emulator::Part, emulator::Workspace;

namespace backplane::cuda::cusolver {

struct HandleData {
  driver::Stream stream = nullptr;
};
struct ParametersData {};

}  // namespace backplane::cuda::cusolver

namespace {

std::atomic<uint64_t> routines{0};

Status refuse(Status status, const std::string& what) {
  std::fprintf(stderr, "emulated cuSOLVER: %s\n", what.c_str());
  return status;
}

size_t item_of(DataType type) {
  return type == kReal32 ? 4 : type == kReal64 || type == kComplex32 ? 8 : type == cusolver::kComplex64 ? 16 : 0;
}
DataType real_of(DataType type) { return type == kReal32 || type == kComplex32 ? kReal32 : kReal64; }

Part part_of(Fill fill) { return fill == kLower ? emulator::lower : emulator::upper; }

// The library may never end with NaN, so none is given to these.
template <class T>
void require_finite(const std::vector<T>& values, const Matrix<T>& of, Part part, const char* routine) {
  for (int column = 0; column < of.columns; ++column)
    for (int row = 0; row < of.rows; ++row) {
      const T x = values[static_cast<size_t>(column) * static_cast<size_t>(of.rows) + static_cast<size_t>(row)];
      if (part(row, column) && !(std::isfinite(std::real(x)) && std::isfinite(std::imag(x))))
        emulator::end_with_fault(std::string("cuSOLVER: ") + routine + ": an element is not finite");
    }
}

size_t device_need(int64_t rows, int64_t columns, DataType type) {
  return static_cast<size_t>(rows * columns + 32) * item_of(type);
}
size_t host_need(int64_t columns) { return static_cast<size_t>(columns) * 8; }

// ---- calls ----

struct Shape {
  const char* name;
  int64_t rows, columns, leading;
};
Status check_shape(const Shape& a) {
  if (a.rows < 0 || a.columns < 0 || a.rows > INT32_MAX || a.columns > INT32_MAX)
    return refuse(kInvalidValue, std::string(a.name) + " has a size that no matrix has");
  if (a.leading < std::max<int64_t>(a.rows, 1))
    return refuse(kInvalidValue, std::string(a.name) + " has the leading dimension " + std::to_string(a.leading) +
                                     ", fewer than its " + std::to_string(a.rows) + " rows");
  return kSuccess;
}
Status check_types(DataType type, DataType computed) {
  if (item_of(type) == 0 || type != computed)
    return refuse(kNotSupported, "the types of the matrix and of the computation do not go together");
  return kSuccess;
}
Status check_call(Handle handle, Parameters parameters, DataType type, DataType computed,
                  std::initializer_list<Shape> shapes) {
  if (!handle || !parameters) return refuse(kInvalidValue, "no handle, or no parameters");
  for (const Shape& shape : shapes)
    if (const Status status = check_shape(shape)) return status;
  return check_types(type, computed);
}
// Where all of these say 0.
template <class... Statuses>
Status first_of(Statuses... statuses) {
  Status found = kSuccess;
  ((found = found == kSuccess ? statuses : found), ...);
  return found;
}
Status sizes(Status status, size_t* device, size_t* host, size_t device_bytes, size_t host_bytes) {
  *device = device_bytes, *host = host_bytes;
  return status;
}

Status record(Handle handle, std::function<void()> work) {
  if (!emulator::record_work(handle->stream, std::move(work))) return kExecutionFailed;
  ++routines;
  return kSuccess;
}
// body.operator()<T>() in the stream's turn.
template <class Body>
Status record_for(Handle handle, DataType type, const Workspace& workspace, Body body) {
  return record(handle, [=] {
    workspace.use();
    switch (type) {
      case kReal32:
        return body.template operator()<float>();
      case kReal64:
        return body.template operator()<double>();
      case kComplex32:
        return body.template operator()<std::complex<float>>();
      default:
        return body.template operator()<std::complex<double>>();
    }
  });
}
Status too_little() { return refuse(kInvalidValue, "a workspace is smaller than was said to be needed"); }

template <class T>
Status columns_of(Handle handle, DataType type, int m, int n, int k, T* a, int lda, const T* tau, T* work, int elements,
                  int* info) {
  if (!handle) return refuse(kInvalidValue, "no handle");
  if (const Status status = check_shape({"A", m, n, lda})) return status;
  if (n > m || k > n) return refuse(kInvalidValue, "more columns than rows, or more reflectors than columns");
  if (elements < n * 2) return too_little();
  const Workspace workspace{work, static_cast<size_t>(elements) * item_of(type), nullptr, 0};
  return record_for(handle, type, workspace, [=]<class U>() {
    const auto reflectors = matrix<U>(a, m, k, lda).load(), scales = line<U>(tau, k).load();
    std::vector<U> columns(static_cast<size_t>(m) * static_cast<size_t>(n), U(NAN));
    std::copy(reflectors.begin(), reflectors.end(), columns.begin());
    const int found = lapack::ungqr(m, n, k, columns.data(), m, scales.data());
    matrix<U>(a, m, n, lda).store(columns);
    emulator::store_info(info, found);
  });
}

}  // namespace

// The stand-in has what the plugin asks for, with the plugin's declarations.
extern "C" {
#define BP_DECLARE(result, name, parameters) __attribute__((visibility("default"))) result name parameters;
BP_CUSOLVER(BP_DECLARE)
#undef BP_DECLARE
// How many routines were recorded: what a test asks, to see that a call came here.
__attribute__((visibility("default"))) uint64_t emulated_cusolver_routines(void) { return routines; }

Status cusolverGetVersion(int* version) {
  *version = 12004;
  return kSuccess;
}
Status cusolverDnCreate(Handle* handle) {
  *handle = new HandleData();
  return kSuccess;
}
Status cusolverDnDestroy(Handle handle) {
  delete handle;
  return kSuccess;
}
Status cusolverDnSetStream(Handle handle, driver::Stream stream) {
  handle->stream = stream;
  return kSuccess;
}
Status cusolverDnCreateParams(Parameters* parameters) {
  *parameters = new ParametersData();
  return kSuccess;
}
Status cusolverDnDestroyParams(Parameters parameters) {
  delete parameters;
  return kSuccess;
}

Status cusolverDnXpotrf_bufferSize(Handle handle, Parameters parameters, Fill, int64_t n, DataType type, const void*,
                                   int64_t lda, DataType computed, size_t* device, size_t* host) {
  return sizes(check_call(handle, parameters, type, computed, {{"A", n, n, lda}}), device, host,
               device_need(n, n, type), 0);
}
Status cusolverDnXpotrf(Handle handle, Parameters parameters, Fill fill, int64_t n, DataType type, void* a, int64_t lda,
                        DataType computed, void* work, size_t work_bytes, void* host, size_t host_bytes, int* info) {
  if (const Status status = check_call(handle, parameters, type, computed, {{"A", n, n, lda}})) return status;
  const Workspace workspace{work, work_bytes, host, host_bytes};
  if (!workspace.is_enough(device_need(n, n, type), 0)) return too_little();
  return record_for(handle, type, workspace, [=]<class T>() {
    const auto given = matrix<T>(a, n, n, lda);
    auto values = given.load(part_of(fill));
    const int found = lapack::potrf(fill == kLower ? 'L' : 'U', given.rows, values.data(), given.rows);
    given.store(values, part_of(fill));
    emulator::store_info(info, found);
  });
}

Status cusolverDnXgetrf_bufferSize(Handle handle, Parameters parameters, int64_t m, int64_t n, DataType type,
                                   const void*, int64_t lda, DataType computed, size_t* device, size_t* host) {
  return sizes(check_call(handle, parameters, type, computed, {{"A", m, n, lda}}), device, host,
               device_need(m, n, type), host_need(n));
}
Status cusolverDnXgetrf(Handle handle, Parameters parameters, int64_t m, int64_t n, DataType type, void* a, int64_t lda,
                        int64_t* pivots, DataType computed, void* work, size_t work_bytes, void* host,
                        size_t host_bytes, int* info) {
  if (const Status status = check_call(handle, parameters, type, computed, {{"A", m, n, lda}})) return status;
  const Workspace workspace{work, work_bytes, host, host_bytes};
  if (!workspace.is_enough(device_need(m, n, type), host_need(n))) return too_little();
  return record_for(handle, type, workspace, [=]<class T>() {
    const auto given = matrix<T>(a, m, n, lda);
    auto values = given.load();
    std::vector<int> exchanged(static_cast<size_t>(std::min(m, n)));
    const int found =
        lapack::getrf(given.rows, given.columns, values.data(), std::max(given.rows, 1), exchanged.data());
    given.store(values);
    line<int64_t>(pivots, std::min(m, n)).store({exchanged.begin(), exchanged.end()});
    emulator::store_info(info, found);
  });
}
Status cusolverDnXgetrs(Handle handle, Parameters parameters, Operation operation, int64_t n, int64_t columns,
                        DataType type, const void* a, int64_t lda, const int64_t* pivots, DataType b_type, void* b,
                        int64_t ldb, int* info) {
  if (const Status status = check_call(handle, parameters, type, b_type, {{"A", n, n, lda}, {"B", n, columns, ldb}}))
    return status;
  if (operation != kAsStored && operation != kTransposed) return refuse(kNotSupported, "another transposition");
  return record_for(handle, type, {}, [=]<class T>() {
    const auto right = matrix<T>(b, n, columns, ldb);
    const auto factors = matrix<T>(a, n, n, lda).load();
    auto values = right.load();
    std::vector<int> exchanged;
    for (const int64_t pivot : line<int64_t>(pivots, n).load()) {
      if (pivot < 1 || pivot > n) emulator::end_with_fault("cuSOLVER: getrs: a pivot is no row");
      exchanged.push_back(static_cast<int>(pivot));
    }
    const int found = lapack::getrs(operation == kTransposed ? 'T' : 'N', right.rows, right.columns, factors.data(),
                                    right.rows, exchanged.data(), values.data(), right.rows);
    right.store(values);
    emulator::store_info(info, found);
  });
}

Status cusolverDnXgeqrf_bufferSize(Handle handle, Parameters parameters, int64_t m, int64_t n, DataType type,
                                   const void*, int64_t lda, DataType tau_type, const void*, DataType computed,
                                   size_t* device, size_t* host) {
  return sizes(
      first_of(check_call(handle, parameters, type, computed, {{"A", m, n, lda}}), check_types(type, tau_type)), device,
      host, device_need(m, n, type), host_need(n));
}
Status cusolverDnXgeqrf(Handle handle, Parameters parameters, int64_t m, int64_t n, DataType type, void* a, int64_t lda,
                        DataType tau_type, void* tau, DataType computed, void* work, size_t work_bytes, void* host,
                        size_t host_bytes, int* info) {
  if (const Status status =
          first_of(check_call(handle, parameters, type, computed, {{"A", m, n, lda}}), check_types(type, tau_type)))
    return status;
  const Workspace workspace{work, work_bytes, host, host_bytes};
  if (!workspace.is_enough(device_need(m, n, type), host_need(n))) return too_little();
  return record_for(handle, type, workspace, [=]<class T>() {
    const auto given = matrix<T>(a, m, n, lda);
    auto values = given.load();
    std::vector<T> scales(static_cast<size_t>(std::min(m, n)));
    const int found = lapack::geqrf(given.rows, given.columns, values.data(), std::max(given.rows, 1), scales.data());
    given.store(values);
    line<T>(tau, std::min(m, n)).store(scales);
    emulator::store_info(info, found);
  });
}

#define BP_COLUMNS(name, T, type)                                                                                  \
  Status name##_bufferSize(Handle, int, int n, int, const T*, int, const T*, int* elements) {                      \
    *elements = n * 2;                                                                                             \
    return kSuccess;                                                                                               \
  }                                                                                                                \
  Status name(Handle handle, int m, int n, int k, T* a, int lda, const T* tau, T* work, int elements, int* info) { \
    return columns_of(handle, type, m, n, k, a, lda, tau, work, elements, info);                                   \
  }
BP_COLUMNS(cusolverDnSorgqr, float, kReal32)
BP_COLUMNS(cusolverDnDorgqr, double, kReal64)
BP_COLUMNS(cusolverDnCungqr, cusolver::Complex64, kComplex32)
BP_COLUMNS(cusolverDnZungqr, cusolver::Complex128, cusolver::kComplex64)
#undef BP_COLUMNS

Status cusolverDnXsyevd_bufferSize(Handle handle, Parameters parameters, Vectors, Fill, int64_t n, DataType type,
                                   const void*, int64_t lda, DataType w_type, const void*, DataType computed,
                                   size_t* device, size_t* host) {
  return sizes(
      first_of(check_call(handle, parameters, type, computed, {{"A", n, n, lda}}), check_types(w_type, real_of(type))),
      device, host, device_need(n, n, type), host_need(n));
}
Status cusolverDnXsyevd(Handle handle, Parameters parameters, Vectors vectors, Fill fill, int64_t n, DataType type,
                        void* a, int64_t lda, DataType w_type, void* w, DataType computed, void* work,
                        size_t work_bytes, void* host, size_t host_bytes, int* info) {
  if (const Status status = first_of(check_call(handle, parameters, type, computed, {{"A", n, n, lda}}),
                                     check_types(w_type, real_of(type))))
    return status;
  const Workspace workspace{work, work_bytes, host, host_bytes};
  if (!workspace.is_enough(device_need(n, n, type), host_need(n))) return too_little();
  return record_for(handle, type, workspace, [=]<class T>() {
    const auto given = matrix<T>(a, n, n, lda);
    auto values = given.load(part_of(fill));
    require_finite(values, given, part_of(fill), "syevd");
    std::vector<lapack::Real<T>> found(static_cast<size_t>(n));
    const int failed = lapack::heev(vectors == kVectors ? 'V' : 'N', fill == kLower ? 'L' : 'U', given.rows,
                                    values.data(), given.rows, found.data());
    given.store(vectors == kVectors ? values : std::vector<T>(values.size(), T(-77)));  // A is lost
    line<lapack::Real<T>>(w, n).store(found);
    emulator::store_info(info, failed);
  });
}

Status cusolverDnXgesvd_bufferSize(Handle handle, Parameters parameters, signed char, signed char, int64_t m, int64_t n,
                                   DataType type, const void*, int64_t lda, DataType s_type, const void*,
                                   DataType u_type, const void*, int64_t, DataType v_type, const void*, int64_t,
                                   DataType computed, size_t* device, size_t* host) {
  return sizes(first_of(check_call(handle, parameters, type, computed, {{"A", m, n, lda}}),
                        check_types(s_type, real_of(type)), check_types(u_type, type), check_types(v_type, type)),
               device, host, device_need(m, n, type), host_need(n));
}
Status cusolverDnXgesvd(Handle handle, Parameters parameters, signed char u_job, signed char v_job, int64_t m,
                        int64_t n, DataType type, void* a, int64_t lda, DataType s_type, void* s, DataType u_type,
                        void* u, int64_t ldu, DataType v_type, void* v, int64_t ldv, DataType computed, void* work,
                        size_t work_bytes, void* host, size_t host_bytes, int* info) {
  if (const Status status = first_of(
          check_call(handle, parameters, type, computed, {{"A", m, n, lda}, {"U", m, m, ldu}, {"V", n, n, ldv}}),
          check_types(s_type, real_of(type)), check_types(u_type, type), check_types(v_type, type)))
    return status;
  if (m < n) return refuse(kInvalidValue, "gesvd takes no fewer rows than columns");
  if (u_job != v_job || (u_job != 'A' && u_job != 'S' && u_job != 'N')) return refuse(kNotSupported, "another job");
  const Workspace workspace{work, work_bytes, host, host_bytes};
  if (!workspace.is_enough(device_need(m, n, type), host_need(n))) return too_little();
  return record_for(handle, type, workspace, [=]<class T>() {
    const auto given = matrix<T>(a, m, n, lda);
    const auto left = matrix<T>(u, m, u_job == 'A' ? m : n, ldu), right = matrix<T>(v, n, n, ldv);
    auto values = given.load();
    require_finite(values, given, everything, "gesvd");
    std::vector<T> u_values(static_cast<size_t>(m * left.columns)), v_values(static_cast<size_t>(n * n));
    std::vector<lapack::Real<T>> found(static_cast<size_t>(n));
    const int failed =
        lapack::gesvd(static_cast<char>(u_job), static_cast<char>(v_job), given.rows, given.columns, values.data(),
                      given.rows, found.data(), u_values.data(), given.rows, v_values.data(), right.rows);
    given.store(std::vector<T>(values.size(), T(-77)));  // A is lost
    if (u_job != 'N') left.store(u_values), right.store(v_values);
    line<lapack::Real<T>>(s, n).store(found);
    emulator::store_info(info, failed);
  });
}

}  // extern "C"

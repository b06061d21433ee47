// A stand-in for cuFFT: transforms by their definition, over contiguous tensors, on the emulated device's memory, in
// the order of its streams. What the library's manual forbids or leaves open is refused by name.
#include "libraries/cufft.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>
#include <numbers>
#include <string>
#include <vector>

#include "elements.hpp"
#include "services.hpp"

using namespace backplane::cuda;
using namespace backplane::cuda::cufft;

namespace {

using Value = std::complex<double>;

struct PlanData {
  bool allocates = true, made = false;
  std::vector<size_t> sizes;
  size_t batch = 0;
  Type type{};
  size_t workspace_bytes = 0;
  void* workspace = nullptr;
  driver::Stream stream = nullptr;
};

std::mutex mutex;  // guards what follows
std::map<Plan, PlanData> plans;
Plan next_plan = 1;
std::atomic<uint64_t> transforms{0};

Status refuse(Status status, const std::string& what) {
  std::fprintf(stderr, "emulated cuFFT: %s\n", what.c_str());
  return status;
}

bool is_double(Type type) { return (type & 0x40) != 0; }
size_t product(const std::vector<size_t>& sizes) {
  size_t count = 1;
  for (const size_t size : sizes) count *= size;
  return count;
}
// Elements of one transform where the last axis is kept to the half that determines the rest.
size_t halved(const std::vector<size_t>& sizes) { return product(sizes) / sizes.back() * (sizes.back() / 2 + 1); }

// The sum of the definition along one axis.
void transform_axis(std::vector<Value>& values, const std::vector<size_t>& sizes, size_t axis, int direction) {
  const size_t n = sizes[axis];
  size_t step = 1;
  for (size_t d = axis + 1; d < sizes.size(); ++d) step *= sizes[d];
  std::vector<Value> line(n);
  for (size_t first = 0; first < values.size(); ++first) {
    if (first / step % n != 0) continue;
    for (size_t k = 0; k < n; ++k) {
      line[k] = 0;
      for (size_t j = 0; j < n; ++j)
        line[k] +=
            values[first + j * step] *
            std::polar(1.0, direction * 2 * std::numbers::pi * static_cast<double>(j * k % n) / static_cast<double>(n));
    }
    for (size_t k = 0; k < n; ++k) values[first + k * step] = line[k];
  }
}

void transform_all(std::vector<Value>& values, const std::vector<size_t>& sizes, int direction) {
  for (size_t axis = 0; axis < sizes.size(); ++axis) transform_axis(values, sizes, axis, direction);
}

template <class T>
void complex_to_complex(const PlanData& plan, const char* in, char* out, int direction) {
  using C = std::complex<T>;
  const size_t count = product(plan.sizes);
  std::vector<Value> values(count);
  for (size_t b = 0; b < plan.batch; ++b) {
    for (size_t i = 0; i < count; ++i) values[i] = emulator::load<C>(in + (b * count + i) * sizeof(C));
    transform_all(values, plan.sizes, direction);
    for (size_t i = 0; i < count; ++i) emulator::store<C>(out + (b * count + i) * sizeof(C), values[i]);
  }
}

template <class T>
void real_to_complex(const PlanData& plan, const char* in, char* out) {
  using C = std::complex<T>;
  const size_t count = product(plan.sizes), kept = halved(plan.sizes), last = plan.sizes.back();
  std::vector<Value> values(count);
  for (size_t b = 0; b < plan.batch; ++b) {
    for (size_t i = 0; i < count; ++i)
      values[i] = static_cast<double>(emulator::load<T>(in + (b * count + i) * sizeof(T)));
    transform_all(values, plan.sizes, kForward);
    for (size_t i = 0, k = 0; i < count; ++i)
      if (i % last <= last / 2) emulator::store<C>(out + (b * kept + k++) * sizeof(C), values[i]);
  }
}

// Along one axis only: several are not defined for an operand that is not a spectrum of reals. The operand is lost.
template <class T>
void complex_to_real(const PlanData& plan, char* in, char* out) {
  using C = std::complex<T>;
  const size_t n = plan.sizes[0], kept = n / 2 + 1;
  std::vector<Value> values(n);
  for (size_t b = 0; b < plan.batch; ++b) {
    char* line = in + b * kept * sizeof(C);
    for (size_t k = 0; k < kept; ++k) {
      values[k] = emulator::load<C>(line + k * sizeof(C));
      if ((k == 0 || 2 * k == n) && values[k].imag() != 0)
        emulator::end_with_fault("cuFFT: element " + std::to_string(k) + " of a spectrum of " + std::to_string(n) +
                                 " reals has an imaginary part");
      if (k > 0) values[n - k] = std::conj(values[k]);
    }
    transform_all(values, plan.sizes, kInverse);
    for (size_t i = 0; i < n; ++i) emulator::store<T>(out + (b * n + i) * sizeof(T), T(values[i].real()));
    for (size_t k = 0; k < kept && in != out; ++k) emulator::store<C>(line + k * sizeof(C), Value(-77, -77));
  }
}

void run(const PlanData& plan, char* in, char* out, int direction) {
  if (plan.workspace_bytes > 0)  // what was there before is lost
    std::memset(emulator::writable(plan.workspace, plan.workspace_bytes), 0xA5, plan.workspace_bytes);
  switch (plan.type) {
    case kComplex64:
      return complex_to_complex<float>(plan, in, out, direction);
    case kComplex128:
      return complex_to_complex<double>(plan, in, out, direction);
    case kReal32ToComplex:
      return real_to_complex<float>(plan, in, out);
    case kReal64ToComplex:
      return real_to_complex<double>(plan, in, out);
    case kComplexToReal32:
      return complex_to_real<float>(plan, in, out);
    default:
      return complex_to_real<double>(plan, in, out);
  }
}

template <class In, class Out>
Status execute(Plan handle, Type type, In* in, Out* out, int direction) {
  std::lock_guard lock(mutex);
  const auto found = plans.find(handle);
  if (found == plans.end() || !found->second.made) return refuse(kInvalidValue, "no plan");
  const PlanData& plan = found->second;
  if (plan.type != type) return refuse(kInvalidValue, "the plan is for another type");
  if (direction != kForward && direction != kInverse) return refuse(kInvalidValue, "no direction");
  const uint64_t alignment = is_double(type) ? 16 : 8;
  for (const void* at : {static_cast<const void*>(in), static_cast<const void*>(out)})
    if (reinterpret_cast<uint64_t>(at) % alignment != 0)
      return refuse(kUnaligned, "an operand is not aligned to its complex type");
  if (plan.workspace_bytes > 0 && !plan.workspace) return refuse(kInvalidValue, "no workspace was set");
  auto* from = reinterpret_cast<char*>(in);
  auto* to = reinterpret_cast<char*>(out);
  if (!emulator::record_work(plan.stream, [plan, from, to, direction] { run(plan, from, to, direction); }))
    return kExecFailed;
  ++transforms;
  return kSuccess;
}

template <class F>
Status change(Plan handle, F f) {
  std::lock_guard lock(mutex);
  const auto found = plans.find(handle);
  return found == plans.end() ? refuse(kInvalidValue, "no plan") : f(found->second);
}

}  // namespace

// The stand-in has what the plugin asks for, with the plugin's declarations.
extern "C" {
#define BP_DECLARE(result, name, parameters) __attribute__((visibility("default"))) result name parameters;
BP_CUFFT(BP_DECLARE)
#undef BP_DECLARE
// How many transforms were recorded: what a test asks, to see that a call came here.
__attribute__((visibility("default"))) uint64_t emulated_cufft_transforms(void) { return transforms; }

Status cufftGetVersion(int* version) {
  *version = 12000;
  return kSuccess;
}
Status cufftCreate(Plan* plan) {
  std::lock_guard lock(mutex);
  plans[*plan = next_plan++] = {};
  return kSuccess;
}
Status cufftDestroy(Plan plan) {
  std::lock_guard lock(mutex);
  return plans.erase(plan) == 1 ? kSuccess : refuse(kInvalidValue, "no plan");
}
Status cufftSetAutoAllocation(Plan plan, int allocates) {
  return change(plan, [&](PlanData& data) {
    if (data.made) return refuse(kInvalidValue, "the plan is made already");
    data.allocates = allocates != 0;
    return Status{kSuccess};
  });
}
Status cufftMakePlanMany64(Plan plan, int rank, long long* sizes, long long* in_embed, long long, long long,
                           long long* out_embed, long long, long long, Type type, long long batch, size_t* workspace) {
  return change(plan, [&](PlanData& data) {
    if (data.made || data.allocates) return refuse(kInvalidValue, "the plan is made already, or has memory of its own");
    if (in_embed || out_embed) return refuse(kInvalidValue, "a layout that is not contiguous");
    const bool to_real = type == kComplexToReal32 || type == kComplexToReal64;
    if (rank < 1 || rank > 3 || (to_real && rank > 1) || batch < 1 ||
        std::any_of(sizes, sizes + rank, [](long long size) { return size < 1; }))
      return refuse(kInvalidSize, "a rank, a size or a batch that no plan has");
    data.sizes.assign(sizes, sizes + rank);
    data.batch = static_cast<size_t>(batch);
    data.type = type;
    // Short transforms need none.
    *workspace = data.workspace_bytes = product(data.sizes) < 4 ? 0 : product(data.sizes) * data.batch * 8;
    data.made = true;
    return Status{kSuccess};
  });
}
Status cufftSetWorkArea(Plan plan, void* workspace) {
  return change(plan, [&](PlanData& data) {
    data.workspace = workspace;
    return Status{kSuccess};
  });
}
Status cufftSetStream(Plan plan, driver::Stream stream) {
  return change(plan, [&](PlanData& data) {
    data.stream = stream;
    return Status{kSuccess};
  });
}
Status cufftExecC2C(Plan plan, Complex64* in, Complex64* out, int direction) {
  return execute(plan, kComplex64, in, out, direction);
}
Status cufftExecZ2Z(Plan plan, Complex128* in, Complex128* out, int direction) {
  return execute(plan, kComplex128, in, out, direction);
}
Status cufftExecR2C(Plan plan, float* in, Complex64* out) { return execute(plan, kReal32ToComplex, in, out, kForward); }
Status cufftExecD2Z(Plan plan, double* in, Complex128* out) {
  return execute(plan, kReal64ToComplex, in, out, kForward);
}
Status cufftExecC2R(Plan plan, Complex64* in, float* out) { return execute(plan, kComplexToReal32, in, out, kInverse); }
Status cufftExecZ2D(Plan plan, Complex128* in, double* out) {
  return execute(plan, kComplexToReal64, in, out, kInverse);
}

}  // extern "C"

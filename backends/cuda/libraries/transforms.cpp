// Plans of transforms; see transforms.hpp.
#include "libraries/transforms.hpp"

#include "backplane/error.hpp"

namespace backplane::cuda {
namespace {

constexpr size_t kMostPlans = 64;  // each keeps tables on the device

void check_fft(cufft::Status status, const char* call) {
  if (status == cufft::kSuccess) [[likely]]
    return;
  ::backplane::detail::fail(status == cufft::kAllocFailed ? BP_ERROR_MEMORY : BP_ERROR_DEVICE, "cuda: ", call,
                            ": cuFFT's status ", status);
}

}  // namespace

TransformPlan::TransformPlan(const cufft::Functions& library, const TransformShape& shape)
    : library_(library), type_(shape.type) {
  check_fft(library_.cufftCreate(&plan_), "cufftCreate");
  try {
    check_fft(library_.cufftSetAutoAllocation(plan_, 0), "cufftSetAutoAllocation");
    auto sizes = shape.sizes;
    check_fft(library_.cufftMakePlanMany64(plan_, shape.rank, sizes.data(), nullptr, 1, 0, nullptr, 1, 0, shape.type,
                                           shape.batch, &workspace_),
              "cufftMakePlanMany64");
  } catch (...) {
    (void)library_.cufftDestroy(plan_);
    throw;
  }
}

TransformPlan::~TransformPlan() { (void)library_.cufftDestroy(plan_); }

void TransformPlan::run(void* in, void* out, bool forward, void* workspace, driver::Stream stream) {
  std::lock_guard lock(mutex_);
  check_fft(library_.cufftSetStream(plan_, stream), "cufftSetStream");
  if (workspace_ > 0) check_fft(library_.cufftSetWorkArea(plan_, workspace), "cufftSetWorkArea");
  execute(in, out, forward ? cufft::kForward : cufft::kInverse);
}

void TransformPlan::execute(void* in, void* out, int direction) const {
  using cufft::Complex128;
  using cufft::Complex64;
  switch (type_) {
    case cufft::kComplex64:
      return check_fft(
          library_.cufftExecC2C(plan_, static_cast<Complex64*>(in), static_cast<Complex64*>(out), direction),
          "cufftExecC2C");
    case cufft::kComplex128:
      return check_fft(
          library_.cufftExecZ2Z(plan_, static_cast<Complex128*>(in), static_cast<Complex128*>(out), direction),
          "cufftExecZ2Z");
    case cufft::kReal32ToComplex:
      return check_fft(library_.cufftExecR2C(plan_, static_cast<float*>(in), static_cast<Complex64*>(out)),
                       "cufftExecR2C");
    case cufft::kReal64ToComplex:
      return check_fft(library_.cufftExecD2Z(plan_, static_cast<double*>(in), static_cast<Complex128*>(out)),
                       "cufftExecD2Z");
    case cufft::kComplexToReal32:
      return check_fft(library_.cufftExecC2R(plan_, static_cast<Complex64*>(in), static_cast<float*>(out)),
                       "cufftExecC2R");
    case cufft::kComplexToReal64:
      return check_fft(library_.cufftExecZ2D(plan_, static_cast<Complex128*>(in), static_cast<double*>(out)),
                       "cufftExecZ2D");
  }
}

std::shared_ptr<TransformPlan> Transforms::plan(const TransformShape& shape) {
  std::lock_guard lock(mutex_);
  if (const auto found = plans_.find(shape); found != plans_.end()) return found->second;
  if (plans_.size() >= kMostPlans) plans_.clear();
  return plans_[shape] = std::make_shared<TransformPlan>(library_, shape);
}

}  // namespace backplane::cuda

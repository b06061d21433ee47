// Descriptors of a convolution, and the algorithm for them; see convolutions.hpp.
#include "libraries/convolutions.hpp"

#include <span>

#include "backplane/abi/value.h"
#include "backplane/error.hpp"

namespace backplane::cuda {
namespace {

using cudnn::Status;

constexpr size_t kMostWorkspace = size_t{256} << 20;
constexpr size_t kMostPlans = 1024;
constexpr int kMostProposals = 8;  // the library has no more algorithms of a pass

struct Types {
  int stored, computed, math;
};
// Half floats may go to tensor cores, which sum them in float32; float32 is not rounded to TF32, as everywhere in the
// registry.
Types types_of(bp_dtype dtype) {
  switch (dtype) {
    case BP_FLOAT16:
      return {cudnn::kReal16, cudnn::kReal32, cudnn::kOfTensors};
    case BP_BFLOAT16:
      return {cudnn::kBrain16, cudnn::kReal32, cudnn::kOfTensors};
    case BP_FLOAT32:
      return {cudnn::kReal32, cudnn::kReal32, cudnn::kOfFused};
    default:
      return {cudnn::kReal64, cudnn::kReal64, cudnn::kOfDefault};
  }
}

// False: the library has nothing for it. What else goes wrong is thrown.
bool succeeds(const cudnn::Functions& library, Status status, const char* call) {
  if (status == cudnn::kSuccess) [[likely]]
    return true;
  if (status / 1000 == cudnn::kNotSupported / 1000) return false;
  ::backplane::detail::fail(BP_ERROR_DEVICE, "cuda: ", call, ": ", library.cudnnGetErrorString(status));
}

}  // namespace

ConvolutionPlan::ConvolutionPlan(const cudnn::Functions& library, cudnn::Handle handle, const ConvolutionShape& shape)
    : library_(library), handle_(handle), pass_(shape.pass), dtype_(shape.dtype) {
  try {
    if (describe(shape)) choose();
  } catch (...) {
    destroy();
    throw;
  }
}

ConvolutionPlan::~ConvolutionPlan() { destroy(); }

void ConvolutionPlan::destroy() {
  if (x_) (void)library_.cudnnDestroyTensorDescriptor(x_);
  if (y_) (void)library_.cudnnDestroyTensorDescriptor(y_);
  if (w_) (void)library_.cudnnDestroyFilterDescriptor(w_);
  if (convolution_) (void)library_.cudnnDestroyConvolutionDescriptor(convolution_);
}

bool ConvolutionPlan::describe(const ConvolutionShape& s) {
  const Types types = types_of(s.dtype);
  const auto made = [&](Status status, const char* call) {
    BP_CHECK(succeeds(library_, status, call), DEVICE, "cuda: ", call, ": ", library_.cudnnGetErrorString(status));
  };
  made(library_.cudnnCreateTensorDescriptor(&x_), "cudnnCreateTensorDescriptor");
  made(library_.cudnnCreateTensorDescriptor(&y_), "cudnnCreateTensorDescriptor");
  made(library_.cudnnCreateFilterDescriptor(&w_), "cudnnCreateFilterDescriptor");
  made(library_.cudnnCreateConvolutionDescriptor(&convolution_), "cudnnCreateConvolutionDescriptor");
  const auto images = [&](cudnn::Tensor tensor, const std::array<int, 4>& sizes) {
    return succeeds(library_,
                    library_.cudnnSetTensor4dDescriptor(tensor, cudnn::kChannelsFirst, types.stored, sizes[0], sizes[1],
                                                        sizes[2], sizes[3]),
                    "cudnnSetTensor4dDescriptor");
  };
  return images(x_, s.x) && images(y_, s.y) &&
         succeeds(library_,
                  library_.cudnnSetFilter4dDescriptor(w_, types.stored, cudnn::kChannelsFirst, s.w[0], s.w[1], s.w[2],
                                                      s.w[3]),
                  "cudnnSetFilter4dDescriptor") &&
         succeeds(library_,
                  library_.cudnnSetConvolution2dDescriptor(convolution_, s.padding[0], s.padding[1], s.stride[0],
                                                           s.stride[1], s.dilation[0], s.dilation[1],
                                                           cudnn::kCrossCorrelation, types.computed),
                  "cudnnSetConvolution2dDescriptor") &&
         succeeds(library_, library_.cudnnSetConvolutionGroupCount(convolution_, s.groups),
                  "cudnnSetConvolutionGroupCount") &&
         succeeds(library_, library_.cudnnSetConvolutionMathType(convolution_, types.math),
                  "cudnnSetConvolutionMathType");
}

Status ConvolutionPlan::propose(int wanted, int* found, cudnn::Proposal* proposals) const {
  if (pass_ == Pass::kForward)
    return library_.cudnnGetConvolutionForwardAlgorithm_v7(handle_, x_, w_, convolution_, y_, wanted, found, proposals);
  if (pass_ == Pass::kOfImages)
    return library_.cudnnGetConvolutionBackwardDataAlgorithm_v7(handle_, w_, y_, convolution_, x_, wanted, found,
                                                                proposals);
  return library_.cudnnGetConvolutionBackwardFilterAlgorithm_v7(handle_, x_, y_, convolution_, w_, wanted, found,
                                                                proposals);
}

Status ConvolutionPlan::measure(int algorithm, size_t* bytes) const {
  if (pass_ == Pass::kForward)
    return library_.cudnnGetConvolutionForwardWorkspaceSize(handle_, x_, w_, convolution_, y_, algorithm, bytes);
  if (pass_ == Pass::kOfImages)
    return library_.cudnnGetConvolutionBackwardDataWorkspaceSize(handle_, w_, y_, convolution_, x_, algorithm, bytes);
  return library_.cudnnGetConvolutionBackwardFilterWorkspaceSize(handle_, x_, y_, convolution_, w_, algorithm, bytes);
}

// The library's first choice of those that give the same bits each time. Where the descriptor says how products are
// made, for it is float32's, that stays; else it becomes the proposal's own.
void ConvolutionPlan::choose() {
  cudnn::Proposal proposals[kMostProposals] = {};
  int found = 0;
  if (!succeeds(library_, propose(kMostProposals, &found, proposals), "the heuristics of convolutions")) return;
  const bool fused = types_of(dtype_).math == cudnn::kOfFused;
  for (const cudnn::Proposal& one : std::span(proposals, static_cast<size_t>(found))) {
    if (one.status != cudnn::kSuccess || one.determinism != cudnn::kDeterministic) continue;
    if (fused && (one.math == cudnn::kOfTensors || one.math == cudnn::kOfConversion)) continue;
    if (!fused && !succeeds(library_, library_.cudnnSetConvolutionMathType(convolution_, one.math),
                            "cudnnSetConvolutionMathType"))
      continue;
    if (!succeeds(library_, measure(one.algorithm, &workspace_), "a workspace's size")) continue;
    if (workspace_ > kMostWorkspace) continue;
    algorithm_ = one.algorithm;
    possible_ = true;
    return;
  }
}

bool ConvolutionPlan::run(const void* first, const void* second, void* out, void* workspace) const {
  const float single_one = 1, single_zero = 0;
  const double one = 1, zero = 0;
  const bool twice = dtype_ == BP_FLOAT64;
  const void* alpha = twice ? static_cast<const void*>(&one) : &single_one;
  const void* beta = twice ? static_cast<const void*>(&zero) : &single_zero;
  const auto recorded = [&](auto function, auto first_layout, auto second_layout, auto out_layout) {
    return succeeds(library_,
                    function(handle_, alpha, first_layout, first, second_layout, second, convolution_, algorithm_,
                             workspace, workspace_, beta, out_layout, out),
                    "a convolution of cuDNN's");
  };
  if (pass_ == Pass::kForward) return recorded(library_.cudnnConvolutionForward, x_, w_, y_);
  if (pass_ == Pass::kOfImages) return recorded(library_.cudnnConvolutionBackwardData, w_, y_, x_);
  return recorded(library_.cudnnConvolutionBackwardFilter, x_, y_, w_);
}

Convolutions::Convolutions(const cudnn::Functions& library) : library_(library) {
  const Status status = library_.cudnnCreate(&handle_);
  BP_CHECK(status == cudnn::kSuccess, DEVICE, "cuda: cudnnCreate: ", library_.cudnnGetErrorString(status));
}

Convolutions::~Convolutions() {
  plans_.clear();
  (void)library_.cudnnDestroy(handle_);
}

std::shared_ptr<const ConvolutionPlan> Convolutions::plan(const ConvolutionShape& shape) {
  std::lock_guard lock(mutex_);
  if (const auto found = plans_.find(shape); found != plans_.end()) return found->second;
  if (plans_.size() >= kMostPlans) plans_.clear();
  return plans_[shape] = std::make_shared<const ConvolutionPlan>(library_, handle_, shape);
}

bool Convolutions::run(const ConvolutionPlan& plan, const void* first, const void* second, void* out, void* workspace,
                       driver::Stream stream) {
  std::lock_guard lock(mutex_);
  const Status status = library_.cudnnSetStream(handle_, stream);
  BP_CHECK(status == cudnn::kSuccess, DEVICE, "cuda: cudnnSetStream: ", library_.cudnnGetErrorString(status));
  return plan.run(first, second, out, workspace);
}

}  // namespace backplane::cuda

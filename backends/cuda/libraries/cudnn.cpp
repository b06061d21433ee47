// Opening cuDNN; see cudnn.hpp.
#include "libraries/cudnn.hpp"

namespace backplane::cuda {
namespace {

constexpr LibraryName kName{"libcudnn.so.9", "nvidia-cudnn-cu13", "convolutions go by the backend's own kernels"};

struct Opened {
  cudnn::Functions functions;
  std::string reason;
};

const Opened* open_cudnn() {
  auto* made = new Opened();  // never closed
  OpenLibrary library(kName);
  BP_CUDNN(BP_CUDA_LIBRARY_FIND)
  made->reason = library.reason();
  return made;
}

}  // namespace

const cudnn::Functions* find_cudnn(std::string* reason) {
  static const Opened* opened = open_cudnn();
  if (reason) *reason = opened->reason;
  return opened->reason.empty() ? &opened->functions : nullptr;
}

}  // namespace backplane::cuda

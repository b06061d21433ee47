// Opening cuBLASLt; see cublaslt.hpp.
#include "libraries/cublaslt.hpp"

namespace backplane::cuda {
namespace {

constexpr LibraryName kName{"libcublasLt.so.13", "nvidia-cublas", "products go by the backend's own kernel"};

struct Opened {
  cublaslt::Functions functions;
  std::string reason;
};

const Opened* open_cublaslt() {
  auto* made = new Opened();  // never closed
  OpenLibrary library(kName);
  BP_CUBLASLT(BP_CUDA_LIBRARY_FIND)
  made->reason = library.reason();
  return made;
}

}  // namespace

const cublaslt::Functions* find_cublaslt(std::string* reason) {
  static const Opened* opened = open_cublaslt();
  if (reason) *reason = opened->reason;
  return opened->reason.empty() ? &opened->functions : nullptr;
}

}  // namespace backplane::cuda

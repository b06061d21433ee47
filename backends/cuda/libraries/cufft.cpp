// Opening cuFFT; see cufft.hpp.
#include "libraries/cufft.hpp"

namespace backplane::cuda {
namespace {

constexpr LibraryName kName{"libcufft.so.12", "nvidia-cufft", "Fourier transforms run on the host"};

struct Opened {
  cufft::Functions functions;
  std::string reason;
};

const Opened* open_cufft() {
  auto* made = new Opened();  // never closed
  OpenLibrary library(kName);
  BP_CUFFT(BP_CUDA_LIBRARY_FIND)
  made->reason = library.reason();
  return made;
}

}  // namespace

const cufft::Functions* find_cufft(std::string* reason) {
  static const Opened* opened = open_cufft();
  if (reason) *reason = opened->reason;
  return opened->reason.empty() ? &opened->functions : nullptr;
}

}  // namespace backplane::cuda

// Opening cuSOLVER; see cusolver.hpp.
#include "libraries/cusolver.hpp"

namespace backplane::cuda {
namespace {

constexpr LibraryName kName{"libcusolver.so.12", "nvidia-cusolver", "factorisations of matrices run on the host"};

struct Opened {
  cusolver::Functions functions;
  std::string reason;
};

const Opened* open_cusolver() {
  auto* made = new Opened();  // never closed
  OpenLibrary library(kName);
  BP_CUSOLVER(BP_CUDA_LIBRARY_FIND)
  made->reason = library.reason();
  return made;
}

}  // namespace

const cusolver::Functions* find_cusolver(std::string* reason) {
  static const Opened* opened = open_cusolver();
  if (reason) *reason = opened->reason;
  return opened->reason.empty() ? &opened->functions : nullptr;
}

}  // namespace backplane::cuda

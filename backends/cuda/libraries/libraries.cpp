// A device's libraries, and their properties; see libraries.hpp.
#include "libraries/libraries.hpp"

#include <string>
#include <vector>

#include "libraries/nvrtc.hpp"

namespace backplane::cuda {
namespace {

struct Found {
  const char* name;
  std::string text;  // its version, or why it is not there
};

std::string dotted(size_t major, size_t minor, size_t patch) {
  return std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(patch);
}

std::string cublaslt_text() {
  std::string reason;
  const cublaslt::Functions* library = find_cublaslt(&reason);
  if (!library) return reason;
  const size_t version = library->cublasLtGetVersion();  // 130002: 13.0.2
  return dotted(version / 10000, version / 100 % 100, version % 100);
}

std::string cudnn_text() {
  std::string reason;
  const cudnn::Functions* library = find_cudnn(&reason);
  if (!library) return reason;
  const size_t version = library->cudnnGetVersion();  // 91400: 9.14.0
  return dotted(version / 10000, version / 100 % 100, version % 100);
}

std::string cufft_text() {
  std::string reason;
  const cufft::Functions* library = find_cufft(&reason);
  if (!library) return reason;
  int found = 0;  // 12000: 12.0.0
  (void)library->cufftGetVersion(&found);
  const auto version = static_cast<size_t>(found);
  return dotted(version / 1000, version / 100 % 10, version % 100);
}

std::string cusolver_text() {
  std::string reason;
  const cusolver::Functions* library = find_cusolver(&reason);
  if (!library) return reason;
  int found = 0;  // 12004: 12.0.4
  (void)library->cusolverGetVersion(&found);
  const auto version = static_cast<size_t>(found);
  return dotted(version / 1000, version / 100 % 10, version % 100);
}

std::string nvrtc_text() {
  std::string reason;
  const nvrtc::Functions* library = find_nvrtc(&reason);
  if (!library) return reason;
  int major = 0, minor = 0;
  (void)library->nvrtcVersion(&major, &minor);
  return std::to_string(major) + "." + std::to_string(minor);
}

// Made once, since the host reads names and text where they lie. Opens every library, which may take seconds.
const std::vector<Found>& all() {
  static const auto* found = new std::vector<Found>{{"cublaslt", cublaslt_text()},
                                                    {"cudnn", cudnn_text()},
                                                    {"cufft", cufft_text()},
                                                    {"cusolver", cusolver_text()},
                                                    {"nvrtc", nvrtc_text()}};
  return *found;
}

}  // namespace

Products* Libraries::products() {
  std::lock_guard lock(mutex_);
  if (!products_)
    if (const cublaslt::Functions* library = find_cublaslt()) products_ = std::make_unique<Products>(*library);
  return products_.get();
}

Transforms* Libraries::transforms() {
  std::lock_guard lock(mutex_);
  if (!transforms_)
    if (const cufft::Functions* library = find_cufft()) transforms_ = std::make_unique<Transforms>(*library);
  return transforms_.get();
}

Factorizations* Libraries::factorizations() {
  std::lock_guard lock(mutex_);
  if (!factorizations_)
    if (const cusolver::Functions* library = find_cusolver())
      factorizations_ = std::make_unique<Factorizations>(*library);
  return factorizations_.get();
}

Convolutions* Libraries::convolutions() {
  std::lock_guard lock(mutex_);
  if (!convolutions_)
    if (const cudnn::Functions* library = find_cudnn()) convolutions_ = std::make_unique<Convolutions>(*library);
  return convolutions_.get();
}

void Libraries::close() {
  std::lock_guard lock(mutex_);
  products_.reset(), transforms_.reset(), factorizations_.reset(), convolutions_.reset();
}

const char* library_property(uint32_t index, bp_value& value) {
  if (index >= all().size()) return nullptr;
  const Found& one = all()[index];
  value.tag = BP_TAG_STRING;
  value.count = static_cast<uint32_t>(one.text.size());
  value.u.s = one.text.c_str();
  return one.name;
}

}  // namespace backplane::cuda

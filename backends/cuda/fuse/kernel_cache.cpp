// Looking for a kernel in the process, then in a file, then compiling it; see kernel_cache.hpp.
#include "fuse/kernel_cache.hpp"

#include "backplane/error.hpp"
#include "backplane/plugin/cache_file.hpp"
#include "fuse/source.hpp"

namespace backplane::cuda {
namespace {

// The oldest capability that the plugin's own PTX runs on: one text for all devices, and the same functions as in the
// ops' kernels.
const std::vector<const char*>& options() {
  static const std::vector<const char*> made{"--gpu-architecture=compute_" BACKPLANE_CUDA_ARCHITECTURE, "--std=c++17",
                                             "--fmad=false", "--diag-suppress=186"};
  return made;
}

// All that PTX follows from but the source.
std::string origin_of(const nvrtc::Functions& library) {
  int major = 0, minor = 0;
  (void)library.nvrtcVersion(&major, &minor);
  std::string text = "NVRTC " + std::to_string(major) + "." + std::to_string(minor);
  for (const char* option : options()) text += std::string(" ") + option;
  std::string headers;
  for (const SourceHeader& header : region_headers()) headers += header.text;
  return text + " headers " + plugin::digits_of_hash(headers) + "\n";
}

std::shared_ptr<const RegionKernel> make(const std::string& source) {
  std::string reason;
  const nvrtc::Functions* library = find_nvrtc(&reason);
  BP_CHECK(library != nullptr, DEVICE, "cuda: NVRTC: ", reason);
  const std::string key = origin_of(*library) + source;
  const std::filesystem::path folder = plugin::cache_folder("BACKPLANE_CUDA_CACHE");
  std::string ptx = plugin::find_kept(folder, "cuda-", key);
  if (ptx.empty()) {
    ptx = compile_to_ptx(*library, source, region_headers(), options());
    plugin::keep(folder, "cuda-", key, ptx);
  }
  return std::make_shared<const RegionKernel>(RegionKernel{"region_" + plugin::name_of_key(key), std::move(ptx)});
}

}  // namespace

std::shared_ptr<const RegionKernel> KernelCache::find(const std::string& source) {
  {
    std::lock_guard lock(mutex_);
    if (std::shared_ptr<const RegionKernel> known = kernels_[source].lock()) return known;
  }
  std::shared_ptr<const RegionKernel> made = make(source);
  std::lock_guard lock(mutex_);
  std::erase_if(kernels_, [](const auto& row) { return row.second.expired(); });
  kernels_[source] = made;
  return made;
}

KernelCache& kernel_cache() {
  static auto* cache = new KernelCache();  // never destroyed: regions may outlive statics
  return *cache;
}

}  // namespace backplane::cuda

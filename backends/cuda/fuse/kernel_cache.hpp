// What NVRTC has made of the sources of regions: once per process, and kept in files by content.
//
// A file is $BACKPLANE_CUDA_CACHE/cuda-<hash> (backplane/plugin/cache_file.hpp describes the default folder, and
// the contents). Any thread may call.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace backplane::cuda {

struct RegionKernel {
  std::string module;  // a name that no other text has
  std::string ptx;
};

class KernelCache {
 public:
  // Throws backplane::Error without NVRTC, or with NVRTC's errors in the source.
  std::shared_ptr<const RegionKernel> find(const std::string& source);

 private:
  std::mutex mutex_;                                                  // guards what follows
  std::map<std::string, std::weak_ptr<const RegionKernel>> kernels_;  // by source
};

KernelCache& kernel_cache();  // the process's

}  // namespace backplane::cuda

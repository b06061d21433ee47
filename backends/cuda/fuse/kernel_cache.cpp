// Looking for a kernel in the process, then in a file, then compiling it; see kernel_cache.hpp.
#include "fuse/kernel_cache.hpp"

#include <cstdint>
#include <string_view>

#include "backplane/error.hpp"
#include "backplane/plugin/cache_file.hpp"
#include "fuse/source.hpp"

namespace backplane::cuda {
namespace {

// FNV-1a (Fowler, Noll and Vo).
uint64_t hash_of(std::string_view text, uint64_t hash = 0xcbf29ce484222325) {
  for (const char c : text) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3;
  return hash;
}
std::string digits(uint64_t value) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (int shift = 60; shift >= 0; shift -= 4) text += kDigits[value >> shift & 15];
  return text;
}

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
  uint64_t hash = hash_of("");
  for (const SourceHeader& header : region_headers()) hash = hash_of(header.text, hash);
  return text + " headers " + digits(hash);
}

// What a file holds before the PTX: "// backplane <hash of the PTX>", then what it follows from.
constexpr std::string_view kMark = "// backplane ";
std::string in_file(const std::string& origin, const std::string& source, const std::string& ptx) {
  return std::string(kMark) + digits(hash_of(ptx)) + " of\n" + origin + "\n" + source + ptx;
}
std::string ptx_in_file(const std::string& bytes, const std::string& origin, const std::string& source) {
  const size_t head = in_file(origin, source, "").size();
  if (bytes.size() <= head) return {};
  const std::string ptx = bytes.substr(head);
  return bytes == in_file(origin, source, ptx) ? ptx : std::string();
}

std::shared_ptr<const RegionKernel> make(const std::string& source) {
  std::string reason;
  const nvrtc::Functions* library = find_nvrtc(&reason);
  BP_CHECK(library != nullptr, DEVICE, "cuda: NVRTC: ", reason);
  const std::string origin = origin_of(*library);
  const uint64_t first = hash_of(source, hash_of(origin));
  const std::string name = digits(first) + digits(hash_of(origin, hash_of(source, ~first)));
  const std::filesystem::path folder = plugin::cache_folder("BACKPLANE_CUDA_CACHE");
  const std::filesystem::path file = folder.empty() ? folder : folder / ("cuda-" + name + ".ptx");
  std::string ptx = file.empty() ? std::string() : ptx_in_file(plugin::read_cache_file(file), origin, source);
  if (ptx.empty()) {
    ptx = compile_to_ptx(*library, source, region_headers(), options());
    if (!file.empty()) plugin::write_cache_file(file, in_file(origin, source, ptx));
  }
  return std::make_shared<const RegionKernel>(RegionKernel{"region_" + name, std::move(ptx)});
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

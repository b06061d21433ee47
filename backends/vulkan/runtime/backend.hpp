// The backend: the Vulkan instance, the devices that can serve, and the backend's table.
//
// Nothing starts before device_count is asked for; a device comes to life at its first use. Lives from registration to
// stop. Any thread may call.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "backplane/plugin.hpp"
#include "runtime/features.hpp"
#include "runtime/pinned.hpp"
#include "runtime/stream.hpp"

namespace backplane::vulkan {

inline Stream& as_stream(bp_stream* stream) { return *reinterpret_cast<Stream*>(stream); }

class Backend {
 public:
  explicit Backend(const bp_host* host) : host_(host) {}
  ~Backend();
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;

  bp_backend_def table();
  const bp_host* host() const { return host_; }
  VkInstance instance() const { return instance_; }

  // How many devices can serve; where there are none, `reason` says why.
  int32_t count(std::string& reason);
  VkPhysicalDevice physical(int32_t ordinal);  // throws Error(BP_ERROR_VALUE)
  Device& device(int32_t ordinal);             // likewise; starts it
  const Device* started(int32_t ordinal);      // nullptr: it is not
  void* allocate_pinned(uint64_t size);
  void release_pinned(void* data);
  PinnedMemory& pinned() { return pinned_; }
  const Facts& facts(int32_t ordinal);                                  // likewise; does not start it
  void keep(std::shared_ptr<void> table) { kept_ = std::move(table); }  // what rows of kernels point into

 private:
  void start();

  const bp_host* host_;
  std::shared_ptr<void> kept_;
  PinnedMemory pinned_;
  std::mutex mutex_;  // guards what follows
  bool started_ = false;
  std::string reason_;
  VkInstance instance_ = VK_NULL_HANDLE;
  std::vector<VkPhysicalDevice> physical_;
  std::vector<std::unique_ptr<Device>> devices_;
  std::vector<std::unique_ptr<Facts>> facts_;
};

}  // namespace backplane::vulkan

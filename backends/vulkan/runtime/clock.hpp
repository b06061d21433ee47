// A device's clock: when its streams came to positions of theirs, as the extension "time" asks for it.
//
// A stamp is a query of a pool. Any thread may call `read` and `drop`; the calls of one stream are serialised.
#pragma once

#include <vulkan/vulkan.h>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace backplane::vulkan {

class Stream;

struct Stamp {
  VkQueryPool pool = VK_NULL_HANDLE;
  uint32_t query = 0;
};

class Clock {
 public:
  Clock(VkPhysicalDevice physical, VkDevice device);
  ~Clock();
  Clock(const Clock&) = delete;
  Clock& operator=(const Clock&) = delete;

  Stamp& stamp(Stream& stream);       // throws backplane::Error where the device has no timestamps
  uint64_t read(const Stamp& stamp);  // nanoseconds; its work has ended
  void drop(Stamp& stamp);            // its work may still run

 private:
  void add_pool();
  bool is_over(const Stamp& stamp, uint64_t& ticks) const;

  VkDevice device_;
  uint32_t bits_;       // of a timestamp
  double period_;       // ns of a tick
  std::mutex mutex_;    // guards what follows
  uint64_t ticks_ = 0;  // of the stamp read last, beyond the width of a timestamp
  std::optional<uint64_t> first_;
  std::vector<VkQueryPool> pools_;
  std::map<Stamp*, std::unique_ptr<Stamp>> given_;
  std::vector<Stamp> spare_, dropped_;  // those of `dropped_` may still be written
};

}  // namespace backplane::vulkan

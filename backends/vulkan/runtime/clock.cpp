// Timestamps and their queries; see clock.hpp.
#include "runtime/clock.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "runtime/check.hpp"
#include "runtime/stream.hpp"

namespace backplane::vulkan {
namespace {

constexpr uint32_t kQueries = 64;          // of a pool
constexpr int64_t kFirst = 1'000'000'000;  // ns at the stamp that is read first

}  // namespace

Clock::Clock(VkPhysicalDevice physical, VkDevice device) : device_(device), bits_(Device::timestamp_bits(physical)) {
  VkPhysicalDeviceProperties properties;
  vkGetPhysicalDeviceProperties(physical, &properties);
  period_ = double{properties.limits.timestampPeriod};
}

Clock::~Clock() {
  for (VkQueryPool pool : pools_) vkDestroyQueryPool(device_, pool, nullptr);
}

void Clock::add_pool() {
  VkQueryPoolCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO;
  info.queryType = VK_QUERY_TYPE_TIMESTAMP;
  info.queryCount = kQueries;
  pools_.reserve(pools_.size() + 1);
  spare_.reserve(spare_.size() + kQueries);
  VkQueryPool pool = VK_NULL_HANDLE;
  check(vkCreateQueryPool(device_, &info, nullptr, &pool), "vkCreateQueryPool");
  pools_.push_back(pool);
  for (uint32_t query = 0; query < kQueries; ++query) spare_.push_back({pool, query});
}

bool Clock::is_over(const Stamp& stamp, uint64_t& ticks) const {
  std::array<uint64_t, 2> found{};  // the ticks; other than 0 once they are there
  const VkResult result =
      vkGetQueryPoolResults(device_, stamp.pool, stamp.query, 1, sizeof(found), found.data(), sizeof(found),
                            VK_QUERY_RESULT_64_BIT | VK_QUERY_RESULT_WITH_AVAILABILITY_BIT);
  if (result != VK_NOT_READY) check(result, "vkGetQueryPoolResults");
  ticks = found[0];
  return found[1] != 0;
}

Stamp& Clock::stamp(Stream& stream) {
  BP_CHECK(bits_ > 0, NOT_IMPLEMENTED,
           "vulkan: the device writes no timestamps on its compute queue. Fix: synchronize, "
           "and use the host's clock");
  auto owned = std::make_unique<Stamp>();
  Stamp* const made = owned.get();
  {
    std::lock_guard lock(mutex_);
    uint64_t ticks = 0;
    const auto over = [&](const Stamp& stamp) { return is_over(stamp, ticks); };
    const auto running = std::partition(dropped_.begin(), dropped_.end(), over);
    spare_.insert(spare_.end(), dropped_.begin(), running);
    dropped_.erase(dropped_.begin(), running);
    if (spare_.empty()) add_pool();
    given_.emplace(made, std::move(owned));
    *made = spare_.back();
    spare_.pop_back();
  }
  vkResetQueryPool(device_, made->pool, made->query, 1);
  stream.write_timestamp(made->pool, made->query);
  return *made;
}

uint64_t Clock::read(const Stamp& stamp) {
  std::lock_guard lock(mutex_);
  uint64_t ticks = 0;
  BP_CHECK(is_over(stamp, ticks), INTERNAL, "vulkan: a time stamp was read before its work had ended");
  // From the last one the shorter way round: a counter of 36 bits wraps within hours.
  const uint32_t unused = 64 - bits_;
  ticks_ += static_cast<uint64_t>(static_cast<int64_t>((ticks - ticks_) << unused) >> unused);
  if (!first_) first_ = ticks_;
  const auto since = static_cast<double>(static_cast<int64_t>(ticks_ - *first_));
  return static_cast<uint64_t>(kFirst + std::llround(since * period_));
}

void Clock::drop(Stamp& stamp) {
  std::lock_guard lock(mutex_);
  dropped_.push_back(stamp);
  given_.erase(&stamp);
}

}  // namespace backplane::vulkan

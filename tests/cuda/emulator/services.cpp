// Work and memory for the stand-ins of CUDA's libraries; see services.hpp.
#include "services.hpp"

#include <algorithm>

#include "entries.hpp"
#include "memory.hpp"

namespace emulator {

bool record_work(void* stream, std::function<void()> work) {
  Device& device = Device::instance();
  std::lock_guard lock(device.mutex);
  const Context* context = current_context();
  const auto found =
      std::find_if(device.streams.begin(), device.streams.end(), [&](const auto& one) { return one.get() == stream; });
  if (!context || context->lost || found == device.streams.end() || (*found)->device != context->device) return false;
  device.record(**found, std::move(work));
  return true;
}

const void* readable(const void* address, uint64_t bytes) {
  const auto at = reinterpret_cast<uint64_t>(address);
  Memory::instance().check_range("a library reads", at, bytes);
  Memory::instance().check_read(at, bytes);
  return address;
}

void* writable(void* address, uint64_t bytes) {
  const auto at = reinterpret_cast<uint64_t>(address);
  Memory::instance().check_range("a library writes", at, bytes);
  Memory::instance().write(at, bytes);
  return address;
}

void end_with_fault(const std::string& what) { throw Fault(719, what); }

}  // namespace emulator

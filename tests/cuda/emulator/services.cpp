// Work and memory for the stand-ins of CUDA's libraries; see services.hpp.
#include "services.hpp"

#include "entries.hpp"
#include "memory.hpp"

namespace emulator {

bool record_work(void* stream, std::function<void()> work) {
  Device& device = Device::instance();
  std::lock_guard lock(device.mutex);
  const Context* context = current_context();
  int refused = 0;
  if (!context || context->lost) return false;
  const auto found = find_stream("a library", static_cast<driver::Stream>(stream), *context, refused);
  if (found) device.record(*found, std::move(work));
  return found != nullptr;
}

bool record_joint_work(void* stream, int size, std::shared_ptr<void>& joint, std::function<void()> work) {
  Device& device = Device::instance();
  std::lock_guard lock(device.mutex);
  const Context* context = current_context();
  int refused = 0;
  if (!context || context->lost) return false;
  const auto found = find_stream("a library", static_cast<driver::Stream>(stream), *context, refused);
  if (!found) return false;
  if (!joint) joint = std::make_shared<Joint>(Joint{size, {}});
  const auto own = std::static_pointer_cast<Joint>(joint);
  own->work = std::move(work);
  device.join(*found, own);
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

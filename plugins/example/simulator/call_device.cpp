// What of a call depends on the device: its memory and its queue.
#include <utility>

#include "call.hpp"
#include "device.hpp"

namespace sim {
namespace {

Backend& backend_of(const bp_frame& frame) { return *static_cast<Backend*>(frame.context); }

}  // namespace

uint64_t Call::alignment() const { return backend_of(frame_).alignment(); }

char* Call::resolve(const Touch& touch) const {
  return backend_of(frame_).device(frame_.ordinal).memory.resolve(touch.block, touch.offset, touch.size);
}

void Call::record(std::function<void()> work) const {
  reinterpret_cast<Queue*>(frame_.stream)->record(frame_.ticket, std::move(work));
}

}  // namespace sim

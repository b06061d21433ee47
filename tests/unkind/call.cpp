// The device's side of the simulator's kernels (see call.hpp there): memory, and the end of the queue.
#include "call.hpp"

#include <utility>

#include "device.hpp"

namespace sim {
namespace {

unkind::Backend& backend_of(const bp_frame& frame) { return *static_cast<unkind::Backend*>(frame.context); }

}  // namespace

uint64_t Call::alignment() const { return backend_of(frame_).alignment(); }

char* Call::resolve(const Touch& touch) const {
  unkind::Backend& backend = backend_of(frame_);
  std::vector<unkind::Range> unused;
  return backend.scheduler().resolve(backend.device(frame_.ordinal), touch, unused);
}

void Call::record(std::function<void()> work) const {
  unkind::Backend& backend = backend_of(frame_);
  unkind::Item item;
  item.ticket = frame_.ticket;
  item.what = frame_.op->name;
  item.work = std::move(work);
  for (const Touch& touch : touched_) backend.scheduler().resolve(backend.device(frame_.ordinal), touch, item.ranges);
  backend.scheduler().record(unkind::queue_of(frame_.stream), std::move(item));
}

}  // namespace sim

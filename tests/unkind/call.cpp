// The device's side of the simulator's kernels (see call.hpp there): memory, and the end of the queue.
#include "call.hpp"

#include <cstring>
#include <memory>
#include <utility>

#include "device.hpp"

namespace sim {
namespace {

constexpr uint64_t kScratch = 256;
constexpr char kEarly = 0x21, kLate = 0x42;

unkind::Backend& backend_of(const bp_frame& frame) { return *static_cast<unkind::Backend*>(frame.context); }

}  // namespace

uint64_t Call::alignment() const { return backend_of(frame_).alignment(); }

char* Call::resolve(const Touch& touch) const {
  unkind::Backend& backend = backend_of(frame_);
  std::vector<unkind::Range> unused;
  return backend.scheduler().resolve(backend.device(frame_.ordinal), touch, unused);
}

// In two pieces under one ticket, each with scratch memory of its own: the first fills both, the second finds them as
// they were.
void Call::record(std::function<void()> work) const {
  unkind::Backend& backend = backend_of(frame_);
  unkind::Scheduler& scheduler = backend.scheduler();
  unkind::Device& device = backend.device(frame_.ordinal);
  unkind::Item first, second;
  first.ticket = second.ticket = frame_.ticket;
  first.what = second.what = frame_.op->name;
  const auto take = [&] {
    const Touch touch{backplane::plugin::Context{&frame_}.scratch(kScratch), 0, kScratch, true};
    char* bytes = scheduler.resolve(device, touch, first.ranges);
    second.ranges.push_back(first.ranges.back());
    return bytes;
  };
  char* early = take();
  const auto filled = std::make_shared<bool>(false);  // not where the first piece fails, and the ticket with it
  first.work = [early, filled] {
    std::memset(early, kEarly, kScratch);
    *filled = true;
  };
  scheduler.record(unkind::queue_of(frame_.stream), first);
  char* late = take();
  for (const Touch& touch : touched_) scheduler.resolve(device, touch, second.ranges);
  second.work = [&scheduler, early, late, filled, what = second.what, work = std::move(work)] {
    if (!*filled) return;
    std::memset(late, kLate, kScratch);
    work();
    for (uint64_t i = 0; i < kScratch; ++i)
      if (early[i] != kEarly || late[i] != kLate)
        return scheduler.findings().add("scratch memory of " + what + " was overwritten");
  };
  scheduler.record(unkind::queue_of(frame_.stream), std::move(second));
}

}  // namespace sim

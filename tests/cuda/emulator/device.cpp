// The order of recorded work; see device.hpp.
#include "device.hpp"

#include <cstdio>
#include <cstdlib>

namespace emulator {

Device::Device() {
  const char* seed = std::getenv("BACKPLANE_EMULATOR_SEED");
  random.seed(seed ? std::strtoull(seed, nullptr, 10) : 1);
  // "57:700": the 57th call of an entry point gives the driver's error 700.
  if (const char* fail = std::getenv("BACKPLANE_EMULATOR_FAIL")) {
    char* end = nullptr;
    fail_at = std::strtoull(fail, &end, 10);
    fail_with = *end == ':' ? static_cast<int>(std::strtol(end + 1, nullptr, 10)) : 999;
  }
  for (int k = 0; k < kDevices; ++k) contexts[k].device = k;
}

Device& Device::instance() {
  static Device* device = new Device();  // outlives the process's other statics
  return *device;
}

std::vector<Context*>& Device::current() {
  static thread_local std::vector<Context*> stack;
  return stack;
}

void Device::record(Stream& stream, std::function<void()> work) {
  stream.tasks.push_back({std::move(work), nullptr, 0});
}

void Device::wait_for(Stream& stream, std::shared_ptr<Event> event) {
  const uint64_t recording = event->recorded;
  stream.tasks.push_back({nullptr, std::move(event), recording});
}

// One task of some stream whose turn it is. False: none can run.
bool Device::run_one() {
  std::vector<Stream*> ready;
  for (const auto& stream : streams) {
    while (!stream->tasks.empty() && stream->tasks.front().waits_for &&
           stream->tasks.front().waits_for->done >= stream->tasks.front().recording)
      stream->tasks.pop_front();
    if (!stream->tasks.empty() && !stream->tasks.front().waits_for) ready.push_back(stream.get());
  }
  if (ready.empty()) return false;
  Stream& stream = *ready[ready.size() == 1 ? 0 : random() % ready.size()];
  const auto work = std::move(stream.tasks.front().work);
  stream.tasks.pop_front();
  Context& context = contexts[stream.device];
  if (context.lost) return true;  // nothing runs any more
  try {
    work();
  } catch (const Fault& fault) {
    std::fprintf(stderr, "emulated driver: %s\n", fault.what());
    context.lost = fault;
  }
  return true;
}

void Device::run(const std::function<bool()>& until) {
  while (!until() && run_one()) {
  }
}

void Device::run_some() {
  for (uint64_t turns = random() % 8; turns > 0 && run_one(); --turns) {
  }
}

}  // namespace emulator

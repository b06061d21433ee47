// The order of recorded work; see device.hpp.
#include "device.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "memory.hpp"

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

void Device::record(Stream& stream, Work work) {
  if (stream.capture) return stream.capture->works.push_back(std::move(work));
  stream.tasks.push_back({std::move(work), nullptr, 0, false});
  if (waiting_on_host_ > 0) changed_.notify_all();
}

void Device::record_on_host(Stream& stream, Work work) {
  stream.tasks.push_back({std::move(work), nullptr, 0, true});
  ++waiting_on_host_;
  if (!serving_) std::thread([this] { serve(); }).detach();
  serving_ = true;
  changed_.notify_all();
}

void Device::wait_for(Stream& stream, std::shared_ptr<Event> event) {
  const uint64_t recording = event->recorded;
  stream.tasks.push_back({nullptr, std::move(event), recording, false});
}

void Device::join(Stream& stream, std::shared_ptr<Joint> joint) {
  if (joint->recorded == 0) {
    joint->done->recorded = 1;
    joint->done->device = stream.device;
    ++busy_;
  }
  ++joint->recorded;
  record(stream, [joint] {
    if (++joint->reached < joint->size) return;
    Memory::instance().look_from_everywhere();
    joint->work();
    joint->done->done = 1;
  });
  wait_for(stream, joint->done);
  if (joint->recorded == joint->size) --busy_;
  changed_.notify_all();
}

// All but the function that runs.
void Device::clear(Stream& stream) {
  stream.hung = false;
  while (stream.tasks.size() > size_t{stream.busy}) {
    waiting_on_host_ -= stream.tasks.back().on_host;
    stream.tasks.pop_back();
  }
}

void Device::drop(int device) {
  for (const auto& [handle, stream] : streams.living())
    if (stream->device == device) clear(*stream);
  changed_.notify_all();
  run([this, device] {
    return std::none_of(streams.living().begin(), streams.living().end(),
                        [device](const auto& row) { return row.second->device == device && row.second->busy; });
  });
}

// Passes waits that are satisfied. A lost device satisfies no wait, and runs no work.
bool Device::is_ready(Stream& stream) {
  if (contexts[stream.device].lost) clear(stream);
  const auto has_come = [this](const Stream::Task& task) {
    const Event& event = *task.waits_for;
    return event.done >= task.recording || contexts[event.device].lost;
  };
  while (!stream.tasks.empty() && stream.tasks.front().waits_for && has_come(stream.tasks.front()))
    stream.tasks.pop_front();
  return !stream.busy && !stream.hung && !stream.tasks.empty() && !stream.tasks.front().waits_for;
}

bool Device::is_hung() const {
  return std::any_of(streams.living().begin(), streams.living().end(),
                     [](const auto& row) { return row.second->hung; });
}

// One task of some stream whose turn it is. False: none can run.
bool Device::run_one() {
  std::vector<std::shared_ptr<Stream>> ready;
  for (const auto& [handle, stream] : streams.living())
    if (is_ready(*stream)) ready.push_back(stream);
  if (ready.empty()) return false;
  const auto later = [&ready](const auto& one) {
    return std::any_of(ready.begin(), ready.end(), [&](const auto& other) {
      return other->device == one->device && other->priority < one->priority;
    });
  };
  std::vector<std::shared_ptr<Stream>> first;
  std::remove_copy_if(ready.begin(), ready.end(), std::back_inserter(first), later);
  std::shared_ptr<Stream> stream = first[first.size() == 1 ? 0 : random() % first.size()];
  if (stream->tasks.front().on_host) {
    stream->busy = true, ++busy_;
    on_host_.push_back(std::move(stream));
    changed_.notify_all();
    return true;
  }
  Work work = std::move(stream->tasks.front().work);
  stream->tasks.pop_front();
  Context& context = contexts[stream->device];
  Memory::instance().look_from(context.device, context.peers);
  try {
    work();
  } catch (const Fault& fault) {
    std::fprintf(stderr, "emulated driver: %s\n", fault.what());
    context.lost = fault;
  } catch (const NeverEnds&) {
    stream->hung = true;
    stream->tasks.push_front({std::move(work), nullptr, 0, false});
  }
  Memory::instance().look_from_everywhere();
  return true;
}

void Device::run(const std::function<bool()>& until) {
  while (!until()) {
    if (run_one()) continue;
    if (busy_ == 0 && !is_hung()) return;
    changed_.wait(mutex);
  }
}

void Device::run_some() {
  for (uint64_t turns = random() % 8; turns > 0 && run_one(); --turns) {
  }
}

// The driver's thread. Others may record between two tasks.
void Device::serve() {
  mutex.lock();
  while (true) {
    while (waiting_on_host_ == 0) changed_.wait(mutex);
    if (on_host_.empty()) {
      if (!run_one()) changed_.wait(mutex);
      mutex.unlock();
      std::this_thread::yield();
      mutex.lock();
      continue;
    }
    const std::shared_ptr<Stream> stream = std::move(on_host_.back());
    on_host_.pop_back();
    const Work work = std::move(stream->tasks.front().work);
    mutex.unlock();
    work();
    mutex.lock();
    stream->tasks.pop_front();
    stream->busy = false;
    --busy_, --waiting_on_host_;
    changed_.notify_all();
  }
}

}  // namespace emulator

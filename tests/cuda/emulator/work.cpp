// The entry points of libcuda.so.1 that record work, and those that wait for it.
#include <algorithm>
#include <cstring>

#include "entries.hpp"

using namespace emulator;

namespace {

constexpr uint64_t kMostThreads = 1024, kMostShared = 48 << 10;

Stream* find_stream(driver::Stream handle) {
  auto& streams = Device::instance().streams;
  const auto found = std::find_if(streams.begin(), streams.end(),
                                  [&](const auto& one) { return one.get() == reinterpret_cast<Stream*>(handle); });
  return found == streams.end() ? nullptr : found->get();
}

using EventHandle = std::shared_ptr<Event>;
EventHandle& event_of(driver::Event handle) { return *reinterpret_cast<EventHandle*>(handle); }

// Checks made when the copy runs: the memory must still be there then.
void copy_in(uint64_t to, const void* from, size_t bytes) {
  Memory::instance().check_range("a copy writes", to, bytes);
  std::memcpy(reinterpret_cast<void*>(to), from, bytes);
  Memory::instance().write(to, bytes);
}
void copy_out(void* to, uint64_t from, size_t bytes) {
  Memory::instance().check_range("a copy reads", from, bytes);
  std::memcpy(to, reinterpret_cast<const void*>(from), bytes);
}
void copy_within(uint64_t to, uint64_t from, size_t bytes) {
  Memory::instance().check_range("a copy writes", to, bytes);
  Memory::instance().check_range("a copy reads", from, bytes);
  std::memmove(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes);
  Memory::instance().copy_states(to, from, bytes);
}

}  // namespace

extern "C" {

int cuLaunchKernel(driver::Function function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                   unsigned block_y, unsigned block_z, unsigned shared_bytes, driver::Stream stream, void** parameters,
                   void** extra) {
  BP_EMULATOR_ENTER_CONTEXT(cuLaunchKernel);
  const auto* entry = reinterpret_cast<const Function*>(function);
  Stream* on = find_stream(stream);
  if (!on || extra) return 400;
  Launch launch{nullptr, entry, {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared_bytes, {}};
  if (launch.grid.count() == 0 || grid_x > INT32_MAX || grid_y > 65535 || grid_z > 65535) return 1;
  if (launch.block.count() == 0 || launch.block.count() > kMostThreads) return 1;
  if (entry->shared_bytes + uint64_t{shared_bytes} > kMostShared || entry->parameter_bytes > 4096) return 1;
  launch.parameters.resize((entry->parameter_bytes + 15) / 16 * 16);
  for (size_t k = 0; k < entry->parameters.size(); ++k)
    std::memcpy(launch.parameters.data() + entry->parameters[k].offset, parameters[k], entry->parameters[k].size);
  ++Device::instance().launches;
  Device::instance().record(*on, [launch = std::move(launch)] { run_grid(launch, Device::instance().random); });
  return 0;
}

int cuMemcpyHtoDAsync_v2(unsigned long long to, const void* from, size_t bytes, driver::Stream stream) {
  BP_EMULATOR_ENTER_CONTEXT(cuMemcpyHtoDAsync);
  Stream* on = find_stream(stream);
  if (!on) return 400;
  // Pageable memory has been read when the call returns; pinned memory is read when the copy runs.
  if (in_host_block(reinterpret_cast<uint64_t>(from), bytes)) {
    Device::instance().record(*on, [=] { copy_in(to, from, bytes); });
  } else {
    const auto* begin = static_cast<const char*>(from);
    Device::instance().record(
        *on, [to, bytes, held = std::vector<char>(begin, begin + bytes)] { copy_in(to, held.data(), bytes); });
  }
  return 0;
}
int cuMemcpyDtoHAsync_v2(void* to, unsigned long long from, size_t bytes, driver::Stream stream) {
  BP_EMULATOR_ENTER_CONTEXT(cuMemcpyDtoHAsync);
  Stream* on = find_stream(stream);
  if (!on) return 400;
  Device::instance().record(*on, [=] { copy_out(to, from, bytes); });
  return 0;
}
int cuMemcpyDtoDAsync_v2(unsigned long long to, unsigned long long from, size_t bytes, driver::Stream stream) {
  BP_EMULATOR_ENTER_CONTEXT(cuMemcpyDtoDAsync);
  Stream* on = find_stream(stream);
  if (!on) return 400;
  Device::instance().record(*on, [=] { copy_within(to, from, bytes); });
  return 0;
}

int cuStreamCreate(driver::Stream* stream, unsigned) {
  BP_EMULATOR_ENTER_CONTEXT(cuStreamCreate);
  auto made = std::make_unique<Stream>();
  made->device = context->device;
  *stream = reinterpret_cast<driver::Stream>(made.get());
  Device::instance().streams.insert(std::move(made));
  return 0;
}
int cuStreamDestroy_v2(driver::Stream stream) {
  BP_EMULATOR_ENTER(cuStreamDestroy);
  Stream* on = find_stream(stream);
  if (!on) return 400;
  Device::instance().run([&] { return on->tasks.empty(); });
  auto& streams = Device::instance().streams;
  streams.erase(std::find_if(streams.begin(), streams.end(), [&](const auto& one) { return one.get() == on; }));
  return 0;
}
int cuStreamSynchronize(driver::Stream stream) {
  BP_EMULATOR_ENTER_CONTEXT(cuStreamSynchronize);
  Stream* on = find_stream(stream);
  if (!on) return 400;
  Device::instance().run([&] { return on->tasks.empty(); });
  return context->lost ? context->lost->code : 0;
}
int cuStreamWaitEvent(driver::Stream stream, driver::Event event, unsigned) {
  BP_EMULATOR_ENTER_CONTEXT(cuStreamWaitEvent);
  Stream* on = find_stream(stream);
  if (!on) return 400;
  Device::instance().wait_for(*on, event_of(event));
  return 0;
}

int cuEventCreate(driver::Event* event, unsigned) {
  BP_EMULATOR_ENTER_CONTEXT(cuEventCreate);
  *event = reinterpret_cast<driver::Event>(new EventHandle(std::make_shared<Event>()));
  return 0;
}
int cuEventDestroy_v2(driver::Event event) {
  BP_EMULATOR_ENTER(cuEventDestroy);
  delete &event_of(event);
  return 0;
}
int cuEventRecord(driver::Event event, driver::Stream stream) {
  BP_EMULATOR_ENTER_CONTEXT(cuEventRecord);
  Stream* on = find_stream(stream);
  if (!on) return 400;
  EventHandle held = event_of(event);
  const uint64_t recording = ++held->recorded;
  Device::instance().record(*on, [held, recording] { held->done = std::max(held->done, recording); });
  return 0;
}
int cuEventQuery(driver::Event event) {
  BP_EMULATOR_ENTER_CONTEXT(cuEventQuery);
  Device::instance().run_some();
  if (context->lost) return context->lost->code;
  return event_of(event)->done == event_of(event)->recorded ? 0 : 600;
}
int cuEventSynchronize(driver::Event event) {
  BP_EMULATOR_ENTER_CONTEXT(cuEventSynchronize);
  const EventHandle held = event_of(event);
  const uint64_t recording = held->recorded;
  Device::instance().run([&] { return held->done >= recording || context->lost.has_value(); });
  return context->lost ? context->lost->code : 0;
}

}  // extern "C"

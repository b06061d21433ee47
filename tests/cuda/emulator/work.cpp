// The entry points of libcuda.so.1 that record work: launches and copies. Their memory is checked when they run,
// because it must still exist then.
#include <algorithm>
#include <cstring>

#include "entries.hpp"

using namespace emulator;

namespace {

constexpr uint64_t kMostThreads = 1024, kMostShared = 48 << 10;

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
void fill(uint64_t to, unsigned char value, size_t bytes) {
  Memory::instance().check_range("a fill writes", to, bytes);
  std::memset(reinterpret_cast<void*>(to), value, bytes);
  Memory::instance().write(to, bytes);
}

// The block of locked host memory that a copy found when it was recorded must be the one that is there.
void check_host_block(const char* verb, const void* memory, size_t bytes, uint64_t number) {
  if (host_block_of(memory, bytes) != number)
    throw Fault(700, std::string("a copy ") + verb + " " + std::to_string(bytes) +
                         " bytes of the host's memory that were locked when it was recorded, and are no longer");
}

int refuse_pageable(const char* call, Capture& capture) {
  (void)refuse(call, "the replay would touch host memory that is not locked, and may be gone", 900);
  return break_capture(call, capture, 900);
}

}  // namespace

extern "C" {

int cuLaunchKernel(driver::Function function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                   unsigned block_y, unsigned block_z, unsigned shared_bytes, driver::Stream stream, void** parameters,
                   void** extra) {
  BP_EMULATOR_ENTER_STREAM(cuLaunchKernel, stream);
  const auto* entry = reinterpret_cast<const Function*>(function);
  if (extra) return 400;
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
  BP_EMULATOR_ENTER_STREAM(cuMemcpyHtoDAsync, stream);
  // Pageable memory has been read when the call returns; locked memory is read when the copy runs.
  if (const uint64_t number = host_block_of(from, bytes)) {
    Device::instance().record(*on, [=] {
      check_host_block("reads", from, bytes, number);
      copy_in(to, from, bytes);
    });
    return 0;
  }
  if (on->capture) return refuse_pageable("cuMemcpyHtoDAsync", *on->capture);
  const auto* begin = static_cast<const char*>(from);
  Device::instance().record(
      *on, [to, bytes, held = std::vector<char>(begin, begin + bytes)] { copy_in(to, held.data(), bytes); });
  return 0;
}
int cuMemcpyDtoHAsync_v2(void* to, unsigned long long from, size_t bytes, driver::Stream stream) {
  BP_EMULATOR_ENTER_STREAM(cuMemcpyDtoHAsync, stream);
  const uint64_t number = host_block_of(to, bytes);
  if (number == 0 && on->capture) return refuse_pageable("cuMemcpyDtoHAsync", *on->capture);
  Device::instance().record(*on, [=] {
    check_host_block("writes", to, bytes, number);
    copy_out(to, from, bytes);
  });
  return 0;
}
int cuMemcpyDtoDAsync_v2(unsigned long long to, unsigned long long from, size_t bytes, driver::Stream stream) {
  BP_EMULATOR_ENTER_STREAM(cuMemcpyDtoDAsync, stream);
  Device::instance().record(*on, [=] { copy_within(to, from, bytes); });
  return 0;
}
// Without access to the peer the driver goes through the host, unseen: a program that means to avoid that has forgotten
// cuCtxEnablePeerAccess.
int cuMemcpyPeerAsync(unsigned long long to, driver::Context to_context, unsigned long long from,
                      driver::Context from_context, size_t bytes, driver::Stream stream) {
  BP_EMULATOR_ENTER_STREAM(cuMemcpyPeerAsync, stream);
  const int target = reinterpret_cast<Context*>(to_context)->device;
  const int source = reinterpret_cast<Context*>(from_context)->device;
  if (Memory::instance().device_at(to) != target || Memory::instance().device_at(from) != source)
    return refuse("cuMemcpyPeerAsync", "a pointer is not of the context that is given with it", 1);
  for (const int other : {target, source})
    if (other != context->device && !(context->peers & 1u << other))
      return refuse("cuMemcpyPeerAsync", "the context has no access to its peer's memory", 705);
  if (on->capture) return refuse("cuMemcpyPeerAsync", "a capture of copies between devices is not emulated", 801);
  Device::instance().record(*on, [=] { copy_within(to, from, bytes); });
  return 0;
}
int cuMemsetD8Async(unsigned long long to, unsigned char value, size_t bytes, driver::Stream stream) {
  BP_EMULATOR_ENTER_STREAM(cuMemsetD8Async, stream);
  Device::instance().record(*on, [=] { fill(to, value, bytes); });
  return 0;
}

}  // extern "C"

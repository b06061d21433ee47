// What every entry point begins with: the lock, the count of calls, the call that is to fail, a lost context; and what
// several of them share.
#pragma once

#include <cstdio>

#include "device.hpp"
#include "driver/driver.hpp"
#include "memory.hpp"

namespace driver = backplane::cuda::driver;

namespace emulator {

inline constexpr uint64_t kMemoryOfADevice = uint64_t{4} << 30;
inline constexpr int kGreatestPriority = -2;

int enter(const char* name);
Context* current_context();

// Says on standard error what hardware would not, and gives `code`.
int refuse(const char* call, const std::string& what, int code);
// The same for an invalid handle: the driver would read the memory there.
template <class T>
int refuse_handle(const char* call, const Handles<T>& handles, const void* handle, const char* kind) {
  return refuse(call, std::string("the ") + kind + (handles.was_destroyed(handle) ? " was destroyed" : " is none"),
                400);
}

// A stream that takes work of the current context. Otherwise nullptr, and why.
std::shared_ptr<Stream> find_stream(const char* call, driver::Stream handle, const Context& context, int& failed);
// Of calls that may wait for the device or change what a capture records: refused where the thread captures, or in mode
// global any thread.
int check_not_capturing(const char* call);
int break_capture(const char* call, Capture& capture, int code);

// Of host memory that the driver has locked: the number of the block that holds all of the range.
uint64_t host_block_of(const void* address, uint64_t size);  // 0: none
// What the primary context of a device had.
void drop_host_blocks(int device);
void drop_modules(int device);

}  // namespace emulator

// The emulator has what the plugin asks for, with the plugin's declarations.
extern "C" {
#define BP_EMULATOR_DECLARE(name, parameters) __attribute__((visibility("default"))) int name parameters;
BP_CUDA_DRIVER(BP_EMULATOR_DECLARE)
// What the templates of `backplane new`, and tests, ask for beside it.
BP_EMULATOR_DECLARE(cuCtxSynchronize, ())
BP_EMULATOR_DECLARE(cuStreamCreate, (driver::Stream * stream, unsigned flags))
BP_EMULATOR_DECLARE(cuStreamGetPriority, (driver::Stream stream, int* priority))
BP_EMULATOR_DECLARE(cuStreamSynchronize, (driver::Stream stream))
BP_EMULATOR_DECLARE(cuEventSynchronize, (driver::Event event))
#undef BP_EMULATOR_DECLARE
}

#define BP_EMULATOR_ENTER(name)                               \
  std::lock_guard lock(::emulator::Device::instance().mutex); \
  if (const int failed = ::emulator::enter(#name)) return failed

#define BP_EMULATOR_ENTER_CONTEXT(name)                               \
  BP_EMULATOR_ENTER(name);                                            \
  ::emulator::Context* const context = ::emulator::current_context(); \
  if (!context) return 201;                                           \
  if (context->lost) return context->lost->code

// And a stream that takes work: `on`.
#define BP_EMULATOR_ENTER_STREAM(name, handle)                               \
  BP_EMULATOR_ENTER_CONTEXT(name);                                           \
  int refused = 0;                                                           \
  const auto on = ::emulator::find_stream(#name, handle, *context, refused); \
  if (!on) return refused

// What every entry point begins with: the lock, the count of calls, the call that is to fail, a lost context.
#pragma once

#include <cstdio>

#include "device.hpp"
#include "runtime/driver.hpp"

namespace emulator {

int enter(const char* name);
Context* current_context();
bool in_host_block(uint64_t address, uint64_t size);

}  // namespace emulator

// The emulator has what the plugin asks for, with the plugin's declarations.
extern "C" {
#define BP_EMULATOR_DECLARE(name, parameters) __attribute__((visibility("default"))) int name parameters;
namespace driver = backplane::cuda::driver;
BP_CUDA_DRIVER(BP_EMULATOR_DECLARE)
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

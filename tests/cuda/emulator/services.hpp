// What the stand-ins for CUDA's libraries (tests/cuda/libraries) need of the emulated device, beside the driver's entry
// points: work of their own on its streams, and checked accesses to its memory. A real libcuda.so.1 does not have
// these, so no stand-in loads beside one.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#define BP_EMULATOR_SERVICE __attribute__((visibility("default")))

namespace emulator {

// False: there is no such stream, no current context, or the device is lost. `work` runs in the stream's turn.
BP_EMULATOR_SERVICE bool record_work(void* stream, std::function<void()> work);

// The same on `size` streams, of any devices: each gives its part by the same `joint`, which the first call makes.
// `work`, the last call's, runs once, when the turn of all parts has come; no stream goes on before.
BP_EMULATOR_SERVICE bool record_joint_work(void* stream, int size, std::shared_ptr<void>& joint,
                                           std::function<void()> work);

// Within work. They end it, and lose the device, if the range is not memory of one block; a read also if it has
// not been written.
BP_EMULATOR_SERVICE const void* readable(const void* address, uint64_t bytes);
BP_EMULATOR_SERVICE void* writable(void* address, uint64_t bytes);
[[noreturn]] BP_EMULATOR_SERVICE void end_with_fault(const std::string& what);

}  // namespace emulator

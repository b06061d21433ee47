// Kernels as PTX text, run by the interpreter on memory of the emulated device.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "memory.hpp"
#include "warp.hpp"

namespace emulator {

// A kernel `k` with two pointers, `out` and `in`, in registers %o and %i; `body` is its code. %t is the thread's
// number.
inline std::string kernel_text(const std::string& body, const std::string& before = "") {
  return ".version 8.0\n.target sm_75\n.address_size 64\n" + before +
         ".visible .entry k(.param .u64 out, .param .u64 in)\n{\n"
         ".reg .pred %p<8>; .reg .b16 %h<8>; .reg .b32 %r<16>; .reg .f32 %f<8>; .reg .b64 %d<16>; .reg .b64 %o, %i; "
         ".reg .b32 %t;\n"
         "ld.param.u64 %o, [out]; ld.param.u64 %i, [in]; mov.u32 %t, %tid.x;\n" +
         body + "\nret;\n}\n";
}

class DeviceBlock {
 public:
  explicit DeviceBlock(uint64_t bytes) : address(Memory::instance().allocate(bytes, "a test's block")) {}
  explicit DeviceBlock(const std::vector<uint64_t>& values) : DeviceBlock(values.size() * 8) {
    std::memcpy(reinterpret_cast<void*>(address), values.data(), values.size() * 8);
    Memory::instance().write(address, values.size() * 8);
  }
  ~DeviceBlock() { Memory::instance().free(address); }
  DeviceBlock(const DeviceBlock&) = delete;
  uint64_t at(size_t k) const { return reinterpret_cast<const uint64_t*>(address)[k]; }

  const uint64_t address;
};

inline void run_kernel(const std::string& text, uint64_t out, uint64_t in, Extent block = {}, Extent grid = {},
                       uint64_t seed = 1) {
  const auto module = load_module(text);
  Function& function = *module->functions.at("k");
  decode(*module, function);
  Launch launch{module.get(), &function, grid, block, 0, std::vector<uint8_t>(16)};
  std::memcpy(launch.parameters.data(), &out, 8);
  std::memcpy(launch.parameters.data() + 8, &in, 8);
  std::mt19937_64 random(seed);
  run_grid(launch, random);
}

}  // namespace emulator

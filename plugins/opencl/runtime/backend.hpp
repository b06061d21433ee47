// The backend: its device table over the driver. The one object of this plugin.
#pragma once

#include "stream.hpp"

namespace opencl {

inline constexpr const char* kName = "opencl";

class Backend {
 public:
  void register_on(const backplane::plugin::Registrar& registrar);
  const bp_host* host() const { return host_; }
  Device& device(int32_t ordinal) { return driver.device(ordinal); }

  Driver driver;

 private:
  const bp_host* host_ = nullptr;  // set once, by register_on
};

inline Stream& stream_of(bp_stream* stream) { return *reinterpret_cast<Stream*>(stream); }
inline cl_mem memory_of(void* data) { return static_cast<cl_mem>(data); }

}  // namespace opencl

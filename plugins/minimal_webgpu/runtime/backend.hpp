// The backend: the adapters of WebGPU, and its device table over them. The one object of this plugin.
#pragma once

#include "backplane/plugin.hpp"
#include "runtime/stream.hpp"

namespace minimal {

class Backend {
 public:
  ~Backend();
  void register_on(const backplane::plugin::Registrar& registrar);
  const bp_host* host() const { return host_; }
  int32_t count();  // starts the driver; throws where there is none
  WGPUAdapter adapter(int32_t ordinal);
  Device& device(int32_t ordinal);

 private:
  const bp_host* host_ = nullptr;  // set once, by register_on
  std::mutex mutex_;               // guards what follows
  WGPUInstance instance_ = nullptr;
  std::vector<WGPUAdapter> adapters_;
  std::vector<std::unique_ptr<Device>> devices_;
};

inline Stream& stream_of(bp_stream* stream) { return *reinterpret_cast<Stream*>(stream); }

}  // namespace minimal

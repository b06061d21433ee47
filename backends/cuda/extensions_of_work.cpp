// The extensions about recorded work: capture and replay as CUDA graphs, and the reset of a device.
#include "backplane/plugin/backend.hpp"
#include "extensions.hpp"
#include "runtime/backend.hpp"

namespace backplane::cuda {
namespace {

using plugin::backend_slot;

Recording& as_recording(bp_recording* recording) { return *reinterpret_cast<Recording*>(recording); }

void begin_capture(Backend& backend, int32_t ordinal, bp_stream* stream) {
  const DeviceScope scope(backend.device(ordinal));
  as_stream(stream).begin_capture();
}

void end_capture(Backend& backend, int32_t ordinal, bp_stream* stream, bp_recording** recording) {
  Device& device = backend.device(ordinal);
  const DeviceScope scope(device);
  if (!recording) return as_stream(stream).give_capture_up();
  *recording = reinterpret_cast<bp_recording*>(&device.recordings().add(as_stream(stream).end_capture()));
}

void replay(Backend& backend, int32_t ordinal, bp_recording* recording, bp_stream* stream, uint64_t ticket) {
  const DeviceScope scope(backend.device(ordinal));
  as_recording(recording).replay(as_stream(stream), ticket);
}

void BP_CALL destroy_recording(void* context, int32_t ordinal, bp_recording* recording) {
  Backend& backend = *static_cast<Backend*>(context);
  // The status is dropped: the slot gives none, and only a lost device refuses to be made current.
  (void)plugin::guard(backend.host(), [&] {
    Device& device = backend.device(ordinal);
    const DeviceScope scope(device);
    device.recordings().take(as_recording(recording));
  });
}

void reset_device(Backend& backend, int32_t ordinal) { backend.reset(ordinal); }

}  // namespace

const bp_extension_capture kCapture{BP_HEADER(bp_extension_capture), backend_slot<begin_capture>,
                                    backend_slot<end_capture>, backend_slot<replay>, destroy_recording};
const bp_extension_reset kReset{BP_HEADER(bp_extension_reset), backend_slot<reset_device>};

}  // namespace backplane::cuda

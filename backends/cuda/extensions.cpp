// The extensions about streams and about what a device is, and the list of all; see extensions.hpp.
#include "extensions.hpp"

#include <cstring>

#include "backplane/abi/device_extensions.h"
#include "backplane/plugin/backend.hpp"
#include "fuse/compiler.hpp"
#include "runtime/backend.hpp"

namespace backplane::cuda {
namespace {

using plugin::backend_slot;

// ---- streams: of CUDA's priorities the smaller goes first, of the contract's the greater

void priorities(Backend& backend, int32_t ordinal, int32_t* least, int32_t* greatest) {
  const DeviceScope scope(backend.device(ordinal));
  int cuda_least = 0, cuda_greatest = 0;
  check(the_driver().cuCtxGetStreamPriorityRange(&cuda_least, &cuda_greatest), "cuCtxGetStreamPriorityRange");
  *least = -cuda_least;
  *greatest = -cuda_greatest;
}

void create(Backend& backend, int32_t ordinal, int32_t priority, bp_stream** stream) {
  Device& device = backend.device(ordinal);
  const DeviceScope scope(device);
  *stream = as_handle(device.streams().add(std::make_unique<Stream>(the_driver(), device.aborted(), -priority)));
}

void import_handle(Backend& backend, int32_t ordinal, void* handle, bp_stream** stream) {
  Device& device = backend.device(ordinal);
  const DeviceScope scope(device);
  const auto theirs = static_cast<driver::Stream>(handle);
  driver::Context context = nullptr;
  check(the_driver().cuStreamGetCtx(theirs, &context), "cuStreamGetCtx");
  BP_CHECK(
      context == device.context(), VALUE, "cuda: the CUstream ", handle,
      " is not a stream of this device's primary context. Fix: make it with that context current, as CUDA's runtime "
      "does");
  *stream = as_handle(device.streams().add(std::make_unique<Stream>(the_driver(), device.aborted(), theirs)));
}

void handle(Backend&, int32_t, bp_stream* stream, void** out) { *out = as_stream(stream).handle(); }

const bp_extension_streams kStreams{BP_HEADER(bp_extension_streams), backend_slot<priorities>, backend_slot<create>,
                                    backend_slot<import_handle>, backend_slot<handle>};

// ---- events: the vendor's, which others record and wait for

void wait_for_event(Backend& backend, int32_t ordinal, bp_stream* stream, uint64_t, void* event) {
  const DeviceScope scope(backend.device(ordinal));
  check(the_driver().cuStreamWaitEvent(as_stream(stream).handle(), static_cast<driver::Event>(event), 0),
        "cuStreamWaitEvent");
}

void record_event(Backend& backend, int32_t ordinal, bp_stream* stream, uint64_t, void** out) {
  const DeviceScope scope(backend.device(ordinal));
  driver::Event made = nullptr;
  check(the_driver().cuEventCreate(&made, driver::kEventDisableTiming), "cuEventCreate");
  const driver::Result recorded = the_driver().cuEventRecord(made, as_stream(stream).handle());
  if (recorded != driver::kSuccess) (void)the_driver().cuEventDestroy_v2(made);
  check(recorded, "cuEventRecord");
  *out = made;
}

void BP_CALL release_event(void* context, int32_t ordinal, void* event) {
  Backend& backend = *static_cast<Backend*>(context);
  // The status is dropped: the slot gives none. The events of a device that was given up end with its context.
  (void)plugin::guard(backend.host(), [&] {
    const DeviceScope scope(backend.device(ordinal));
    (void)the_driver().cuEventDestroy_v2(static_cast<driver::Event>(event));
  });
}

const bp_extension_events kEvents{BP_HEADER(bp_extension_events), backend_slot<wait_for_event>,
                                  backend_slot<record_event>, release_event};

// ---- time

Stamp* as_stamp(bp_time_stamp* stamp) { return reinterpret_cast<Stamp*>(stamp); }

void stamp(Backend& backend, int32_t ordinal, bp_stream* stream, uint64_t, bp_time_stamp** out) {
  Device& device = backend.device(ordinal);
  const DeviceScope scope(device);
  *out = reinterpret_cast<bp_time_stamp*>(&device.stamps().add(device.clock().stamp(as_stream(stream))));
}

void read(Backend& backend, int32_t ordinal, bp_time_stamp* stamp, uint64_t* nanoseconds) {
  Device& device = backend.device(ordinal);
  const DeviceScope scope(device);
  *nanoseconds = device.clock().read(*as_stamp(stamp));
}

void BP_CALL drop(void* context, int32_t ordinal, bp_time_stamp* stamp) {
  Backend& backend = *static_cast<Backend*>(context);
  // The status is dropped: the slot gives none, and the device was there when the stamp was made.
  (void)plugin::guard(backend.host(), [&] {
    Device& device = backend.device(ordinal);
    if (std::unique_ptr<Stamp> taken = device.stamps().take(*as_stamp(stamp))) device.clock().drop(std::move(taken));
  });
}

const bp_extension_time kTime{BP_HEADER(bp_extension_time), backend_slot<stamp>, backend_slot<read>, drop};

// ---- callbacks

void notify(Backend& backend, int32_t ordinal, bp_stream* stream, uint64_t, bp_completion_fn function, void* argument) {
  Device& device = backend.device(ordinal);
  const DeviceScope scope(device);
  device.callbacks().notify(as_stream(stream), function, argument);
}

const bp_extension_callbacks kCallbacks{BP_HEADER(bp_extension_callbacks), backend_slot<notify>};

// ---- features

void feature(Backend& backend, int32_t ordinal, uint32_t index, const char** name) {
  *name = feature_of(backend.device(ordinal).facts(), index);
}

void property(Backend& backend, int32_t ordinal, uint32_t index, const char** name, bp_value* value) {
  *name = property_of(backend.device(ordinal).facts(), index, *value);
}

const bp_extension_features kFeatures{BP_HEADER(bp_extension_features), backend_slot<feature>, backend_slot<property>};

struct Offer {
  const char* name;
  const void* functions;
};
const Offer kOffers[] = {
    {BP_EXTENSION_STREAMS, &kStreams},     {BP_EXTENSION_TIME, &kTime},         {BP_EXTENSION_EVENTS, &kEvents},
    {BP_EXTENSION_CALLBACKS, &kCallbacks}, {BP_EXTENSION_FEATURES, &kFeatures}, {BP_EXTENSION_PINNED, &kPinned},
    {BP_EXTENSION_PEER, &kPeer},           {BP_EXTENSION_MEMORY, &kMemory},     {BP_EXTENSION_CAPTURE, &kCapture},
    {BP_EXTENSION_RESET, &kReset},         {BP_EXTENSION_COMPILER, &kCompiler}};

}  // namespace

const void* BP_CALL find_extension(void*, const char* name, uint32_t version) {
  for (const Offer& offer : kOffers)
    if (version <= 1 && std::strcmp(name, offer.name) == 0) return offer.functions;
  return nullptr;
}

}  // namespace backplane::cuda

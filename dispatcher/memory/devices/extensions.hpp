// What a backend offers beyond its device table (backplane/abi/extensions.h), asked for once, when its devices start.
// nullptr: it does not offer it.
#pragma once

#include "backplane/abi/extensions.h"

namespace backplane::core {

struct BackendExtensions {
  const bp_extension_streams* streams = nullptr;
  const bp_extension_time* time = nullptr;
  const bp_extension_events* events = nullptr;
  const bp_extension_callbacks* callbacks = nullptr;
  const bp_extension_pinned* pinned = nullptr;
  const bp_extension_peer* peer = nullptr;
  const bp_extension_features* features = nullptr;
  const bp_extension_memory* memory = nullptr;
  const bp_extension_capture* capture = nullptr;
  const bp_extension_reset* reset = nullptr;
  const bp_extension_profiler* profiler = nullptr;
  const bp_extension_compiler* compiler = nullptr;
};

// Throws where one of them lacks a slot that it must fill.
BackendExtensions extensions_of(const bp_backend_def& def);

// Calls f(name, offered) for each.
template <class F>
void each_extension(const BackendExtensions& e, F f) {
  f(BP_EXTENSION_CALLBACKS, e.callbacks != nullptr);
  f(BP_EXTENSION_CAPTURE, e.capture != nullptr);
  f(BP_EXTENSION_COMPILER, e.compiler != nullptr);
  f(BP_EXTENSION_EVENTS, e.events != nullptr);
  f(BP_EXTENSION_MEMORY, e.memory != nullptr);
  f(BP_EXTENSION_PEER, e.peer != nullptr);
  f(BP_EXTENSION_PINNED, e.pinned != nullptr);
  f(BP_EXTENSION_PROFILER, e.profiler != nullptr);
  f(BP_EXTENSION_RESET, e.reset != nullptr);
  f(BP_EXTENSION_STREAMS, e.streams != nullptr);
  f(BP_EXTENSION_TIME, e.time != nullptr);
}

}  // namespace backplane::core

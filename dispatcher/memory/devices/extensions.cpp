#include "memory/devices/extensions.hpp"

#include <cstddef>

#include "backplane/error.hpp"
#include "memory/process/foreign_call.hpp"

namespace backplane::core {
namespace {

template <class Struct>
const Struct* ask(const bp_backend_def& def, const char* name, size_t needed) {
  const Struct* found = nullptr;
  const bp_status status = call_foreign("extension", [&] {
    found = static_cast<const Struct*>(def.extension(def.context, name, 1));
    return BP_OK;
  });
  if (status != BP_OK) detail::fail(status, "its ", take_error(), ", asked for \"", name, "\"");
  if (!found) return nullptr;
  const uint32_t size = found->header.struct_size;
  BP_CHECK(size >= needed && size <= BP_MAX_STRUCT_SIZE && size % 8 == 0, VERSION, "its extension \"", name,
           "\" has a struct_size of ", size, "; expected a multiple of 8 from ", needed, " to ", BP_MAX_STRUCT_SIZE);
  return found;
}

// `last`: the last slot that every writer of version 1 has; those behind it are read where the size says that they are.
#define BP_ASK(name, last) \
  ask<bp_extension_##name>(def, #name, offsetof(bp_extension_##name, last) + sizeof(bp_extension_##name::last))

void need(bool filled, const char* name, const char* slots) {
  BP_CHECK(filled, VALUE, "its extension \"", name, "\" must fill ", slots);
}

}  // namespace

BackendExtensions extensions_of(const bp_backend_def& def) {
  BackendExtensions e;
  if (!BP_HAS(&def, bp_backend_def, extension) || !def.extension) return e;
  if ((e.features = BP_ASK(features, property)))
    need(e.features->feature && e.features->property, "features", "feature, property");
  if ((e.reset = BP_ASK(reset, reset))) need(e.reset->reset, "reset", "reset");
  if ((e.profiler = BP_ASK(profiler, end))) need(e.profiler->begin && e.profiler->end, "profiler", "begin, end");
  if ((e.memory = BP_ASK(memory, give)))
    need(e.memory->kind && e.memory->allocate && e.memory->deallocate && !e.memory->take == !e.memory->give, "memory",
         "kind, allocate and deallocate, and both or none of take and give");
  if ((e.compiler = BP_ASK(compiler, destroy)))
    need(e.compiler->partition && e.compiler->compile && e.compiler->execute && e.compiler->destroy, "compiler",
         "partition, compile, execute, destroy");
  if (def.flags & BP_BACKEND_SYNCHRONOUS) return e;  // the rest is about streams
  if ((e.streams = BP_ASK(streams, handle)))
    need(e.streams->priorities && e.streams->create, "streams", "priorities, create");
  if ((e.time = BP_ASK(time, drop))) need(e.time->stamp && e.time->read && e.time->drop, "time", "stamp, read, drop");
  if ((e.events = BP_ASK(events, release)))
    need(e.events->wait && e.events->record && e.events->release, "events", "wait, record, release");
  if ((e.callbacks = BP_ASK(callbacks, notify))) need(e.callbacks->notify, "callbacks", "notify");
  if ((e.pinned = BP_ASK(pinned, copy_to_host)))
    need(e.pinned->allocate && e.pinned->deallocate && e.pinned->copy_from_host && e.pinned->copy_to_host, "pinned",
         "allocate, deallocate, copy_from_host, copy_to_host");
  if ((e.peer = BP_ASK(peer, copy)))
    need(e.peer->agrees && e.peer->stream_wait && e.peer->copy, "peer", "agrees, stream_wait, copy");
  if ((e.capture = BP_ASK(capture, destroy)))
    need(e.capture->begin && e.capture->end && e.capture->replay && e.capture->destroy, "capture",
         "begin, end, replay, destroy");
  return e;
}

}  // namespace backplane::core

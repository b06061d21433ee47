// The extensions of the simulated accelerator, with one slot that does what a backend's author may well get wrong.
#include "broken_extensions.hpp"

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include "backplane/abi/extensions.h"

std::string fault() {
  const char* named = std::getenv("BROKEN_FAULT");
  return named ? named : "";
}

bp_kernel_fn negative_kernel = nullptr;
std::atomic<bool> was_reset{false};

bool needs_handles() { return fault() == "pool_early" || fault() == "handles"; }

namespace {

const bp_backend_def* right = nullptr;

template <class Struct>
const Struct& right_of(const char* name) {
  return *static_cast<const Struct*>(right->extension(right->context, name, 1));
}
#define RIGHT(name) right_of<bp_extension_##name>(#name)

// ---- streams

bp_status positive_priorities(void*, int32_t, int32_t* least, int32_t* greatest) {
  *least = 1, *greatest = 3;
  return BP_OK;
}
// A stream beside the one whose handle it was to take.
bp_status new_stream_for_handle(void* context, int32_t ordinal, void*, bp_stream** stream) {
  return right->stream_create(context, ordinal, stream);
}

// ---- time

bp_status microseconds(void* context, int32_t ordinal, bp_time_stamp* stamp, uint64_t* nanoseconds) {
  const bp_status status = RIGHT(time).read(context, ordinal, stamp, nanoseconds);
  *nanoseconds *= 1000;
  return status;
}

uint64_t now() {
  const auto at = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(at).count());
}
// The clock of the host, when the stamp is recorded.
bp_status stamp_of_the_host(void*, int32_t, bp_stream*, uint64_t, bp_time_stamp** stamp) {
  *stamp = reinterpret_cast<bp_time_stamp*>(new uint64_t(now()));
  return BP_OK;
}
bp_status read_stamp_of_the_host(void*, int32_t, bp_time_stamp* stamp, uint64_t* nanoseconds) {
  *nanoseconds = *reinterpret_cast<uint64_t*>(stamp);
  return BP_OK;
}
void drop_stamp_of_the_host(void*, int32_t, bp_time_stamp* stamp) { delete reinterpret_cast<uint64_t*>(stamp); }

// ---- callbacks

void nothing(void*) {}

bp_status notify_nothing(void* context, int32_t ordinal, bp_stream* stream, uint64_t ticket) {
  return RIGHT(callbacks).notify(context, ordinal, stream, ticket, nothing, nullptr);
}
bp_status callback_inline(void* context, int32_t ordinal, bp_stream* stream, uint64_t ticket, bp_completion_fn function,
                          void* argument) {
  function(argument);
  return notify_nothing(context, ordinal, stream, ticket);
}
bp_status callback_early(void* context, int32_t ordinal, bp_stream* stream, uint64_t ticket, bp_completion_fn function,
                         void* argument) {
  std::thread([=] { function(argument); }).detach();
  return notify_nothing(context, ordinal, stream, ticket);
}
bp_status callback_twice(void* context, int32_t ordinal, bp_stream* stream, uint64_t ticket, bp_completion_fn function,
                         void* argument) {
  RIGHT(callbacks).notify(context, ordinal, stream, ticket, function, argument);
  return RIGHT(callbacks).notify(context, ordinal, stream, ticket, function, argument);
}

struct Later {
  bp_completion_fn function;
  void* argument;
};
// A thread of its own calls, and the ticket does not wait for it.
bp_status callback_late(void* context, int32_t ordinal, bp_stream* stream, uint64_t ticket, bp_completion_fn function,
                        void* argument) {
  const auto start = [](void* given) {
    std::thread([later = static_cast<Later*>(given)] {
      later->function(later->argument);
      delete later;
    }).detach();
  };
  return RIGHT(callbacks).notify(context, ordinal, stream, ticket, start, new Later{function, argument});
}

// It returns while a function is still to be called; other streams end as they should.
struct Notified {
  bp_stream* stream = nullptr;
  uint64_t ticket = 0;
} notified;
bp_status notes_the_stream(void* context, int32_t ordinal, bp_stream* stream, uint64_t ticket,
                           bp_completion_fn function, void* argument) {
  notified = {stream, ticket};
  return RIGHT(callbacks).notify(context, ordinal, stream, ticket, function, argument);
}
void ends_later(void* context, int32_t ordinal, bp_stream* stream) {
  uint64_t completed = 0;
  if (stream == notified.stream) right->completed(context, ordinal, stream, &completed);
  if (stream != notified.stream || completed >= notified.ticket) return right->stream_destroy(context, ordinal, stream);
  std::thread([=] { right->stream_destroy(context, ordinal, stream); }).detach();
}

bp_status refuses_callbacks(void*, int32_t, bp_stream*, uint64_t, bp_completion_fn, void*) { return BP_ERROR_DEVICE; }

// ---- pinned

bp_status pinned_to_start(void* context, int32_t ordinal, bp_stream* stream, uint64_t ticket, void* dst, uint64_t,
                          const void* src, uint64_t size) {
  return RIGHT(pinned).copy_from_host(context, ordinal, stream, ticket, dst, 0, src, size);
}
// Copies the bytes at the time of the call, without waiting for the stream.
bp_status pinned_at_once(void* context, int32_t ordinal, bp_stream* stream, uint64_t ticket, void* dst, void* src,
                         uint64_t src_offset, uint64_t size) {
  bp_stream* other = nullptr;
  right->stream_create(context, ordinal, &other);
  const bp_status status = right->copy_to_host(context, ordinal, other, dst, src, src_offset, size);
  right->stream_destroy(context, ordinal, other);
  return status == BP_OK ? notify_nothing(context, ordinal, stream, ticket) : status;
}

// ---- peer

bp_status agrees_with_all(void*, int32_t, const char*, int32_t, int32_t* yes) {
  *yes = 1;
  return BP_OK;
}
bp_status no_peer_wait(void*, int32_t, bp_stream*, const char*, int32_t, bp_stream*, uint64_t) { return BP_OK; }

// ---- events

bp_status no_event_wait(void*, int32_t, bp_stream*, uint64_t, void*) { return BP_OK; }

// ---- memory

bp_status any_alignment(void* context, int32_t ordinal, const char* kind, uint64_t size, uint64_t, void** data) {
  return RIGHT(memory).allocate(context, ordinal, kind, size, 1, data);
}
bp_status keeps_kind(void*, int32_t, const char*, void*, uint64_t) { return BP_OK; }
bp_status gives_at_once(void* context, int32_t ordinal, void* data, uint64_t size, bp_stream* const*, const uint64_t*,
                        int32_t) {
  return right->deallocate(context, ordinal, data, size);
}

// ---- features

bp_status endless_features(void*, int32_t, uint32_t, const char** name) {
  *name = "fast";
  return BP_OK;
}
bp_status tensor_as_property(void* context, int32_t ordinal, uint32_t index, const char** name, bp_value* value) {
  const bp_status status = RIGHT(features).property(context, ordinal, index, name, value);
  value->tag = BP_TAG_TENSOR;
  return status;
}

// ---- capture

bp_status begins_nothing(void*, int32_t, bp_stream*) { return BP_OK; }
bp_status replays_once(void* context, int32_t ordinal, bp_recording* recording, bp_stream* stream, uint64_t ticket) {
  static bp_recording* last = nullptr;
  if (std::exchange(last, recording) == recording) return notify_nothing(context, ordinal, stream, ticket);
  return RIGHT(capture).replay(context, ordinal, recording, stream, ticket);
}
// An abandoned capture runs.
bp_status ends_and_runs(void* context, int32_t ordinal, bp_stream* stream, bp_recording** recording) {
  if (recording) return RIGHT(capture).end(context, ordinal, stream, recording);
  bp_recording* made = nullptr;
  RIGHT(capture).end(context, ordinal, stream, &made);
  RIGHT(capture).replay(context, ordinal, made, stream, 1);
  RIGHT(capture).destroy(context, ordinal, made);
  return BP_OK;
}

// ---- profiler and reset

// The mark is work under a ticket that the host did not issue.
void marks_with_a_ticket(void* context, int32_t ordinal, bp_stream* stream) {
  notify_nothing(context, ordinal, stream, uint64_t{1} << 40);
}
bp_status resets_nothing(void*, int32_t) { return BP_OK; }
bp_status resets_and_notes(void* context, int32_t ordinal) {
  was_reset = true;
  return RIGHT(reset).reset(context, ordinal);
}

// ---- compiler: claims each node of bp::negative, and copies its operand instead of negating it

bp_status claims_negative(void*, const bp_host*, bp_device, const bp_graph* graph, uint32_t* regions,
                          uint32_t* n_regions, const char**) {
  *n_regions = 0;
  for (uint64_t i = 0; i < graph->nodes.count; ++i) {
    const auto* node =
        reinterpret_cast<const bp_graph_node*>(static_cast<const char*>(graph->nodes.data) + i * graph->nodes.stride);
    if (std::strcmp(node->op, "bp::negative") == 0) regions[i] = (*n_regions)++;
  }
  return BP_OK;
}
bp_status compiles_nothing(void*, const bp_host*, bp_device, const bp_graph*, bp_executable_info*,
                           bp_executable** executable) {
  static char nothing_at_all;
  *executable = reinterpret_cast<bp_executable*>(&nothing_at_all);
  return BP_OK;
}
bp_status copies_the_input(const bp_frame* frame, bp_executable*, const bp_value* inputs, int32_t, bp_value* outs,
                           int32_t) {
  const bp_tensor &from = *inputs[0].u.t, &to = *outs[0].u.t;
  return right->copy(right->context, frame->ordinal, frame->stream, frame->ticket, to.dl.data, to.dl.byte_offset,
                     from.dl.data, from.dl.byte_offset, to.nbytes);
}
void destroys_nothing(void*, bp_executable*) {}

void pauses(void*) { std::this_thread::sleep_for(std::chrono::milliseconds(50)); }

// Operands pass through one block for all executions: in order on one stream, not on two.
bp_status negates_by_way_of_one_block(const bp_frame* frame, bp_executable*, const bp_value* inputs, int32_t,
                                      bp_value* outs, int32_t n_outs) {
  constexpr uint64_t kSize = 1 << 20;
  static void* block = nullptr;
  static std::once_flag made;
  std::call_once(made, [&] { right->allocate(right->context, frame->ordinal, kSize, &block); });
  bp_tensor between = *inputs[0].u.t;
  right->copy(right->context, frame->ordinal, frame->stream, frame->ticket, block, 0, between.dl.data,
              between.dl.byte_offset, between.nbytes);
  RIGHT(callbacks).notify(right->context, frame->ordinal, frame->stream, frame->ticket, pauses, nullptr);
  between.dl.data = block;
  between.dl.byte_offset = 0;
  bp_value from = inputs[0];
  from.u.t = &between;
  bp_frame of_row = *frame;
  of_row.compute = between.dtype;
  return negative_kernel(&of_row, &from, 1, outs, n_outs);
}

// On a stream of its own, which waits for no other.
bp_status negates_beside_the_stream(const bp_frame* frame, bp_executable*, const bp_value* inputs, int32_t n_inputs,
                                    bp_value* outs, int32_t n_outs) {
  bp_frame own = *frame;
  right->stream_create(right->context, frame->ordinal, &own.stream);
  own.ticket = 1;
  own.compute = inputs[0].u.t->dtype;
  const bp_status status = negative_kernel(&own, inputs, n_inputs, outs, n_outs);
  right->flush(right->context, frame->ordinal, own.stream, own.ticket);
  right->wait(right->context, frame->ordinal, own.stream, own.ticket);
  right->stream_destroy(right->context, frame->ordinal, own.stream);
  return status;
}

// A compiled executable negates; one that is read from a file copies.
char negating, copying;
bp_status compiles_negating(void*, const bp_host*, bp_device, const bp_graph*, bp_executable_info*,
                            bp_executable** executable) {
  *executable = reinterpret_cast<bp_executable*>(&negating);
  return BP_OK;
}
bp_status as_it_was_compiled(const bp_frame* frame, bp_executable* executable, const bp_value* inputs, int32_t n_inputs,
                             bp_value* outs, int32_t n_outs) {
  if (reinterpret_cast<char*>(executable) == &copying)
    return copies_the_input(frame, executable, inputs, n_inputs, outs, n_outs);
  bp_frame of_row = *frame;
  of_row.compute = inputs[0].u.t->dtype;
  return negative_kernel(&of_row, inputs, n_inputs, outs, n_outs);
}
bp_status key_of_all(void*, const bp_host*, bp_device, const bp_graph*, char* key, uint64_t) {
  std::strcpy(key, "negative");
  return BP_OK;
}
bp_status writes_a_byte(void*, const bp_executable*, void* bytes, uint64_t* size) {
  if (*size > 0) *static_cast<char*>(bytes) = '-';
  *size = 1;
  return BP_OK;
}
bp_status reads_back_another(void*, const bp_host*, bp_device, const void*, uint64_t, bp_executable_info*,
                             bp_executable** executable) {
  *executable = reinterpret_cast<bp_executable*>(&copying);
  return BP_OK;
}

// ----

const bp_extension_time kTimeOfTheHost{BP_HEADER(bp_extension_time), stamp_of_the_host, read_stamp_of_the_host,
                                       drop_stamp_of_the_host};
bp_extension_compiler compiler_of(decltype(bp_extension_compiler::compile) compile,
                                  decltype(bp_extension_compiler::execute) execute) {
  bp_extension_compiler made{};
  made.header = BP_HEADER(bp_extension_compiler);
  made.partition = claims_negative;
  made.compile = compile;
  made.execute = execute;
  made.destroy = destroys_nothing;
  return made;
}
bp_extension_compiler forgetful_compiler() {
  bp_extension_compiler made = compiler_of(compiles_negating, as_it_was_compiled);
  made.cache_key = key_of_all;
  made.serialize = writes_a_byte;
  made.deserialize = reads_back_another;
  return made;
}
const bp_extension_compiler kCompiler = compiler_of(compiles_nothing, copies_the_input);
const bp_extension_compiler kSharingCompiler = compiler_of(compiles_nothing, negates_by_way_of_one_block);
const bp_extension_compiler kEarlyCompiler = compiler_of(compiles_nothing, negates_beside_the_stream);
const bp_extension_compiler kForgetfulCompiler = forgetful_compiler();

struct Fault {
  const char* extension;
  std::function<const void*()> faulty;
};

// The right extension but for one slot.
template <class Struct, class Slot>
Fault but(const char* extension, Slot Struct::*slot, Slot faulty) {
  return {extension, [=]() -> const void* {
            static Struct made = right_of<Struct>(extension);
            made.*slot = faulty;
            return &made;
          }};
}
template <class Struct>
Fault whole(const char* extension, const Struct& faulty) {
  return {extension, [&faulty]() -> const void* { return &faulty; }};
}

const std::map<std::string, Fault> kFaults = {
    {"priority_range", but(BP_EXTENSION_STREAMS, &bp_extension_streams::priorities, positive_priorities)},
    {"foreign_order", but(BP_EXTENSION_STREAMS, &bp_extension_streams::import_handle, new_stream_for_handle)},
    {"time_unit", but(BP_EXTENSION_TIME, &bp_extension_time::read, microseconds)},
    {"time_early", whole(BP_EXTENSION_TIME, kTimeOfTheHost)},
    {"callback_inline", but(BP_EXTENSION_CALLBACKS, &bp_extension_callbacks::notify, callback_inline)},
    {"callback_early", but(BP_EXTENSION_CALLBACKS, &bp_extension_callbacks::notify, callback_early)},
    {"callback_twice", but(BP_EXTENSION_CALLBACKS, &bp_extension_callbacks::notify, callback_twice)},
    {"ends_later", but(BP_EXTENSION_CALLBACKS, &bp_extension_callbacks::notify, notes_the_stream)},
    {"callback_refused", but(BP_EXTENSION_CALLBACKS, &bp_extension_callbacks::notify, refuses_callbacks)},
    {"callback_late", but(BP_EXTENSION_CALLBACKS, &bp_extension_callbacks::notify, callback_late)},
    {"pinned_offset", but(BP_EXTENSION_PINNED, &bp_extension_pinned::copy_from_host, pinned_to_start)},
    {"pinned_order", but(BP_EXTENSION_PINNED, &bp_extension_pinned::copy_to_host, pinned_at_once)},
    {"peer_agrees", but(BP_EXTENSION_PEER, &bp_extension_peer::agrees, agrees_with_all)},
    {"event_wait", but(BP_EXTENSION_EVENTS, &bp_extension_events::wait, no_event_wait)},
    {"peer_wait", but(BP_EXTENSION_PEER, &bp_extension_peer::stream_wait, no_peer_wait)},
    {"kind_alignment", but(BP_EXTENSION_MEMORY, &bp_extension_memory::allocate, any_alignment)},
    {"kind_leak", but(BP_EXTENSION_MEMORY, &bp_extension_memory::deallocate, keeps_kind)},
    {"pool_early", but(BP_EXTENSION_MEMORY, &bp_extension_memory::give, gives_at_once)},
    {"feature_endless", but(BP_EXTENSION_FEATURES, &bp_extension_features::feature, endless_features)},
    {"property_tag", but(BP_EXTENSION_FEATURES, &bp_extension_features::property, tensor_as_property)},
    {"capture_runs", but(BP_EXTENSION_CAPTURE, &bp_extension_capture::begin, begins_nothing)},
    {"replay_once", but(BP_EXTENSION_CAPTURE, &bp_extension_capture::replay, replays_once)},
    {"give_up_runs", but(BP_EXTENSION_CAPTURE, &bp_extension_capture::end, ends_and_runs)},
    {"profiler_ticket", but(BP_EXTENSION_PROFILER, &bp_extension_profiler::end, marks_with_a_ticket)},
    {"reset_keeps", but(BP_EXTENSION_RESET, &bp_extension_reset::reset, resets_nothing)},
    {"compiler", whole(BP_EXTENSION_COMPILER, kCompiler)},
    {"compiler_shares", whole(BP_EXTENSION_COMPILER, kSharingCompiler)},
    {"compiler_early", whole(BP_EXTENSION_COMPILER, kEarlyCompiler)},
    {"stays_lost", but(BP_EXTENSION_RESET, &bp_extension_reset::reset, resets_and_notes)},
    {"compiler_forgets", whole(BP_EXTENSION_COMPILER, kForgetfulCompiler)},
};

const void* faulty_extension(void* context, const char* name, uint32_t version) {
  const Fault& found = kFaults.at(fault());
  return std::strcmp(name, found.extension) == 0 ? found.faulty() : right->extension(context, name, version);
}

}  // namespace

void break_extensions(const bp_backend_def& table, bp_backend_def& faulty) {
  right = &table;
  if (kFaults.count(fault()) != 0) faulty.extension = faulty_extension;
  if (fault() == "ends_later") faulty.stream_destroy = ends_later;
}

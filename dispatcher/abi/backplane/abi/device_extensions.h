/* Backplane binary contract: what a backend may offer beyond its device table, by name and version.
 *
 * bp_backend_def::extension gives these structs. `context` is the backend's, as in its table, and the table's rules
 * hold: calls on one stream are serialised, a failure returns a status with a message set, optional slots may be NULL.
 * A slot that takes a ticket puts work on the stream under it, as a copy does. */
#ifndef BACKPLANE_ABI_DEVICE_EXTENSIONS_H
#define BACKPLANE_ABI_DEVICE_EXTENSIONS_H

#include "backplane/abi/plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Streams of a priority, and streams that the vendor's own calls made. They end by the table's stream_destroy. */
#define BP_EXTENSION_STREAMS "streams"
typedef struct bp_extension_streams {
  bp_header header;
  /* Of several streams with work, one of a greater number goes first. The table's stream_create makes them with 0. */
  bp_status(BP_CALL* priorities)(void* context, int32_t ordinal, int32_t* least, int32_t* greatest);
  bp_status(BP_CALL* create)(void* context, int32_t ordinal, int32_t priority, bp_stream** stream);
  /* A stream over `handle`, of the kind that `native` gives of a stream: what others put there and what the host puts
   * there run in the order in which they came. The handle stays the caller's and outlives the stream. Optional. */
  bp_status(BP_CALL* import_handle)(void* context, int32_t ordinal, void* handle, bp_stream** stream);
  /* That handle of a stream. Optional. */
  bp_status(BP_CALL* handle)(void* context, int32_t ordinal, bp_stream* stream, void** handle);
} bp_extension_streams;

/* When the device came to a position of a stream. */
#define BP_EXTENSION_TIME "time"
typedef struct bp_time_stamp bp_time_stamp; /* opaque: the backend's own */
typedef struct bp_extension_time {
  bp_header header;
  bp_status(BP_CALL* stamp)(void* context, int32_t ordinal, bp_stream* stream, uint64_t ticket, bp_time_stamp** stamp);
  /* Of a stamp whose ticket has completed: nanoseconds of a clock that all streams of the device share. */
  bp_status(BP_CALL* read)(void* context, int32_t ordinal, bp_time_stamp* stamp, uint64_t* nanoseconds);
  void(BP_CALL* drop)(void* context, int32_t ordinal, bp_time_stamp* stamp);
} bp_extension_time;

/* Events of the vendor's API, by which work of other libraries and work of the host wait for each other on the device.
 * Their kind is documented by the backend: a CUevent, for instance. */
#define BP_EXTENSION_EVENTS "events"
typedef struct bp_extension_events {
  bp_header header;
  /* `ticket` and later work of `stream` start after `event`, which its owner has recorded, and may destroy when this
   * returns. */
  bp_status(BP_CALL* wait)(void* context, int32_t ordinal, bp_stream* stream, uint64_t ticket, void* event);
  /* *event: an event that occurs when the work before `ticket` has ended. It stays valid until `release`, and also on a
   * device that is lost. A reset ends it. */
  bp_status(BP_CALL* record)(void* context, int32_t ordinal, bp_stream* stream, uint64_t ticket, void** event);
  void(BP_CALL* release)(void* context, int32_t ordinal, void* event);
} bp_extension_events;

/* The host hears that a stream has come to a position. */
#define BP_EXTENSION_CALLBACKS "callbacks"
typedef void(BP_CALL* bp_completion_fn)(void* argument);
typedef struct bp_extension_callbacks {
  bp_header header;
  /* Where BP_OK: `function` runs once, on a thread of the backend's, when the work before `ticket` has ended, failed or
   * been dropped; `ticket` completes after it. It calls nothing of the backend, and is over before stream_destroy. */
  bp_status(BP_CALL* notify)(void* context, int32_t ordinal, bp_stream* stream, uint64_t ticket,
                             bp_completion_fn function, void* argument);
} bp_extension_callbacks;

/* Host memory that the backend's devices read and write on their own. */
#define BP_EXTENSION_PINNED "pinned"
typedef struct bp_extension_pinned {
  bp_header header;
  bp_status(BP_CALL* allocate)(void* context, uint64_t size, void** data);
  bp_status(BP_CALL* deallocate)(void* context, void* data, uint64_t size);
  /* As the table's copies; the host's side is memory of `allocate`, which is touched when the stream comes to the copy.
   * The host leaves it alone and keeps it until the ticket has completed. */
  bp_status(BP_CALL* copy_from_host)(void* context, int32_t ordinal, bp_stream* stream, uint64_t ticket, void* dst,
                                     uint64_t dst_offset, const void* src, uint64_t size);
  bp_status(BP_CALL* copy_to_host)(void* context, int32_t ordinal, bp_stream* stream, uint64_t ticket, void* dst,
                                   void* src, uint64_t src_offset, uint64_t size);
} bp_extension_pinned;

/* Copies from another device, which the host's memory does not see. The other device is named by its backend's name and
 * its ordinal there. Used where the backends of both agree. */
#define BP_EXTENSION_PEER "peer"
typedef struct bp_extension_peer {
  bp_header header;
  bp_status(BP_CALL* agrees)(void* context, int32_t ordinal, const char* peer, int32_t peer_ordinal, int32_t* yes);
  /* As stream_wait, behind a stream of the peer's. */
  bp_status(BP_CALL* stream_wait)(void* context, int32_t ordinal, bp_stream* stream, const char* peer,
                                  int32_t peer_ordinal, bp_stream* other, uint64_t ticket);
  /* On a stream of the device that receives: from `src` of the peer's. */
  bp_status(BP_CALL* copy)(void* context, int32_t ordinal, bp_stream* stream, uint64_t ticket, void* dst,
                           uint64_t dst_offset, const char* peer, int32_t peer_ordinal, void* src, uint64_t src_offset,
                           uint64_t size);
} bp_extension_peer;

/* What a device can do and what it is, by name. Strings live as long as the plugin is loaded. Past the last `index`:
 * BP_OK with *name NULL. */
#define BP_EXTENSION_FEATURES "features"
typedef struct bp_extension_features {
  bp_header header;
  /* "f16", "subgroups": the words that device.has() takes. The host adds those that follow from the device table. */
  bp_status(BP_CALL* feature)(void* context, int32_t ordinal, uint32_t index, const char** name);
  /* A bool, int, float or string. */
  bp_status(BP_CALL* property)(void* context, int32_t ordinal, uint32_t index, const char** name, bp_value* value);
} bp_extension_features;

/* Memory of several kinds, and a pool of the backend's own. */
#define BP_EXTENSION_MEMORY "memory"
typedef struct bp_extension_memory {
  bp_header header;
  /* The kinds of memory of a device ("device", "host_visible"), the usual one first; NULL past the last index. */
  bp_status(BP_CALL* kind)(void* context, int32_t ordinal, uint32_t index, const char** name);
  /* A block at a multiple of `alignment` (a power of two), which copies and kernels take as any other. */
  bp_status(BP_CALL* allocate)(void* context, int32_t ordinal, const char* kind, uint64_t size, uint64_t alignment,
                               void** data);
  bp_status(BP_CALL* deallocate)(void* context, int32_t ordinal, const char* kind, void* data, uint64_t size);
  /* Both or neither: the backend keeps freed memory itself, and the host asks it for every block. `give` comes while
   * work may still use the block: up to tickets[i] of streams[i], all of them flushed; such a stream may be destroyed
   * before the block is taken again. What `stream` puts on itself after `take` may have a block whose only user is
   * `stream`. */
  bp_status(BP_CALL* take)(void* context, int32_t ordinal, bp_stream* stream, uint64_t size, void** data);
  bp_status(BP_CALL* give)(void* context, int32_t ordinal, void* data, uint64_t size, bp_stream* const* streams,
                           const uint64_t* tickets, int32_t n);
} bp_extension_memory;

/* Work that is recorded once and run many times. */
#define BP_EXTENSION_CAPTURE "capture"
enum {
  /* Of a kernel row's flags; a hint. What the kernel puts on a stream may run again later over the same memory: it has
   * copied its arguments, and asks nothing of the host. Other rows are refused during a capture. */
  BP_KERNEL_CAPTURABLE = 1u << 16
};
typedef struct bp_recording bp_recording; /* opaque: the backend's own */
typedef struct bp_extension_capture {
  bp_header header;
  /* From now on what is put on the stream is kept and does not run. The stream was made for this alone. */
  bp_status(BP_CALL* begin)(void* context, int32_t ordinal, bp_stream* stream);
  /* NULL where the host gives the recording up. */
  bp_status(BP_CALL* end)(void* context, int32_t ordinal, bp_stream* stream, bp_recording** recording);
  /* All of it under one ticket of `stream`, over the memory that it was recorded with, which the host keeps. */
  bp_status(BP_CALL* replay)(void* context, int32_t ordinal, bp_recording* recording, bp_stream* stream,
                             uint64_t ticket);
  /* No replay of it is unfinished. */
  void(BP_CALL* destroy)(void* context, int32_t ordinal, bp_recording* recording);
} bp_extension_capture;

/* A lost device comes back. */
#define BP_EXTENSION_RESET "reset"
typedef struct bp_extension_reset {
  bp_header header;
  /* Drops all work, streams, stamps, recordings and blocks of the device, which is as new after it. No other call of
   * the device is running; the host uses nothing of before, not even to free it, but destroys the executables. */
  bp_status(BP_CALL* reset)(void* context, int32_t ordinal);
} bp_extension_reset;

/* Ranges on the calling thread, for the vendor's own tools: while bp.profile() is active, around every op. */
#define BP_EXTENSION_PROFILER "profiler"
typedef struct bp_extension_profiler {
  bp_header header;
  void(BP_CALL* begin)(void* context, int32_t ordinal, bp_stream* stream, const char* name);
  void(BP_CALL* end)(void* context, int32_t ordinal, bp_stream* stream);
} bp_extension_profiler;

#ifdef __cplusplus
}
#endif
#endif

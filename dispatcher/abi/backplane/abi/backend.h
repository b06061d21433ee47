/* Backplane binary contract: the device table of a backend.
 *
 * Pointers that a function of this table receives are borrowed. `data` is whatever `allocate` returned; the host
 * does no arithmetic on it unless the backend is BP_BACKEND_ADDRESSABLE, and carries displacement in byte
 * offsets. Streams are in order. A function may be called from any thread; calls on one stream are serialised by
 * the host, except `wait` and `wait_for`, which may run concurrently. Optional slots may be NULL. No function
 * receives a block or a copy of 0 bytes, and no kernel a tensor whose data is NULL, unless the backend is
 * BP_BACKEND_HOST_MEMORY. */
#ifndef BACKPLANE_ABI_BACKEND_H
#define BACKPLANE_ABI_BACKEND_H

#include "backplane/abi/host.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
  BP_BACKEND_ADDRESSABLE = 1u << 0,    /* data is an address: data + offset may be computed and exported */
  BP_BACKEND_SUBALLOCATABLE = 1u << 1, /* a block may be used in parts, at multiples of `alignment` */
  /* The host reads and writes data directly. Not SYNCHRONOUS: once the work recorded on it has ended, for which the
   * host waits. */
  BP_BACKEND_HOST_MEMORY = 1u << 2,
  BP_BACKEND_SYNCHRONOUS = 1u << 3, /* a kernel's work is done when it returns: no streams, no tickets */
  /* The processor that runs the program: the default device, and the one that `host: true` ops fall back to.
   * HOST_MEMORY and SYNCHRONOUS. One backend of a process. */
  BP_BACKEND_HOST_DEVICE = 1u << 4
};

typedef struct bp_device_properties {
  bp_header header;
  char name[128];        /* of the device, UTF-8 */
  uint64_t total_memory; /* bytes; 0: unknown */
  uint64_t alignment;    /* of byte offsets that kernels take; 0 (any) or a power of two */
  /* Dtypes that the device cannot compute in, as operands or as results; dtypes of later minors count as lacked. Ops
   * that only move elements (BP_OP_MOVES) serve them all the same, where a row takes them. */
  bp_dtype_mask lacks;
  int32_t dl_device_type; /* DLPack's code; kDLExtDev where it has none */
#if BP_TARGET_MINOR >= 3
  /* Dtypes that it only holds: it moves and copies them and does not compute in them, and to accumulate is to compute.
   * Together with `lacks`. */
  bp_dtype_set only_holds;
  uint64_t largest_block; /* bytes of one allocation; 0: unknown. The host asks for none that is larger */
  /* Bytes; 0 (any) or a power of two up to 4096. Copies of the table and of extensions begin at multiples of it and
   * have multiples of it as sizes, and so do allocations: the host widens a copy or goes through memory of its own. */
  uint64_t copy_granule;
#endif
} bp_device_properties;

typedef struct bp_memory_stats {
  bp_header header;
  uint64_t in_use; /* bytes */
  uint64_t peak;
  uint64_t reserved; /* held from the system, in use or not */
  uint64_t allocations;
  uint64_t cache_hits; /* allocations that were served from memory held */
  uint64_t limit;      /* of `reserved`; BP_NO_MEMORY_LIMIT: none */
} bp_memory_stats;

#define BP_NO_MEMORY_LIMIT UINT64_MAX

/* An error of work that had been recorded. */
typedef struct bp_deferred_error {
  bp_header header;
  uint64_t ticket; /* of the call that failed; 0 where the backend cannot tell */
  bp_status code;  /* BP_ERROR_DATA, _MEMORY, _DEVICE or _DEVICE_LOST */
  int32_t reserved;
  char message[512];
} bp_deferred_error;

struct bp_backend_def {
  bp_header header;
  const char* name; /* "cpu"; unique in a process */
  uint32_t flags;   /* BP_BACKEND_* */
  uint32_t reserved;
  void* context; /* passed first to every function below */

  /* How many devices are usable; starts the driver if need be. 0 with a message set: none, and why. */
  bp_status(BP_CALL* device_count)(void* context, int32_t* count);
  bp_status(BP_CALL* properties)(void* context, int32_t ordinal, bp_device_properties* out);

  /* size > 0. Memory need not be initialised. */
  bp_status(BP_CALL* allocate)(void* context, int32_t ordinal, uint64_t size, void** data);
  /* The host frees only when the block's tickets have completed. `size` as it was allocated. */
  bp_status(BP_CALL* deallocate)(void* context, int32_t ordinal, void* data, uint64_t size);

  /* The source has been read when copy_from_host returns; the copy itself is in the stream's order.
   * copy_to_host returns when the bytes have arrived. copy records a copy within the device. */
  bp_status(BP_CALL* copy_from_host)(void* context, int32_t ordinal, bp_stream* stream, uint64_t ticket, void* dst,
                                     uint64_t dst_offset, const void* src, uint64_t size);
  bp_status(BP_CALL* copy_to_host)(void* context, int32_t ordinal, bp_stream* stream, void* dst, void* src,
                                   uint64_t src_offset, uint64_t size);
  bp_status(BP_CALL* copy)(void* context, int32_t ordinal, bp_stream* stream, uint64_t ticket, void* dst,
                           uint64_t dst_offset, void* src, uint64_t src_offset, uint64_t size);

  /* Streams and tickets. The host numbers the work that it puts on a stream 1, 2, 3, ...: the ticket in the frame.
   * flush submits everything recorded so far, so that `completed` will reach `ticket` without further calls. */
  bp_status(BP_CALL* stream_create)(void* context, int32_t ordinal, bp_stream** stream);
  void(BP_CALL* stream_destroy)(void* context, int32_t ordinal, bp_stream* stream);
  bp_status(BP_CALL* flush)(void* context, int32_t ordinal, bp_stream* stream, uint64_t ticket);
  bp_status(BP_CALL* completed)(void* context, int32_t ordinal, bp_stream* stream, uint64_t* ticket);
  /* Blocks until `ticket` is complete. Not OK: fetch deferred_error. */
  bp_status(BP_CALL* wait)(void* context, int32_t ordinal, bp_stream* stream, uint64_t ticket);
  /* Later work on `stream` starts after `ticket` of `other`, which has been flushed. */
  bp_status(BP_CALL* stream_wait)(void* context, int32_t ordinal, bp_stream* stream, bp_stream* other, uint64_t ticket);
  /* Takes the stream's oldest error; BP_OK with out->code == BP_OK: none. */
  bp_status(BP_CALL* deferred_error)(void* context, int32_t ordinal, bp_stream* stream, bp_deferred_error* out);

  /* Optional from here on. */
  bp_status(BP_CALL* memory_stats)(void* context, int32_t ordinal, bp_memory_stats* out);
  /* Documented vendor handles by name ("CUstream", "VkDevice"), for kernels that another plugin brings. */
  bp_status(BP_CALL* native)(void* context, int32_t ordinal, bp_stream* stream, const char* kind, void** handle);
  /* In the child, after fork(). Absent: a device used before the fork is refused there. */
  bp_status(BP_CALL* after_fork)(void* context);
  /* Sets `peak` to what is in use. */
  bp_status(BP_CALL* reset_peak_memory_stats)(void* context, int32_t ordinal);
  /* Gives memory that is held and not in use back to the system. The host calls it also when `allocate` has failed
   * with BP_ERROR_MEMORY, before it tries once more. */
  bp_status(BP_CALL* empty_cache)(void* context, int32_t ordinal);
  /* From now on `allocate` fails with BP_ERROR_MEMORY where `reserved` would exceed `limit`. */
  bp_status(BP_CALL* set_memory_limit)(void* context, int32_t ordinal, uint64_t limit);
#if BP_TARGET_MINOR >= 2
  /* A group of functions by name: a struct of extensions.h, which begins with a bp_header, lives as long as the plugin
   * is loaded, and is of `version` or appends to it. NULL: the backend has none such. Pure. */
  const void*(BP_CALL* extension)(void* context, const char* name, uint32_t version);
#endif
#if BP_TARGET_MINOR >= 3
  /* Gives the device up: calls of the device that wait, and those that come, return BP_ERROR_DEVICE_LOST soon, whatever
   * the device does. Any thread, beside any call; returns without waiting for them. What the device had is gone, but
   * its memory is not used again before the extension "reset" has ended. */
  bp_status(BP_CALL* abort)(void* context, int32_t ordinal);
  /* As `wait`, for at most `timeout` nanoseconds. *done: 1 where the ticket is complete, 0 where the time has ended. */
  bp_status(BP_CALL* wait_for)(void* context, int32_t ordinal, bp_stream* stream, uint64_t ticket, uint64_t timeout,
                               int32_t* done);
#endif
};

BP_STATIC_ASSERT(sizeof(bp_device_properties) == (BP_TARGET_MINOR >= 3 ? 184 : 160), "bp_device_properties");
BP_STATIC_ASSERT(sizeof(bp_memory_stats) == 56, "bp_memory_stats");
BP_STATIC_ASSERT(sizeof(bp_deferred_error) == 536, "bp_deferred_error");
BP_STATIC_ASSERT(offsetof(bp_backend_def, set_memory_limit) == 184, "bp_backend_def");

#ifdef __cplusplus
}
#endif
#endif

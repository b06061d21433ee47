/* Backplane binary contract: groups of functions beyond the tables, by name and version.
 *
 * bp_host::extension and bp_backend_def::extension give them. Each struct begins with a bp_header; a later version of a
 * name appends to it, so that who asks for version 1 may get a larger struct. */
#ifndef BACKPLANE_ABI_EXTENSIONS_H
#define BACKPLANE_ABI_EXTENSIONS_H

#include "backplane/abi/plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- of the host ------------------------------------------------------------------------------- */

/* Functionality keys of the calling thread: how "autocast" or "profile" is switched on. */
#define BP_EXTENSION_KEYS "keys"
typedef struct bp_extension_keys {
  bp_header header;
  /* The bit of a key in frame->keys; 0: there is none of that name. */
  uint64_t(BP_CALL* find)(const char* name);
  /* From now on every call of this thread carries these keys (on != 0) or no longer does. Gives those of them that it
   * carried before. Bits that are no plugin's key are left out. */
  uint64_t(BP_CALL* include)(uint64_t keys, int32_t on);
} bp_extension_keys;

/* ---- of a backend ------------------------------------------------------------------------------ */

/* What a device has beyond its properties: "f16" (arithmetic), "f64", "subgroup_size", "shared_memory" (bytes), or any
 * word of the backend's own. */
#define BP_EXTENSION_FEATURES "features"
typedef struct bp_extension_features {
  bp_header header;
  /* The names that the backend knows, separated by commas. */
  const char*(BP_CALL* names)(void* context);
  /* 0: not there. A flag is 1. */
  bp_status(BP_CALL* get)(void* context, int32_t ordinal, const char* name, int64_t* value);
} bp_extension_features;

/* Copies between devices of one backend without the host. */
#define BP_EXTENSION_PEERS "peers"
typedef struct bp_extension_peers {
  bp_header header;
  /* 1: `from` may be read by a copy that is recorded on a stream of `to`. */
  bp_status(BP_CALL* can_copy)(void* context, int32_t to, int32_t from, int32_t* can);
  /* Recorded on `stream` of `to`, with its ticket. The host has ordered it behind the work on `src`. */
  bp_status(BP_CALL* copy)(void* context, int32_t to, bp_stream* stream, uint64_t ticket, void* dst,
                           uint64_t dst_offset, int32_t from, void* src, uint64_t src_offset, uint64_t size);
} bp_extension_peers;

/* Times of a stream's work. */
#define BP_EXTENSION_TIMES "times"
typedef struct bp_extension_times {
  bp_header header;
  /* Records work with this ticket that notes the time at which the stream reaches it. The host reads the time after it
   * has waited for the ticket. */
  bp_status(BP_CALL* record)(void* context, int32_t ordinal, bp_stream* stream, uint64_t ticket, void** mark);
  /* Nanoseconds of the device's clock. */
  bp_status(BP_CALL* read)(void* context, int32_t ordinal, void* mark, uint64_t* nanoseconds);
  void(BP_CALL* drop)(void* context, int32_t ordinal, void* mark);
} bp_extension_times;

#ifdef __cplusplus
}
#endif
#endif

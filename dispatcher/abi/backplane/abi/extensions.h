/* Backplane binary contract: groups of functions beyond the tables, by name and version.
 *
 * bp_host::extension and bp_backend_def::extension give them. Each struct begins with a bp_header; a later version of a
 * name appends to it, so that who asks for version 1 may get a larger struct. */
#ifndef BACKPLANE_ABI_EXTENSIONS_H
#define BACKPLANE_ABI_EXTENSIONS_H

#include "backplane/abi/device_extensions.h"
#include "backplane/abi/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Functionality keys of the calling thread: how "autocast" or "profile" is switched on. */
#define BP_EXTENSION_KEYS "keys"
typedef struct bp_extension_keys {
  bp_header header;
  /* The bit of a key in frame->keys; 0: there is none of that name. */
  uint64_t(BP_CALL* find)(const char* name);
  /* From now on every call of this thread carries these keys (on != 0) or no longer does. Returns which of the keys it
   * carried before. Ignores bits that are not the key of a plugin. */
  uint64_t(BP_CALL* include)(uint64_t keys, int32_t on);
} bp_extension_keys;

/* A backend's compiler: it claims parts of a graph, the host runs the rest op by op. `context` is the backend's. A
 * result equals what the ops would compute one by one: bit for bit, or within the tolerance of their entries. */
#define BP_EXTENSION_COMPILER "compiler"
#define BP_NO_REGION 0xffffffffu
typedef struct bp_executable bp_executable; /* opaque: the compiler's own */

typedef struct bp_executable_info {
  bp_header header;
  uint64_t scratch; /* bytes of bp_host::scratch that an execution takes at most; 0: none */
#if BP_TARGET_MINOR >= 3
  uint32_t flags; /* BP_EXECUTABLE_* */
  uint32_t reserved;
#endif
} bp_executable_info;

enum {
  /* A hint. What an execution puts on a stream may run again later over the same memory, as BP_KERNEL_CAPTURABLE says
   * of a kernel. In a capture the nodes of other executables run one by one. */
  BP_EXECUTABLE_CAPTURABLE = 1u << 16
};

typedef struct bp_extension_compiler {
  bp_header header;
  /* Of nodes with values on `device` alone. regions[i], for node i: BP_NO_REGION, or the number of the region that
   * claims it, below *n_regions. No path from a region back into it leads through other nodes. reasons[i] (`reasons`
   * may be NULL): for reports, why node i is left alone: text that lives as long as the plugin; or NULL. */
  bp_status(BP_CALL* partition)(void* context, const bp_host* host, bp_device device, const bp_graph* graph,
                                uint32_t* regions, uint32_t* n_regions, const char** reasons);
  /* Of a region as a graph of its own: its inputs are what it reads, its outputs what others read of it. Constants hold
   * their contents by now; the host orders each execution behind their writes, and keeps them until its work has ended.
   * Any thread. */
  bp_status(BP_CALL* compile)(void* context, const bp_host* host, bp_device device, const bp_graph* region,
                              bp_executable_info* info, bp_executable** executable);
  /* A tensor for each input, with the dtype and dims of its value and any strides; a `given` tensor, or one not wanted,
   * for each output. Returns when the work is recorded on the frame's stream. The frame's `op` has the name of the
   * region, for messages; its `context` is the backend's, `compute` and `loop` are unset. Any number at once. */
  bp_status(BP_CALL* execute)(const bp_frame* frame, bp_executable* executable, const bp_value* inputs,
                              int32_t n_inputs, bp_value* outs, int32_t n_outs);
  /* No execution is running, the work of all has ended, and no recording replays one. After a reset of the device this
   * is the only call that may come for an executable of before. */
  void(BP_CALL* destroy)(void* context, bp_executable* executable);

  /* Optional from here on. */
  /* 1: output `out` may be given the memory of input `in`, whose strides and dims are then its own. Absent: never. */
  int32_t(BP_CALL* may_share)(void* context, const bp_executable* executable, int32_t out, int32_t in);
  /* What a kept executable is found by: text of the region, the compiler's version and the device's properties, NUL
   * included at most `room` bytes. */
  bp_status(BP_CALL* cache_key)(void* context, const bp_host* host, bp_device device, const bp_graph* region, char* key,
                                uint64_t room);
  /* *size: on entry the room at `bytes`, on return what it takes; with too little room nothing is written. */
  bp_status(BP_CALL* serialize)(void* context, const bp_executable* executable, void* bytes, uint64_t* size);
  /* Refuses, with BP_ERROR_DATA, bytes that it has not written or that are damaged. */
  bp_status(BP_CALL* deserialize)(void* context, const bp_host* host, bp_device device, const void* bytes,
                                  uint64_t size, bp_executable_info* info, bp_executable** executable);
} bp_extension_compiler;

#ifdef __cplusplus
}
#endif
#endif

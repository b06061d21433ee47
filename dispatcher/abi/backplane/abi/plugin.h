/* Backplane binary contract: the one symbol that a plugin exports, and what it registers.
 *
 * Life: query (pure) -> register_all (a transaction: a failure withdraws all of it) -> calls -> stop -> closed or
 * parked. A C plugin needs this header alone. */
#ifndef BACKPLANE_ABI_PLUGIN_H
#define BACKPLANE_ABI_PLUGIN_H

#include "backplane/abi/backend.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
  BP_KERNEL_STRIDED = 1u << 0,     /* takes any strides; else the core makes tensors contiguous */
  BP_KERNEL_LOOP = 1u << 1,        /* wants frame->loop (implies STRIDED) */
  BP_KERNEL_IMMEDIATES = 1u << 2,  /* takes numbers in tensor positions */
  BP_KERNEL_INPLACE = 1u << 3,     /* an output may be the very buffer of an input of its shape and dtype */
  BP_KERNEL_CASTS = 1u << 4,       /* takes operands in their own dtypes; else all come in the compute dtype */
  BP_KERNEL_MAY_DECLINE = 1u << 5, /* has `supports` */
  /* Does its work by calling ops and records none itself: frame->stream is NULL, no ticket is issued, and the device is
   * not held while it runs. */
  BP_KERNEL_CALLS_OPS = 1u << 6,
  /* Out slots arrive empty (or not wanted): it stores tensors of its own making, which the core checks against the
   * op's rules. */
  BP_KERNEL_OWN_RESULTS = 1u << 7,
  /* Of an elementwise op: broadcasts on its own. Else the core gives a row without LOOP each tensor in the result's
   * shape. */
  BP_KERNEL_BROADCASTS = 1u << 8,
  /* Binds each block of memory once: an input never lies in the block that an output lies in, not even beside it; the
   * host copies it first. With INPLACE, an output that is the very buffer of an input still arrives, and both are then
   * one binding. */
  BP_KERNEL_SEPARATE_BLOCKS = 1u << 9
};

/* A row of the dispatch table: one op on one backend. */
struct bp_kernel_def {
  bp_header header;
  const char* op;      /* full name */
  const char* backend; /* need not be this plugin's own; "*": every backend, after the rows that name it */
  bp_kernel_fn fn;
  void* context;             /* comes back in the frame */
  uint32_t revision;         /* of the op's signature for which it was written */
  int32_t priority;          /* the higher one wins; then the plugin's name */
  bp_dtype_mask dtypes;      /* compute dtypes that it takes */
  uint32_t flags;            /* BP_KERNEL_* */
  uint64_t offset_alignment; /* bytes; 0: the dtype's own */
  int64_t max_elements;      /* of any operand; 0: no limit */
  /* With MAY_DECLINE. Serves partitioner and reports, and the call path where the masks cannot say it. Of arguments
   * that the shape rule accepts: BP_OK takes the call, anything else declines it for the message's reason. Pure. */
  bp_kernel_fn supports;
  const char* file; /* where it is registered, for `explain` */
  uint32_t line;
  uint32_t reserved;
#if BP_TARGET_MINOR >= 3
  bp_dtype_set dtype_set; /* compute dtypes that it takes beside those of `dtypes` */
#endif
};

/* A functionality key: a reason for which calls are intercepted ("autocast", "profile"). Its place: directly
 * above `above` or below `below` (names of keys; NULL: no wish). `fallback` handles every op; it sees
 * frame->keys without this key and passes the call on with call_op. A kernel row whose `backend` is
 * "key:NAME" handles one op. */
struct bp_key_def {
  bp_header header;
  const char* name;
  const char* above;
  const char* below;
  bp_kernel_fn fallback; /* NULL: calls fall through unless a row handles them */
  void* context;
#if BP_TARGET_MINOR >= 2
  uint32_t flags; /* none yet */
  uint32_t reserved;
#endif
};

enum {
  BP_PLUGIN_UNLOADABLE = 1u << 0 /* may be closed; else it is parked: mapped, inert, loadable again */
};

/* Filled by bp_plugin_query. Strings and functions must live as long as the file is mapped. */
typedef struct bp_plugin {
  bp_header header;
  uint32_t abi_major; /* BP_ABI_MAJOR of the header it was compiled with */
  uint32_t abi_minor;
  uint32_t needs_minor; /* the oldest host minor that it can run on */
  uint32_t flags;       /* BP_PLUGIN_* */
  const char* name;     /* unique in a process */
  const char* version;  /* of the plugin, for people */
  void* context;
  bp_status(BP_CALL* register_all)(void* context, const bp_host* host, bp_plugin_record* record);
  /* Ends its threads; no call is running and no lease is held. Optional. */
  bp_status(BP_CALL* stop)(void* context);
} bp_plugin;

/* `out->header.struct_size` holds the host's size on entry. The plugin does not write beyond it, and sets it to
 * the size that it wrote. Pure: does not start a device or thread, and does not allocate. */
typedef bp_status(BP_CALL* bp_plugin_query_fn)(uint32_t host_major, uint32_t host_minor, bp_plugin* out);
#define BP_PLUGIN_QUERY_SYMBOL "bp_plugin_query"

BP_STATIC_ASSERT(sizeof(bp_kernel_def) == (BP_TARGET_MINOR >= 3 ? 104 : 96), "bp_kernel_def");
BP_STATIC_ASSERT(offsetof(bp_key_def, context) == 40, "bp_key_def");
BP_STATIC_ASSERT(sizeof(bp_plugin) == 64, "bp_plugin");

#ifdef __cplusplus
}
#endif
#endif

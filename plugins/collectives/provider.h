/* Collective providers: what moves data between the ranks of a program. Version 1.
 *
 * A provider is a shared object that exports one function, BP_COLLECTIVE_PROVIDER_SYMBOL, which fills the table below.
 * It imports no symbol of Backplane. The plugin `collectives` opens it when a program calls
 * bp.distributed.init(provider=...), and brings everything else: the ops with their derivatives, staging of device
 * memory, the comparison of what the ranks call, deadlines, and what happens when a rank is lost.
 *
 * A provider therefore never waits without end: `start` begins a call, and `test` moves it on. Only where a call has
 * the flag BP_COLLECTIVE_ALL_THERE may `start` wait until the call has ended.
 * Structs grow at their ends only: read and write no more than `struct_size` says. */
#ifndef BACKPLANE_COLLECTIVES_PROVIDER_H
#define BACKPLANE_COLLECTIVES_PROVIDER_H

#include "backplane/abi/base.h"

#ifdef __cplusplus
extern "C" {
#endif

#define BP_COLLECTIVES_VERSION 1

enum {
  BP_COLLECTIVE_ALL_REDUCE = 1,
  BP_COLLECTIVE_ALL_GATHER = 2,
  BP_COLLECTIVE_REDUCE_SCATTER = 3,
  BP_COLLECTIVE_BROADCAST = 4,
  BP_COLLECTIVE_REDUCE = 5,
  BP_COLLECTIVE_ALL_TO_ALL = 6,
  BP_COLLECTIVE_SCATTER = 7,
  BP_COLLECTIVE_GATHER = 8,
  BP_COLLECTIVE_SEND = 9,
  BP_COLLECTIVE_RECV = 10,
  BP_COLLECTIVE_BARRIER = 11
};

/* MEAN: of device providers alone. */
enum {
  BP_COLLECTIVE_SUM = 1,
  BP_COLLECTIVE_MAX = 2,
  BP_COLLECTIVE_MIN = 3,
  BP_COLLECTIVE_PROD = 4,
  BP_COLLECTIVE_MEAN = 5
};

enum { BP_COLLECTIVE_ALL_THERE = 1u << 0 /* a hint: all ranks of the group have made this call */ };

typedef struct bp_collective_call {
  bp_header header;
  uint32_t kind;   /* BP_COLLECTIVE_ALL_REDUCE … */
  uint32_t reduce; /* BP_COLLECTIVE_SUM …; 0 for a kind that does not reduce */
  /* Of a reduction: an integer dtype, float32, float64, complex64 or complex128 (the latter two with SUM and PROD
   * alone). Of all other kinds: BP_UINT8, whatever the tensor holds. */
  uint32_t dtype;
  int32_t peer; /* the root, destination or source: a position in the group */
  /* Elements of one block: of the whole tensor for ALL_REDUCE, BROADCAST, REDUCE, SEND and RECV, and of what one rank
   * has of the joined or divided tensor for the others. May exceed 2^31; never 0. */
  uint64_t count;
  const void* in; /* host memory; stays as it is until the call has ended. NULL: RECV, BARRIER */
  void* out;      /* host memory, apart from `in`; written on the ranks that receive. NULL: SEND, BARRIER */
  uint32_t flags; /* BP_COLLECTIVE_ALL_THERE */
  uint32_t reserved;
} bp_collective_call;

/* Functions return a bp_status; after a failure `error` says why, to the thread that saw it. */
typedef struct bp_collective_provider {
  bp_header header; /* version: BP_COLLECTIVES_VERSION, or what was asked for if that is less */
  const char* name;
  /* Connects the process. Gives its rank, their number, and what the other functions take as `connection`. */
  bp_status(BP_CALL* join)(int32_t* rank, int32_t* size, void** connection);
  /* A group of ranks, in this order; all of them call it, and no other. It lives as long as the connection. */
  bp_status(BP_CALL* make_group)(void* connection, const int32_t* ranks, int32_t n_ranks, void** group);
  /* Memory of zeros that all ranks of the group read and write, for the comparison of their calls; all of them ask for
   * it. *memory is NULL where they lie on several machines. It lives as long as the connection. */
  bp_status(BP_CALL* share)(void* group, uint64_t bytes, void** memory);
  /* Begins a call. *work is NULL where it has ended already. */
  bp_status(BP_CALL* start)(void* group, const bp_collective_call* call, void** work);
  /* Moves a call on; returns at once. *done: it has ended, and `work` is no more. */
  bp_status(BP_CALL* test)(void* group, void* work, int32_t* done);
  /* Disconnects the process, after its last call. May wait for the others, which leave, too. */
  bp_status(BP_CALL* leave)(void* connection);
  /* After a failure: ends the processes of all ranks, this one included. */
  void(BP_CALL* abort)(void* connection, int32_t code);
  const char*(BP_CALL* error)(void);
} bp_collective_provider;

/* `out->header.struct_size` holds the caller's size on entry. */
typedef bp_status(BP_CALL* bp_collective_provider_query_fn)(uint32_t version, bp_collective_provider* out);
#define BP_COLLECTIVE_PROVIDER_SYMBOL "bp_collective_provider_query"

/* Device providers: what moves data between devices of several ranks without the host, such as NCCL. Version 1.
 *
 * bp.distributed.init(devices=...) opens one beside the provider above, which stays in charge of the host's memory and
 * of all that ranks tell each other. A device provider records calls on the stream of the device where the operands are
 * computed, and returns at once. Which calls it takes depends on kind, reduction and dtype alone, so that all ranks
 * decide alike; the host's provider does the others. `in` and `out` of a call are device memory. REDUCE and GATHER fill
 * `out` with zeros on ranks other than the root. The dtype of a reduction is the tensor's own (BP_UINT8 for bool), and
 * BP_UINT8 of all other calls. */
#define BP_COLLECTIVE_DEVICES_VERSION 1

typedef struct bp_collective_device_provider {
  bp_header header; /* version: BP_COLLECTIVE_DEVICES_VERSION, or what was asked for if that is less */
  const char* name;
  /* The native handles that it needs of a backend, as bp_backend_def::native names them: of a device and of a stream.
   * It serves every backend that has them. */
  const char* device_kind;
  const char* stream_kind;
  uint64_t id_bytes; /* of what identifies a group */
  /* Whether everything that it needs is there on this machine. */
  bp_status(BP_CALL* is_available)(void);
  /* Called by the group's first rank, which gives the bytes to the others. */
  bp_status(BP_CALL* make_id)(void* id);
  /* Connects a device. All ranks of the group call it at the same time; it waits for them. */
  bp_status(BP_CALL* open)(const void* id, int32_t rank, int32_t size, void* device, void** group);
  /* BP_OK: `start` takes such calls. Reads kind, reduce and dtype. */
  bp_status(BP_CALL* supports)(const bp_collective_call* call);
  bp_status(BP_CALL* start)(void* group, const bp_collective_call* call, void* stream);
  /* What has failed on the device since. Any thread. */
  bp_status(BP_CALL* check)(void* group);
  /* After the last call; waits for the calls that run. */
  bp_status(BP_CALL* close)(void* group);
  const char*(BP_CALL* error)(void);
} bp_collective_device_provider;

/* `out->header.struct_size` holds the caller's size on entry. */
typedef bp_status(BP_CALL* bp_collective_device_provider_query_fn)(uint32_t version,
                                                                   bp_collective_device_provider* out);
#define BP_COLLECTIVE_DEVICE_PROVIDER_SYMBOL "bp_collective_device_provider_query"

#ifdef __cplusplus
}
#endif
#endif

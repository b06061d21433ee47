/* Backplane binary contract: a graph of ops, as a compiler of a backend sees it.
 *
 * Typed single-assignment form: a value is an input, a constant or the result of one node. Everything here is borrowed
 * for the call that receives it, and read-only. Arrays cross with their strides, so that values and nodes may grow at
 * their ends. */
#ifndef BACKPLANE_ABI_GRAPH_H
#define BACKPLANE_ABI_GRAPH_H

#include "backplane/abi/op.h"

#ifdef __cplusplus
extern "C" {
#endif

/* In the arguments of a bp_graph_node, and nowhere else. */
enum {
  BP_TAG_REF = 11,                           /* i: the number of a value, in place of a TENSOR */
  BP_TAG_REF_LIST = BP_TAG_LIST | BP_TAG_REF /* ints: numbers of values; -1: an absent element */
};

typedef struct bp_graph_value {
  bp_dtype dtype;
  uint16_t flags; /* none yet */
  int32_t ndim;
  /* [ndim]. A size that is known only at run time is negative: within a graph, equal numbers are equal sizes. */
  const int64_t* dims;
  bp_device device;
  bp_tensor* constant; /* its contents where it is a constant; who keeps it, retains it. Else NULL */
} bp_graph_value;

/* Hints: who does not know one leaves it. */
enum {
  /* Computed again so that nothing is kept until now: to join it to what runs before would keep its results. */
  BP_GRAPH_NODE_RECOMPUTED = 1u << 0
};
typedef struct bp_graph_node {
  const char* op; /* the full name, "namespace::name" */
  uint32_t op_index;
  uint32_t revision; /* of the signature that `args` follow */
  /* Resolved as for a kernel of this minor (axes counted from the front, absent axes of a reduction listed, defaults
   * filled in), with REF and REF_LIST for tensors; a number may stand in a tensor position. GRAPH: u.p is a const
   * bp_graph*, or NULL where the host does not show it. */
  const bp_value* args;
  const uint32_t* results; /* numbers of values */
  uint32_t n_args;
  uint32_t n_results;
  /* As in bp_frame. A tensor argument that shares it and has another dtype is cast to it. BP_DTYPE_NONE: a call that
   * the host keeps to itself; no compiler may claim it. */
  bp_dtype compute;
  uint16_t flags; /* BP_GRAPH_NODE_* */
  uint32_t reserved;
  uint64_t shares;    /* bit per argument: those that share the compute dtype, as bp_op_def::promote */
  uint64_t op_flags;  /* BP_OP_* of the op */
  const char* source; /* "file:line" of the user's call, for messages; or NULL */
#if BP_TARGET_MINOR >= 3
  uint64_t faults; /* BP_FAULT_* that this call may meet in its compute dtype; BP_FAULT_NONE where it takes all data */
  uint16_t region; /* BP_REGION_*, never DERIVED */
  uint16_t join;   /* BP_JOIN_* of BP_REGION_REDUCE */
  uint32_t reserved_tail;
#endif
} bp_graph_node;

typedef struct bp_graph {
  bp_header header;
  bp_array values; /* bp_graph_value */
  bp_array nodes;  /* bp_graph_node, in an order in which each comes after what it reads */
  const uint32_t* inputs;
  const uint32_t* outputs; /* may name inputs and constants, and a value twice */
  uint32_t n_inputs;
  uint32_t n_outputs;
} bp_graph;

BP_STATIC_ASSERT(sizeof(bp_graph_value) == 32, "bp_graph_value");
BP_STATIC_ASSERT(sizeof(bp_graph_node) == (BP_TARGET_MINOR >= 3 ? 88 : 72), "bp_graph_node");
BP_STATIC_ASSERT(sizeof(bp_graph) == 64, "bp_graph");

#ifdef __cplusplus
}
#endif
#endif

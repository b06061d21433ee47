/* Backplane binary contract: what a kernel receives, and what the host offers.
 *
 * A plugin imports no symbol from us: the host table comes in the frame of every call and at registration.
 * Functions of the table may be called from any thread unless a line says otherwise. */
#ifndef BACKPLANE_ABI_HOST_H
#define BACKPLANE_ABI_HOST_H

#include "backplane/abi/op.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct bp_stream bp_stream;               /* opaque: the backend's own */
typedef struct bp_plugin_record bp_plugin_record; /* opaque: the host's record of a plugin being registered */
typedef struct bp_backend_def bp_backend_def;     /* backend.h */
typedef struct bp_kernel_def bp_kernel_def;       /* plugin.h */
typedef struct bp_key_def bp_key_def;             /* plugin.h */

/* An integer tensor of advanced indexing: element i of it is a position along an axis, from the back where it is
 * negative. The kernel checks that it lies in [-size, size). */
typedef struct bp_loop_index {
  int32_t operand; /* of the loop */
  int32_t axis;    /* of the indexed tensor, and the element of the list */
  int64_t size;    /* of the axis */
  int64_t stride;  /* bytes from one position to the next in the indexed operand */
} bp_loop_index;

/* Dimensions merged where strides allow, innermost last. Operands: outputs first, then the tensor arguments in
 * order (a number in a tensor position has strides 0 and no data). For a reduction the output has stride 0
 * along reduced dims. Rank 0 means one element.
 *
 * For advanced indexing (the shape rules `index` and `index_put`) the loop runs over what the indices select, in the
 * order of its dims. Absent elements of the list are not operands. `indexed` is the operand that is read (index), or
 * written once it holds x (index_put). At each place, its byte offset is the offset by its strides plus, for each of
 * `indices`, the position times `stride`. The index tensors have dims [joint_first, joint_first + joint_rank). */
typedef struct bp_loop {
  bp_header header;
  int32_t rank;
  int32_t n_operands;
  int64_t count;          /* product of sizes */
  const int64_t* sizes;   /* [rank] */
  const int64_t* strides; /* bytes, [n_operands][rank] */
#if BP_TARGET_MINOR >= 2
  const bp_loop_index* indices;
  int32_t n_indices;
  int32_t indexed;
  int32_t joint_first;
  int32_t joint_rank;
#endif
#if BP_TARGET_MINOR >= 3
  uint32_t index_stride; /* bytes from one element of `indices` to the next */
  uint32_t reserved;
#endif
} bp_loop;

/* One form for kernels, fallbacks, transforms and Python. Arguments are borrowed. Each out slot arrives as
 *   given:      TENSOR, flags & BP_VALUE_GIVEN: a borrowed tensor of the inferred shape, to be written;
 *   not wanted: ABSENT, flags & BP_VALUE_NOT_WANTED;
 *   empty:      ABSENT, flags 0: the callee stores a value that owns one reference.
 * A kernel of an op sees `given` for a result whose shape the core infers, also where the caller does not want it: the
 * host then lends memory and drops it after the call. Dynamic results, and all results of a row with
 * BP_KERNEL_OWN_RESULTS, arrive `empty` or `not wanted`. Decompositions, fallbacks and transforms handle all three.
 * `n_args` of a backend's kernel counts the arguments that the op has in the row's revision. It returns when its work
 * is recorded on the frame's stream. On failure the host releases what `empty` slots hold. */
typedef bp_status(BP_CALL* bp_kernel_fn)(const bp_frame* frame, const bp_value* args, int32_t n_args, bp_value* outs,
                                         int32_t n_outs);

/* What a call knows of itself. Valid until the call returns. */
typedef struct bp_op_info {
  bp_header header;
  const char* name;
  uint32_t op; /* the interned handle, as find_op gives it */
  uint32_t revision;
  void* context; /* bp_op_def::context */
} bp_op_info;

typedef struct bp_host bp_host;
struct bp_frame {
  bp_header header;
  const bp_host* host;
  const bp_op_info* op;
  void* context;     /* the kernel's, as registered */
  bp_stream* stream; /* NULL for a backend without streams */
  uint32_t backend;
  int32_t ordinal;
  uint64_t ticket;  /* the position on the stream at which this call's work completes */
  uint64_t keys;    /* functionality keys still to be considered below this call */
  uint32_t level;   /* the transform level that is running; 0: none */
  bp_dtype compute; /* the compute dtype that the core resolved */
  uint16_t reserved;
  const bp_loop* loop; /* for elementwise ops and reductions whose row asks for it; else NULL. NULL for an elementwise
                          call whose row asks for it means flat: every tensor is contiguous and has the first result's
                          shape, so that elements correspond one to one (how many: its nbytes) */
};

/* `worker` is below the host's worker count; no two running bodies of one parallel_for have the same. */
typedef bp_status(BP_CALL* bp_parallel_body)(void* context, int64_t begin, int64_t end, int32_t worker);

enum { BP_LOG_DEBUG = 0, BP_LOG_INFO = 1, BP_LOG_WARNING = 2, BP_LOG_ERROR = 3 };

struct bp_host {
  bp_header header;
  uint32_t abi_major;
  uint32_t abi_minor;

  /* The message of the failure that the caller is about to return: UTF-8, copied, kept for this thread. */
  void(BP_CALL* set_error)(bp_status code, const char* message);
  /* The current thread's message, "" if none; valid until the next set_error on this thread. */
  const char*(BP_CALL* get_error)(void);
  void(BP_CALL* log)(int32_t severity, const char* message);

  /* Makes a new tensor on the frame's device and stores it in an empty slot, which then owns it. */
  bp_status(BP_CALL* alloc_output)(const bp_frame* frame, bp_value* slot, bp_dtype dtype, int32_t ndim,
                                   const int64_t* shape);
  /* Device memory, valid on the frame's stream until the work that this call records has ended, and shared with no
   * other block of the call. The block's base, in the sense of bp_tensor's dl.data; offset 0. */
  bp_status(BP_CALL* scratch)(const bp_frame* frame, uint64_t size, void** data);
  /* Calls an op, at the frame's level and keys. Out slots as in bp_kernel_fn. */
  bp_status(BP_CALL* call_op)(const bp_frame* frame, uint32_t op, const bp_value* args, int32_t n_args, bp_value* outs,
                              int32_t n_outs);
  /* The handle of an op by full name; BP_NO_OP where there is none. Handles are never reused. */
  uint32_t(BP_CALL* find_op)(const char* name);
  /* A new tensor over the same storage; strides in elements. Checked against the storage's size. */
  bp_status(BP_CALL* make_view)(const bp_frame* frame, bp_tensor* base, int32_t ndim, const int64_t* shape,
                                const int64_t* strides, uint64_t byte_offset, bp_tensor** out);
  void(BP_CALL* retain)(bp_tensor* tensor);
  void(BP_CALL* release)(bp_tensor* tensor);

  /* Runs body over [begin, end) in pieces of at least `grain`; returns the first failure, whose message reaches
   * this thread. Nested calls run inline. */
  bp_status(BP_CALL* parallel_for)(int64_t begin, int64_t end, int64_t grain, bp_parallel_body body, void* context);
  int32_t(BP_CALL* worker_count)(void);

  /* Registration: only from within bp_plugin::register_all, on its thread. Each copies what it is given. */
  bp_status(BP_CALL* register_op)(bp_plugin_record* plugin, const bp_op_def* op);
  bp_status(BP_CALL* register_backend)(bp_plugin_record* plugin, const bp_backend_def* backend);
  bp_status(BP_CALL* register_kernel)(bp_plugin_record* plugin, const bp_kernel_def* kernel);
  bp_status(BP_CALL* register_key)(bp_plugin_record* plugin, const bp_key_def* key);

  /* The native(kind) handle of a device, for a kernel that another plugin brings to it. */
  bp_status(BP_CALL* native)(const bp_frame* frame, const char* kind, void** handle);

  /* Makes a list of `count` absent tensors in an empty slot, for a `Tensor[]` result. The slot owns the list, the list
   * one reference per element that is stored in `*elements` (NULL: it stays absent); the host frees both. */
  bp_status(BP_CALL* alloc_list)(const bp_frame* frame, bp_value* slot, uint32_t count, bp_tensor*** elements);

  /* As call_op, of an op with one result. The caller holds a reference to each tensor args[i] whose bit i of `donated`
   * is set, and drops it next: where nobody else holds one, the result may take its memory. */
  bp_status(BP_CALL* call_op_donating)(const bp_frame* frame, uint32_t op, const bp_value* args, int32_t n_args,
                                       bp_value* out, uint64_t donated);
#if BP_TARGET_MINOR >= 2
  /* A group of functions by name: a struct of extensions.h, which begins with a bp_header, lives as long as the
   * process, and is of `version` or appends to it. NULL: this host has none such. */
  const void*(BP_CALL* extension)(const char* name, uint32_t version);
#endif
};
#define BP_NO_OP 0xffffffffu

BP_STATIC_ASSERT(sizeof(bp_loop) == (BP_TARGET_MINOR >= 3 ? 72 : BP_TARGET_MINOR >= 2 ? 64 : 40), "bp_loop");
BP_STATIC_ASSERT(sizeof(bp_op_info) == 32, "bp_op_info");
BP_STATIC_ASSERT(sizeof(bp_frame) == 80, "bp_frame");
BP_STATIC_ASSERT(offsetof(bp_host, set_error) == 16, "bp_host");

#ifdef __cplusplus
}
#endif
#endif

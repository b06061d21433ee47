/* Backplane binary contract: the op record.
 *
 * One record is everything the core knows of an op: signature, dtype rule, shape rule, and each formula as
 * a flat array of nodes. codegen emits records from YAML, a plugin carries its own in its binary, and
 * `custom_op` fills one at run time. The core copies and verifies a record when it is registered, so all
 * pointers here need to live only until `register_op` returns (function pointers and their contexts: until the
 * plugin is unloaded). */
#ifndef BACKPLANE_ABI_OP_H
#define BACKPLANE_ABI_OP_H

#include "backplane/abi/value.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct bp_frame bp_frame;

/* (pointer, count, stride): the reader steps by `stride` and reads only the members it knows. */
typedef struct bp_array {
  const void* data;
  uint32_t count;
  uint32_t stride;
} bp_array;

/* ---- signature --------------------------------------------------------------------------------- */

/* Types with meaning: `Size k`, `Axis axis` and `Shape shape` are all ints in C, and batching and symbolic
 * rules can be derived only because they differ here. X(constant, number, the word of signatures), with the tag that
 * each takes. */
#define BP_TYPES(X)                                                                     \
  X(TENSOR, 1, "Tensor")        /* TENSOR, or a number flagged BP_VALUE_NUMBER */       \
  X(SCALAR, 2, "Scalar")        /* BOOL, INT, FLOAT, COMPLEX; static: never a tensor */ \
  X(AXIS, 3, "Axis")            /* INT, may be negative */                              \
  X(AXES, 4, "Axes")            /* INT_LIST of axes */                                  \
  X(SHAPE, 5, "Shape")          /* INT_LIST of sizes */                                 \
  X(SIZE, 6, "Size")            /* INT >= 0 */                                          \
  X(INDEX, 7, "Index")          /* INT, a position along an axis, may be negative */    \
  X(DTYPE, 8, "Dtype")          /* DTYPE */                                             \
  X(DEVICE, 9, "Device")        /* DEVICE */                                            \
  X(GENERATOR, 10, "Generator") /* GENERATOR */                                         \
  X(BOOL, 11, "bool")           /* BOOL */                                              \
  X(STR, 12, "str")             /* STRING */                                            \
  X(GRAPH, 13, "Graph")         /* GRAPH */
#define BP_TYPE_VALUE(constant, number, word) BP_TYPE_##constant = number,
enum { BP_TYPES(BP_TYPE_VALUE) BP_TYPE_COUNT };
#undef BP_TYPE_VALUE

enum {
  BP_ARG_OPTIONAL = 1u << 0,          /* ABSENT is a legal value: `Tensor?`, `Axis?` */
  BP_ARG_LIST = 1u << 1,              /* a list of the type: `Tensor[]`, `Index[]` */
  BP_ARG_OPTIONAL_ELEMENTS = 1u << 2, /* its elements may be absent: `Index?[]`, `Tensor?[]` */
  BP_ARG_KEYWORD_ONLY = 1u << 3,      /* after `*` */
  BP_ARG_HAS_DEFAULT = 1u << 4
};

typedef struct bp_arg_def {
  const char* name;
  uint16_t type;  /* BP_TYPE_* */
  uint16_t flags; /* BP_ARG_* */
  uint32_t since; /* the signature revision that brought it; 0 from the start */
  bp_value default_value;
} bp_arg_def;

typedef struct bp_result_def {
  const char* name; /* "out" where the entry names none */
  uint16_t type;    /* BP_TYPE_TENSOR */
  uint16_t flags;   /* BP_ARG_LIST for `Tensor[]`; BP_RESULT_NONDIFF */
  uint32_t reserved;
} bp_result_def;
enum { BP_RESULT_NONDIFF = 1u << 8 };

/* ---- dtype rule -------------------------------------------------------------------------------- */

/* How one result's dtype follows. The compute dtype is the promotion of the arguments in the record's
 * `promote` set (numbers and Scalars weakly); with no set, the first tensor's own. */
enum {
  BP_RESULT_DTYPE_COMPUTE = 0,
  BP_RESULT_DTYPE_FIXED = 1,      /* param: a bp_dtype */
  BP_RESULT_DTYPE_OF_ARG = 2,     /* param: a tensor argument; its own dtype */
  BP_RESULT_DTYPE_FROM_ARG = 3,   /* param: a Dtype argument; where absent, `fallback` says */
  BP_RESULT_DTYPE_REAL = 4,       /* the real type of the compute dtype: complex64 -> float32 */
  BP_RESULT_DTYPE_COMPLEX = 5,    /* the complex type of the compute dtype: float32 -> complex64 */
  BP_RESULT_DTYPE_ACCUMULATE = 6, /* bool, int -> int64; uint -> uint64; else compute */
  BP_RESULT_DTYPE_FUNCTION = 7    /* the record's `dtype_fn` says */
};
typedef struct bp_result_dtype {
  uint16_t kind;
  uint16_t fallback; /* for FROM_ARG: a kind of this enum without parameter, or BP_RESULT_DTYPE_FIXED */
  uint32_t param;
  uint32_t fallback_param; /* the dtype where fallback is FIXED */
  uint32_t reserved;
} bp_result_dtype;

enum {
  BP_DTYPE_TO_FLOATING = 1u << 0, /* bool and integers compute in the default float */
  BP_DTYPE_BITS = 1u << 1,        /* no promotion among kinds: all of `promote` must agree exactly */
  BP_DTYPE_COMPARES = 1u << 2, /* a number outside the tensors' integer dtype is compared as an infinity, not refused */
  BP_DTYPE_WRAPS = 1u << 3     /* such a number, a Scalar, is taken modulo the dtype's range */
};

/* ---- formulas ---------------------------------------------------------------------------------- */

/* A node computes one value from earlier nodes; nodes are numbered in topological order, so a record
 * cannot hold a cycle. `let` is a node used twice. IF evaluates one branch only. */
enum {
  BP_NODE_CONST = 1,     /* imm: index into consts (numbers, dtypes, strings, ABSENT) */
  BP_NODE_ARG = 2,       /* imm: argument */
  BP_NODE_OUT = 3,       /* imm: result */
  BP_NODE_COTANGENT = 4, /* imm: result: `g`, `g.i`; in a PUT formula, imm 0 is the piece `v` */
  BP_NODE_TANGENT = 5,   /* imm: argument: `t.x` */
  BP_NODE_NEEDS = 6,     /* imm: argument: is its derivative wanted (bool) */
  BP_NODE_BATCHED = 7,   /* imm: argument: has it a batch dim (bool), at axis 0; in BATCH formulas */
  BP_NODE_SHAPE = 8,     /* (tensor) -> int list */
  BP_NODE_NDIM = 9,      /* (tensor) -> int */
  BP_NODE_DTYPE = 10,    /* (tensor) -> dtype */
  BP_NODE_DEVICE = 11,   /* (tensor) -> device */
  BP_NODE_CALL = 12,     /* imm: index into names; inputs are the op's arguments, missing last ones default */
  BP_NODE_SELECT = 13,   /* (tuple or list) -> its element imm */
  BP_NODE_BUILTIN = 14,  /* imm: index into names; a function on ints, lists and dtypes: vocabulary.h */
  BP_NODE_IF = 15,       /* (condition, then, else) */
  BP_NODE_LIST = 16,     /* (elements...) -> int list, or tensor list */
  BP_NODE_MAP = 17,      /* (list, body); imm: variable slot bound in body */
  BP_NODE_FOLD = 18,     /* (list, initial, body); imm: slot of the accumulator; imm + 1: of the element */
  BP_NODE_VAR = 19,      /* imm: slot */
  BP_NODE_FIT = 20       /* (tensor); imm: argument: reduce to its shape, cast to its dtype, real part if it is
                            real; the ops that do so are the record's fit_names */
};

typedef struct bp_node {
  uint16_t kind;
  uint16_t n_inputs;
  uint32_t first_input; /* into bp_program::inputs */
  int64_t imm;
} bp_node;

typedef struct bp_program {
  const bp_node* nodes;
  const uint32_t* inputs; /* node numbers */
  const bp_value* consts;
  const char* const* names; /* ops and builtins by name; linked once, when first needed */
  uint32_t n_nodes;
  uint32_t n_inputs;
  uint32_t n_consts;
  uint32_t n_names;
} bp_program;

enum {
  BP_RULE_VJP = 1,       /* targets: arguments; roots: a cotangent each */
  BP_RULE_JVP = 2,       /* targets: arguments whose tangents it reads; roots: its addend to each result's tangent */
  BP_RULE_DECOMPOSE = 3, /* roots: a value per result */
  BP_RULE_BATCH = 4,     /* roots: a value per result, batch dim at axis 0 */
  BP_RULE_PUT = 5,       /* of a view: roots: the base with piece `v` written back */
  BP_RULE_SHAPE = 6      /* roots: an int list per result */
};

enum {
  BP_FORMULA_ZERO = 1u << 0,       /* VJP/JVP: zero almost everywhere; no roots */
  BP_FORMULA_REFUSED = 1u << 1,    /* no rule, in writing; `text` is the reason; no roots */
  BP_FORMULA_TUPLE = 1u << 2,      /* one root, a call with several results that go to the targets in order */
  BP_FORMULA_PASS_ZEROS = 1u << 3, /* absent cotangents are passed as ABSENT instead of being made */
  BP_FORMULA_LOOP = 1u << 4,       /* BATCH: loop over the batch, counted; no roots */
  BP_FORMULA_DERIVED = 1u << 5,    /* codegen's; BATCH with no roots: by the shape word, where bp_batch_follows */
  /* `native` always runs, and nodes only state what it reads: what the roots reach (args, outs; SHAPE of an arg where
   * metadata is enough) is kept for it. Any number of roots. It returns a value per target for a VJP, one value for a
   * PUT, and one per result otherwise. */
  BP_FORMULA_NATIVE_ONLY = 1u << 6
};

/* What a formula reads. Borrowed; an absent cotangent or tangent is ABSENT. `calls[i]` is the linked op
 * handle of names[i]. Names that no node calls are for native formulas (the ops of FIT), and are linked too. */
typedef struct bp_formula_env {
  bp_header header;
  const bp_value* args;
  const bp_value* outs;
  const bp_value* cotangents;
  const bp_value* tangents;
  const uint32_t* calls;
  uint64_t needs;         /* bit per argument; arguments from 63 up share bit 63 */
  const uint8_t* batched; /* BATCH: per argument, has it a batch dim (at axis 0); else NULL */
} bp_formula_env;

/* Generated C++ for a hot formula, proved equal to the evaluator by test; or, with BP_FORMULA_NATIVE_ONLY, a rule that
 * the vocabulary cannot say. `results` receive owned values, one per root (TUPLE: one per target). The record's
 * `context` is frame->op->context. */
typedef bp_status(BP_CALL* bp_formula_fn)(const bp_frame* frame, const bp_formula_env* env, bp_value* results);

typedef struct bp_formula {
  uint16_t rule;
  uint16_t flags;
  uint32_t n_targets;
  const uint32_t* targets;
  const uint32_t* roots; /* node numbers */
  uint32_t n_roots;
  uint32_t line;        /* in the YAML file */
  bp_formula_fn native; /* or NULL */
  const char* text;     /* as written, or the reason of a refusal */
} bp_formula;

/* ---- shape rule -------------------------------------------------------------------------------- */

/* A rule that the vocabulary cannot say. Sees shapes and attributes, never data: tensors in `args` carry no
 * data pointer. Writes at most 64 sizes. */
typedef bp_status(BP_CALL* bp_shape_fn)(const bp_frame* frame, const bp_value* args, int32_t n_args, int32_t result,
                                        int64_t* sizes, int32_t* ndim);

/* The dtype of a result whose rule is BP_RESULT_DTYPE_FUNCTION; sees what a bp_shape_fn sees. */
typedef bp_status(BP_CALL* bp_dtype_fn)(const bp_frame* frame, const bp_value* args, int32_t n_args, int32_t result,
                                        bp_dtype* dtype);

/* One per result. `name` is a word of the vocabulary (vocabulary.h lists them; e.g. "broadcast", "reduce",
 * "matmul", "view.permute"), with the arguments that it reads; "expr": the SHAPE formula's root of
 * that result; "function": `fn`; "dynamic": the kernel allocates. */
typedef struct bp_shape_rule {
  const char* name;
  const uint32_t* args; /* argument numbers; BP_NO_ARG where one is left out */
  uint32_t n_args;
  uint32_t reserved;
  bp_shape_fn fn;
} bp_shape_rule;
#define BP_NO_ARG 0xffffffffu

/* ---- the record -------------------------------------------------------------------------------- */

enum {
  BP_OP_VIEW = 1u << 0,          /* metadata work of the core; never reaches a backend */
  BP_OP_MAYBE_VIEW = 1u << 1,    /* alias: maybe (reshape) */
  BP_OP_INPLACE = 1u << 2,       /* has an in-place variant, `name_`, on its first tensor */
  BP_OP_OUT = 1u << 3,           /* has an out= variant */
  BP_OP_ELEMENTWISE = 1u << 4,   /* loop descriptor over all tensors, broadcast; output may be an input's buffer */
  BP_OP_REDUCTION = 1u << 5,     /* loop descriptor with zero output strides on reduced dims */
  BP_OP_RANDOM = 1u << 6,        /* takes a generator state; concerns vmap even with no batched tensor */
  BP_OP_CREATION = 1u << 7,      /* no tensor argument; concerns vmap likewise */
  BP_OP_HOST = 1u << 8,          /* host: true: may run on the host for a device without a kernel */
  BP_OP_DYNAMIC = 1u << 9,       /* a result's shape depends on values */
  BP_OP_PRIMITIVE = 1u << 10,    /* a backend that has all primitives runs the registry */
  BP_OP_LINEAR = 1u << 11,       /* jointly linear in its differentiable arguments */
  BP_OP_COMPOSITE = 1u << 12,    /* always decomposed where it is called: no kernel, no rule of its own */
  BP_OP_HIGHER_ORDER = 1u << 13, /* takes a Graph, which brings its own rules: no kernel, no formulas */
  BP_OP_MOVES = 1u << 14         /* moves elements and computes nothing: serves dtypes that the device lacks, too */
};

/* What a call of the op may find wrong in the data of its arguments, for which it fails with BP_ERROR_DATA. A bit that
 * is not listed is another error of the data. */
enum {
  BP_FAULTS_UNSTATED = 0,      /* no one has said: any */
  BP_FAULT_NONE = 1u << 0,     /* stated: it takes all data. Stands alone */
  BP_FAULT_INDEX = 1u << 1,    /* an index or a label is out of range */
  BP_FAULT_DIVISION = 1u << 2, /* the second argument has a 0; only in integer compute dtypes */
  BP_FAULT_EXPONENT = 1u << 3, /* the second argument has a number below 0; only in integer compute dtypes */
  BP_FAULT_DOMAIN = 1u << 4    /* other data that it does not take: a singular matrix, a count below 0 */
};

/* What a compiler may do with a call of the op that it finds in a graph. */
enum {
  BP_REGION_DERIVED = 0,     /* of a record: from its flags and its shape word (bp_region_of in vocabulary.h) */
  BP_REGION_NONE = 1,        /* nothing */
  BP_REGION_CAST = 2,        /* the result is the only tensor, in the result's dtype */
  BP_REGION_VIEW = 3,        /* the elements of the first argument in their order, or repeated by broadcasting */
  BP_REGION_ELEMENTWISE = 4, /* an element of a result depends on the elements at its place, after broadcasting */
  BP_REGION_REDUCE = 5,      /* (x, axes, ...): `join` says how the elements along the axes become one */
  BP_REGION_PRODUCT = 6      /* the matrix product of the first two arguments */
};
enum {
  BP_JOIN_NONE = 0,
  BP_JOIN_SUM = 1,
  BP_JOIN_PROD = 2,
  BP_JOIN_MAX = 3,
  BP_JOIN_MIN = 4,
  BP_JOIN_ANY = 5,
  BP_JOIN_ALL = 6
};

typedef struct bp_op_def {
  bp_header header;
  const char* name;   /* "namespace::name" or "namespace::name.overload" */
  const char* family; /* of a primitive: "unary", "binary", "reduce", ... else NULL */
  const char* doc;    /* one line */
  const char* file;   /* where the entry stands */
  uint32_t line;
  uint32_t revision;            /* of the signature; grows when an argument is added */
  uint64_t flags;               /* BP_OP_* */
  bp_array args;                /* bp_arg_def */
  bp_array results;             /* bp_result_def */
  bp_array formulas;            /* bp_formula */
  bp_array shapes;              /* bp_shape_rule, one per result */
  bp_array dtypes;              /* bp_result_dtype, one per result */
  const bp_dtype_mask* accepts; /* one per argument (0 for those that are not tensors or Scalars): after
                                   promotion for those in `promote`, as given for the others. NULL: any */
  uint64_t promote;             /* bit per argument: those that share the compute dtype */
  uint32_t dtype_flags;         /* BP_DTYPE_* */
  uint32_t alias;               /* the argument that a view (or maybe-view) aliases; else BP_NO_ARG */
  const bp_program* program;
  const char* const* fit_names; /* three ops: sum_to(x, shape), cast(x, dtype), real(x); or NULL: no FIT nodes */
  const char* tags;             /* comma-separated words of the entry, for tools */
  uint64_t reserved;
  void* context; /* of the record's functions: comes back in bp_op_info */
  bp_dtype_fn dtype_fn;
#if BP_TARGET_MINOR >= 3
  const bp_dtype_set* accepts_sets; /* as `accepts`, and together with it; NULL: `accepts` says it all */
  /* With BP_OP_MOVES: a bit per bool argument that, where it is true, makes the op compute: index_put's accumulate. */
  uint64_t computes_where;
  uint64_t faults; /* BP_FAULT_* */
  uint16_t region; /* BP_REGION_* */
  uint16_t join;   /* BP_JOIN_* of BP_REGION_REDUCE */
  uint32_t reserved_tail;
#endif
} bp_op_def;

BP_STATIC_ASSERT(sizeof(bp_arg_def) == 32, "bp_arg_def");
BP_STATIC_ASSERT(sizeof(bp_node) == 16, "bp_node");
BP_STATIC_ASSERT(sizeof(bp_formula) == 48, "bp_formula");
BP_STATIC_ASSERT(sizeof(bp_shape_rule) == 32, "bp_shape_rule");
BP_STATIC_ASSERT(sizeof(bp_op_def) == (BP_TARGET_MINOR >= 3 ? 240 : 208), "bp_op_def");

#ifdef __cplusplus
}
#endif
#endif

/* Backplane binary contract: the words of shape rules and of formulas, and what an op's batch rule follows from.
 *
 * Each word stands here once: codegen checks and emits by these lists, the core builds its tables from them, and a test
 * holds docs/reference/ops-yaml.md, which has their meaning, to them. Words are only ever added. Who fills a bp_op_def
 * by hand states by bp_batch_follows whether the op batches by its shape word. Pure. */
#ifndef BACKPLANE_ABI_VOCABULARY_H
#define BACKPLANE_ABI_VOCABULARY_H

#include "backplane/abi/op.h"

#ifdef __cplusplus
extern "C" {
#endif

static inline int bp_same_word(const char* a, const char* b) {
  for (; *a != 0 && *a == *b; ++a) ++b;
  return *a == *b;
}

/* Further bits of bp_formula.flags, of those that a host of an earlier minor may pass over (BP_HINTS_OF_16). */
enum {
  /* VJP, JVP, DECOMPOSE: float16 and bfloat16 among the tensors that it reads are cast to float32 before it runs, and
   * its results to the dtypes that they must have after it. */
  BP_FORMULA_WIDE = 1u << 12
};

/* ---- shape words ------------------------------------------------------------------------------- */

/* X(function of the core, word, parameters, what batching needs: BP_BATCH_*). A letter per parameter: see
 * bp_shape_param_fits; a capital may be left out, and before `*` a letter stands for any number. */
#define BP_SHAPE_WORDS(X)                             \
  X(arg, "arg", "s", NONE)                            \
  X(broadcast, "broadcast", "t*", ELEMENTWISE)        \
  X(concat, "concat", "lA", JOIN)                     \
  X(conv, "conv", "ttSSSN", NONE)                     \
  X(conv2d, "conv2d", "ttSSSN", NONE)                 \
  X(index, "index", "tl", NONE)                       \
  X(index_put, "index_put", "tlt", NONE)              \
  X(matmul, "matmul", "tt", PRODUCT)                  \
  X(one_hot, "one_hot", "tn", NONE)                   \
  X(pool, "pool", "tsSS", NONE)                       \
  X(pool2d, "pool2d", "tsSS", NONE)                   \
  X(reduce, "reduce", "tXB", REDUCE)                  \
  X(same, "same", "t", ALONG)                         \
  X(scalar, "scalar", "", NONE)                       \
  X(slice_put, "slice_put", "ttxIII", NONE)           \
  X(stack, "stack", "lA", JOIN)                       \
  X(take, "take", "ttA", NONE)                        \
  X(take_along, "take_along", "ttA", NONE)            \
  X(bitcast, "view.bitcast", "td", VIEW)              \
  X(diagonal, "view.diagonal", "tNAA", VIEW_TWO_AXES) \
  X(expand, "view.expand", "ts", VIEW_LIST)           \
  X(imag, "view.imag", "t", VIEW)                     \
  X(permute, "view.permute", "tX", VIEW_LIST)         \
  X(real, "view.real", "t", VIEW)                     \
  X(reshape, "view.reshape", "ts", VIEW_LIST)         \
  X(select, "view.select", "tan", VIEW_AXIS)          \
  X(slice, "view.slice", "txIII", VIEW_AXIS)          \
  X(squeeze, "view.squeeze", "tX", VIEW_LIST)         \
  X(unfold, "view.unfold", "tannN", VIEW_AXIS)        \
  X(unsqueeze, "view.unsqueeze", "tx", VIEW_AXIS)

/* May an argument of this BP_TYPE_* and these BP_ARG_* flags stand where a shape word has the letter (lower case)? t a
 * Tensor, l a Tensor[], a an Axis, x an Axis or Axes, s sizes (Shape, Size, or a list of positions), i a list of
 * positions, n a Size or Index, b a bool, d a Dtype. */
static inline int bp_shape_param_fits(uint16_t type, uint16_t flags, char letter) {
  const int list = (flags & BP_ARG_LIST) != 0;
  const int position = type == BP_TYPE_INDEX || type == BP_TYPE_SIZE;
  switch (letter) {
    case 't':
      return type == BP_TYPE_TENSOR && !list;
    case 'l':
      return type == BP_TYPE_TENSOR && list;
    case 'a':
      return type == BP_TYPE_AXIS && !list;
    case 'x':
      return type == BP_TYPE_AXES || type == BP_TYPE_AXIS;
    case 's':
      return type == BP_TYPE_SHAPE || type == BP_TYPE_SIZE || (list && (position || type == BP_TYPE_AXIS));
    case 'i':
      return position && list;
    case 'n':
      return position && !list;
    case 'b':
      return type == BP_TYPE_BOOL && !list;
    case 'd':
      return type == BP_TYPE_DTYPE && !list;
    default:
      return 0;
  }
}

/* ---- builtins of formulas ---------------------------------------------------------------------- */

/* X(function of the core, name, parameters, how many of them are required, result, are tensors among them handed on: 1,
 * or only asked for: 0). Parameters: i int, n number, b bool, d dtype, L ints, l any list, x axes (list or int, may be
 * none), a anything that is there, ? anything; before `*` any number, or one list that a record holds. Result: the same
 * letters; = the type of the first argument; s a list of the first's type; j the join of all; e the first's without
 * `none`. */
#define BP_BUILTIN_FUNCTIONS(X)                                 \
  X(broadcast_shapes, "broadcast_shapes", "LL", 2, 'L', 0)      \
  X(complex_dtype_of, "complex_dtype", "d", 1, 'd', 0)          \
  X(conjugate_of_number, "conj_of_number", "?", 1, '=', 0)      \
  X(contains, "contains", "Li", 2, 'b', 0)                      \
  X(count, "count", "Lx", 2, 'i', 0)                            \
  X(default_value, "default", "?a", 2, 'e', 1)                  \
  X(device_computes, "device_computes", "d", 1, 'b', 0)         \
  X(expanded_axes, "expanded_axes", "LL", 2, 'L', 0)            \
  X(finfo_eps, "finfo_eps", "d", 1, 'n', 0)                     \
  X(finfo_max, "finfo_max", "d", 1, 'n', 0)                     \
  X(finfo_min, "finfo_min", "d", 1, 'n', 0)                     \
  X(to_float, "float", "n", 1, 'n', 0)                          \
  X(in_range, "in_range", "?d", 2, '=', 1)                      \
  X(insert, "insert", "Lii", 3, 'L', 0)                         \
  X(to_int, "int", "n", 1, 'i', 0)                              \
  X(inverse_permutation, "inverse_permutation", "L", 1, 'L', 0) \
  X(is_bool, "is_bool", "d", 1, 'b', 0)                         \
  X(is_complex, "is_complex", "d", 1, 'b', 0)                   \
  X(is_floating, "is_floating", "d", 1, 'b', 0)                 \
  X(is_integer, "is_integer", "d", 1, 'b', 0)                   \
  X(len, "len", "l", 1, 'i', 0)                                 \
  X(math_exp, "math_exp", "n", 1, 'n', 0)                       \
  X(math_log, "math_log", "n", 1, 'n', 0)                       \
  X(math_sqrt, "math_sqrt", "n", 1, 'n', 0)                     \
  X(greatest, "max", "n*", 1, 'j', 0)                           \
  X(least, "min", "n*", 1, 'j', 0)                              \
  X(normalize_axes, "normalize_axes", "xi", 2, 'L', 0)          \
  X(normalize_axis, "normalize_axis", "ii", 2, 'i', 0)          \
  X(dtype_of_number, "number_dtype", "n", 1, 'd', 0)            \
  X(present, "present", "?", 1, 'b', 0)                         \
  X(prod, "prod", "L", 1, 'i', 0)                               \
  X(promote, "promote", "dd", 2, 'd', 0)                        \
  X(range, "range", "ii", 2, 'L', 0)                            \
  X(real_dtype_of, "real_dtype", "d", 1, 'd', 0)                \
  X(reduced_shape, "reduced_shape", "Lxb", 3, 'L', 0)           \
  X(repeat, "repeat", "?i", 2, 's', 1)                          \
  X(replace, "replace", "Lii", 3, 'L', 0)                       \
  X(require_shape, "require", "?b?", 3, '=', 1)                 \
  X(require_value, "require_value", "ab?", 3, '=', 1)           \
  X(reverse, "reverse", "L", 1, 'L', 0)                         \
  X(shift_axes, "shift_axes", "?i", 2, '=', 0)                  \
  X(shift_axis, "shift_axis", "?i", 2, '=', 0)                  \
  X(without, "without", "LL", 2, 'L', 0)

/* What formulas write as operators, `list[i]` and `list[a:b]`: the same columns, but for types, which the operator's
 * own rules decide. */
#define BP_BUILTIN_OPERATORS(X)             \
  X(add, "add", "??", 2, '?', 1)            \
  X(logical_and, "and", "??", 2, '?', 0)    \
  X(concat, "concat", "??", 2, '?', 1)      \
  X(eq, "eq", "??", 2, '?', 0)              \
  X(floordiv, "floordiv", "??", 2, '?', 0)  \
  X(ge, "ge", "??", 2, '?', 0)              \
  X(getitem, "getitem", "??", 2, '?', 1)    \
  X(getslice, "getslice", "???", 1, '?', 1) \
  X(gt, "gt", "??", 2, '?', 0)              \
  X(le, "le", "??", 2, '?', 0)              \
  X(lt, "lt", "??", 2, '?', 0)              \
  X(mod, "mod", "??", 2, '?', 0)            \
  X(mul, "mul", "??", 2, '?', 0)            \
  X(ne, "ne", "??", 2, '?', 0)              \
  X(neg, "neg", "?", 1, '?', 0)             \
  X(logical_not, "not", "?", 1, '?', 0)     \
  X(logical_or, "or", "??", 2, '?', 0)      \
  X(pow, "pow", "??", 2, '?', 0)            \
  X(sub, "sub", "??", 2, '?', 0)            \
  X(truediv, "truediv", "??", 2, '?', 0)

/* ---- batching by the shape word ---------------------------------------------------------------- */

/* Of this header alone: records hold the word. Those of views come last. */
enum {
  BP_BATCH_NONE,
  BP_BATCH_ELEMENTWISE,   /* every tensor of the op is among the word's */
  BP_BATCH_PRODUCT,       /* the op's two tensors */
  BP_BATCH_JOIN,          /* of the op's one list, along a stated axis */
  BP_BATCH_REDUCE,        /* of the op's one tensor, along stated axes */
  BP_BATCH_ALONG,         /* the op's one tensor, along its axes, or elementwise by its family */
  BP_BATCH_VIEW,          /* as it is */
  BP_BATCH_VIEW_LIST,     /* with a list as parameter 1, whose absence has a meaning of its own */
  BP_BATCH_VIEW_AXIS,     /* with axes as parameter 1, always given: without, the word means the first */
  BP_BATCH_VIEW_TWO_AXES, /* the same with parameters 2 and 3 */
};

static inline uint16_t bp_batch_of_word(const char* word) {
#define BP_BATCH_OF(function, name, params, batch) \
  if (bp_same_word(word, name)) return BP_BATCH_##batch;
  BP_SHAPE_WORDS(BP_BATCH_OF)
#undef BP_BATCH_OF
  return BP_BATCH_NONE;
}

static inline const bp_arg_def* bp_arg_at(const bp_op_def* op, uint32_t i) {
  return (const bp_arg_def*)(const void*)((const char*)op->args.data + (size_t)i * op->args.stride);
}
static inline const bp_shape_rule* bp_shape_at(const bp_op_def* op, uint32_t i) {
  return (const bp_shape_rule*)(const void*)((const char*)op->shapes.data + (size_t)i * op->shapes.stride);
}
static inline int bp_shape_reads(const bp_shape_rule* rule, uint32_t arg) {
  for (uint32_t i = 0; i < rule->n_args; ++i)
    if (rule->args[i] == arg) return 1;
  return 0;
}
/* Is parameter i of the word an argument of the op (`always`: one that cannot be absent)? */
static inline int bp_shape_states(const bp_op_def* op, const bp_shape_rule* rule, uint32_t i, int always) {
  return i < rule->n_args && rule->args[i] != BP_NO_ARG &&
         !(always && (bp_arg_at(op, rule->args[i])->flags & BP_ARG_OPTIONAL));
}

/* Does the word of the op's shapes say all that batching needs? Not where there are further tensors, or arguments with
 * an entry per axis. Shape rules must name arguments that the op has, of types that fit the word. */
static inline int bp_batch_follows(const bp_op_def* op) {
  const bp_shape_rule* shape;
  uint32_t tensors = 0, lists = 0, read = 0, axes = 0, may_flatten = 0, per_axis = 0;
  if (op->shapes.count == 0 || (op->flags & BP_OP_RANDOM)) return 0;
  shape = bp_shape_at(op, 0);
  for (uint32_t i = 1; i < op->shapes.count; ++i) {
    const bp_shape_rule* other = bp_shape_at(op, i);
    if (!bp_same_word(shape->name, other->name) || shape->n_args != other->n_args) return 0;
    for (uint32_t k = 0; k < shape->n_args; ++k)
      if (shape->args[k] != other->args[k]) return 0;
  }
  for (uint32_t i = 0; i < op->args.count; ++i) {
    const bp_arg_def* arg = bp_arg_at(op, i);
    const uint32_t list = (arg->flags & BP_ARG_LIST) != 0;
    if (arg->type == BP_TYPE_TENSOR) {
      tensors += 1;
      lists += list;
      read += (uint32_t)bp_shape_reads(shape, i);
    } else if (arg->type == BP_TYPE_AXIS || arg->type == BP_TYPE_AXES) {
      axes = 1;
      /* Absent, an `Axis?` is not all axes. */
      if (arg->type == BP_TYPE_AXIS && !list && (arg->flags & BP_ARG_OPTIONAL)) may_flatten = 1;
    } else if (list || arg->type == BP_TYPE_SHAPE || arg->type == BP_TYPE_GRAPH) {
      per_axis = 1;
    }
  }
  const uint16_t batch = bp_batch_of_word(shape->name);
  if (batch >= BP_BATCH_VIEW) {
    if (tensors != 1 || lists || op->shapes.count != 1 || !(op->flags & (BP_OP_VIEW | BP_OP_MAYBE_VIEW))) return 0;
    if (batch == BP_BATCH_VIEW_TWO_AXES) return bp_shape_states(op, shape, 2, 1) && bp_shape_states(op, shape, 3, 1);
    return batch == BP_BATCH_VIEW || bp_shape_states(op, shape, 1, batch == BP_BATCH_VIEW_AXIS);
  }
  if (per_axis) return 0;
  switch (batch) {
    case BP_BATCH_ELEMENTWISE:
      return !lists && !axes && read == tensors;
    case BP_BATCH_PRODUCT:
      return tensors == 2 && !lists && !axes;
    case BP_BATCH_JOIN:
      return tensors == 1 && lists && bp_shape_states(op, shape, 1, 0);
    case BP_BATCH_REDUCE:
      return tensors == 1 && !lists && bp_shape_states(op, shape, 1, 0);
    case BP_BATCH_ALONG:
      if (tensors != 1 || lists) return 0;
      return axes ? !may_flatten : op->family && bp_same_word(op->family, "unary");
    default:
      return 0;
  }
}

#if BP_TARGET_MINOR >= 3
/* ---- what compilers may do with the op --------------------------------------------------------- */

/* The op's BP_REGION_*: as stated, or by its shape word and flags. The words of views that keep the order of elements
 * are listed here; the others skip elements or put them into another order. */
static inline uint16_t bp_region_of(const bp_op_def* op) {
  if (op->region != BP_REGION_DERIVED) return op->region;
  if (op->flags & BP_OP_ELEMENTWISE) return BP_REGION_ELEMENTWISE;
  if (op->shapes.count == 1 && (op->flags & (BP_OP_VIEW | BP_OP_MAYBE_VIEW))) {
    const char* word = bp_shape_at(op, 0)->name;
    if (bp_same_word(word, "view.expand") || bp_same_word(word, "view.reshape") || bp_same_word(word, "view.squeeze") ||
        bp_same_word(word, "view.unsqueeze"))
      return BP_REGION_VIEW;
  }
  return BP_REGION_NONE;
}
#endif

#ifdef __cplusplus
}
#endif
#endif

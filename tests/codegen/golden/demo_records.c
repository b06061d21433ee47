/* The op records of namespace demo, as constant data. Made by backplane-codegen from golden.yaml; edit that instead. */
#include "demo_records.h"

#include <math.h>

#include "demo_formulas.h"

static const char* const fit_names[] = {"bp::sum_to", "bp::cast", "bp::real"};

static const bp_program no_program = {0};

/* demo::axpby */
static const bp_arg_def op0_args[] = {
    {"x", 1, 0, 0, {.tag = BP_TAG_ABSENT}},
    {"y", 1, 0, 0, {.tag = BP_TAG_ABSENT}},
    {"alpha", 2, 24, 0, {.tag = BP_TAG_INT, .u = {.i = INT64_C(1)}}},
    {"beta", 2, 24, 0, {.tag = BP_TAG_INT, .u = {.i = INT64_C(1)}}}
};
static const bp_dtype_mask op0_accepts[] = {0x7ffe, 0x7ffe, 0x7fff, 0x7fff};
static const bp_result_def op0_results[] = {
    {"out", BP_TYPE_TENSOR, 0, 0}
};
static const bp_node op0_nodes[] = {{2, 0, 0, 0}, {2, 0, 0, 2}, {12, 2, 0, 0}, {2, 0, 2, 1}, {2, 0, 2, 3}, {12, 2, 2, 0}, {12, 2, 4, 1},
    {4, 0, 6, 0}, {12, 2, 6, 0}, {20, 1, 8, 0}, {12, 2, 9, 0}, {20, 1, 11, 1}, {5, 0, 12, 0},
    {5, 0, 12, 1}, {12, 4, 12, 2}};
static const uint32_t op0_inputs[] = {0, 1, 3, 4, 2, 5, 7, 1, 8, 7, 4, 10, 12, 13, 1, 4};
static const char* const op0_names[] = {"bp::multiply", "bp::add", "demo::axpby", "bp::sum_to", "bp::cast", "bp::real"};
static const bp_program op0_program = {op0_nodes, op0_inputs, 0, op0_names, 15, 16, 0, 6};
static const uint32_t op0_roots0[] = {6};
static const uint32_t op0_targets2[] = {0};
static const uint32_t op0_roots2[] = {9};
static const uint32_t op0_targets3[] = {1};
static const uint32_t op0_roots3[] = {11};
static const uint32_t op0_targets4[] = {0, 1};
static const uint32_t op0_roots4[] = {14};
static const bp_formula op0_formulas[] = {
    {3, 4096, 0, 0, op0_roots0, 1, 10, demo_op0_formula0,
     "x * alpha + y * beta"},
    {4, 32, 0, 0, 0, 0, 4, 0,
     "by the shape class broadcast"},
    {1, 0, 1, op0_targets2, op0_roots2, 1, 8, demo_op0_formula2,
     "g * alpha"},
    {1, 0, 1, op0_targets3, op0_roots3, 1, 8, demo_op0_formula3,
     "g * beta"},
    {2, 32, 2, op0_targets4, op0_roots4, 1, 9, demo_op0_formula4,
     "linear"}
};
static const uint32_t op0_shape0[] = {0, 1};
static const bp_shape_rule op0_shapes[] = {
    {"broadcast", op0_shape0, 2, 0, 0}
};
static const bp_result_dtype op0_dtypes[] = {{0, 0, 0, 0, 0}};
static const bp_op_def op0_def = {
    BP_HEADER(bp_op_def),
    "demo::axpby",
    0,
    "Scales two tensors and adds them.\n\nResult:\n    out: the broadcast shape of x, y; dtype: the promoted dtype.\n\nGradient:\n    x: in forward and reverse mode.\n    y: in forward and reverse mode.\n\nBatching: derived from the shape rule.\n\nErrors:\n    ShapeError: x and y do not broadcast.\n\nExample:\n    demo.axpby(x, y, alpha=2)",
    "golden.yaml",
    4, 0, 2076u,
    {op0_args, 4, sizeof(bp_arg_def)},
    {op0_results, 1, sizeof(bp_result_def)},
    {op0_formulas, 5, sizeof(bp_formula)},
    {op0_shapes, 1, sizeof(bp_shape_rule)},
    {op0_dtypes, 1, sizeof(bp_result_dtype)},
    op0_accepts, 3u, 0, BP_NO_ARG,
    &op0_program, fit_names, "demo,linear,alias:scaled_sum", 0, 0, 0,
#if BP_TARGET_MINOR >= 3
    0, 0u, 1u, 0, 0, 0,
#endif
};

/* demo::cube */
static const bp_arg_def op1_args[] = {
    {"x", 1, 0, 0, {.tag = BP_TAG_ABSENT}}
};
static const bp_dtype_mask op1_accepts[] = {0x7e00};
static const bp_result_def op1_results[] = {
    {"out", BP_TYPE_TENSOR, 0, 0}
};
static const bp_node op1_nodes[] = {{2, 0, 0, 0}, {12, 2, 0, 0}, {12, 2, 2, 0}, {1, 0, 4, 0}, {12, 2, 4, 0}, {4, 0, 6, 0}, {10, 1, 6, 0},
    {14, 1, 7, 1}, {12, 1, 8, 2}, {15, 3, 9, 0}, {12, 2, 12, 0}, {20, 1, 14, 0}, {5, 0, 15, 0},
    {12, 2, 15, 0}};
static const uint32_t op1_inputs[] = {0, 0, 0, 1, 1, 3, 4, 6, 4, 7, 8, 4, 5, 9, 10, 12, 4};
static const bp_value op1_consts[] = {{.tag = BP_TAG_INT, .u = {.i = INT64_C(3)}}};
static const char* const op1_names[] = {"bp::multiply", "is_complex", "bp::conj", "bp::sum_to", "bp::cast", "bp::real"};
static const bp_program op1_program = {op1_nodes, op1_inputs, op1_consts, op1_names, 14, 17, 1, 6};
static const uint32_t op1_roots0[] = {2};
static const uint32_t op1_targets2[] = {0};
static const uint32_t op1_roots2[] = {11};
static const uint32_t op1_targets3[] = {0};
static const uint32_t op1_roots3[] = {13};
static const bp_formula op1_formulas[] = {
    {3, 4096, 0, 0, op1_roots0, 1, 26, demo_op1_formula0,
     "let s = x * x; x * s"},
    {4, 32, 0, 0, 0, 0, 20, 0,
     "by the shape class broadcast"},
    {1, 4128, 1, op1_targets2, op1_roots2, 1, 25, demo_op1_formula2,
     "let s = x * x; s * 3"},
    {2, 4128, 1, op1_targets3, op1_roots3, 1, 25, demo_op1_formula3,
     "let s = x * x; s * 3"}
};
static const uint32_t op1_shape0[] = {0};
static const bp_shape_rule op1_shapes[] = {
    {"broadcast", op1_shape0, 1, 0, 0}
};
static const bp_result_dtype op1_dtypes[] = {{0, 0, 0, 0, 0}};
static const bp_op_def op1_def = {
    BP_HEADER(bp_op_def),
    "demo::cube",
    0,
    "x * x * x.\n\nResult:\n    out: the shape of x; dtype: the promoted dtype.\n    Integers and bools compute in the default float.\n\nGradient:\n    x: in forward and reverse mode.\n\nBatching: derived from the shape rule.",
    "golden.yaml",
    20, 0, 16u,
    {op1_args, 1, sizeof(bp_arg_def)},
    {op1_results, 1, sizeof(bp_result_def)},
    {op1_formulas, 4, sizeof(bp_formula)},
    {op1_shapes, 1, sizeof(bp_shape_rule)},
    {op1_dtypes, 1, sizeof(bp_result_dtype)},
    op1_accepts, 1u, 1, BP_NO_ARG,
    &op1_program, fit_names, 0, 0, 0, 0,
#if BP_TARGET_MINOR >= 3
    0, 0u, 1u, 0, 0, 0,
#endif
};

/* demo::window */
static const int64_t op2_default2[] = {0, 1};
static const bp_arg_def op2_args[] = {
    {"x", 1, 0, 0, {.tag = BP_TAG_ABSENT}},
    {"axis", 3, 16, 0, {.tag = BP_TAG_INT, .u = {.i = INT64_C(-1)}}},
    {"starts", 7, 22, 0, {.tag = BP_TAG_INT_LIST, .count = 2, .u = {.ints = op2_default2}}},
    {"dtype", 8, 25, 0, {.tag = BP_TAG_ABSENT}},
    {"mode", 12, 24, 0, {.tag = BP_TAG_STRING, .count = 4, .u = {.s = "same"}}}
};
static const bp_dtype_mask op2_accepts[] = {0x1ffe, 0x0000, 0x0000, 0x0000, 0x0000};
static const bp_result_def op2_results[] = {
    {"values", BP_TYPE_TENSOR, 0, 0},
    {"count", BP_TYPE_TENSOR, 256, 0}
};
static const bp_node op2_nodes[] = {{1, 0, 0, 0}, {2, 0, 0, 0}, {8, 1, 0, 0}, {1, 0, 1, 1}, {9, 1, 1, 0}, {14, 2, 2, 0}, {19, 0, 4, 0},
    {1, 0, 4, 2}, {14, 2, 4, 1}, {14, 2, 6, 2}, {1, 0, 8, 3}, {15, 3, 8, 0}, {17, 2, 11, 0},
    {2, 0, 13, 4}, {1, 0, 13, 4}, {14, 2, 13, 3}, {1, 0, 15, 5}, {14, 2, 15, 3}, {14, 2, 17, 4},
    {1, 0, 19, 6}, {14, 3, 19, 5}, {15, 3, 22, 0}, {15, 3, 25, 0}, {14, 2, 28, 6}, {4, 0, 30, 0},
    {12, 2, 30, 7}, {15, 3, 32, 0}, {20, 1, 35, 0}, {5, 0, 36, 0}, {12, 2, 36, 7}};
static const uint32_t op2_inputs[] = {1, 1, 3, 4, 6, 7, 2, 6, 8, 9, 10, 5, 11, 13, 14, 13, 16, 15, 17, 13, 18, 19, 18, 2, 20, 18, 12, 20,
    4, 3, 24, 1, 23, 25, 24, 26, 28, 1};
static const bp_value op2_consts[] = {{.tag = BP_TAG_ABSENT}, {.tag = BP_TAG_INT, .u = {.i = INT64_C(0)}},
    {.tag = BP_TAG_INT, .u = {.i = INT64_C(2)}}, {.tag = BP_TAG_INT, .u = {.i = INT64_C(1)}},
    {.tag = BP_TAG_STRING, .count = 4, .u = {.s = "same"}},
    {.tag = BP_TAG_STRING, .count = 4, .u = {.s = "full"}},
    {.tag = BP_TAG_STRING, .count = 23, .u = {.s = "mode to be same or full"}}};
static const char* const op2_names[] = {"range", "lt", "getitem", "eq", "or", "require_value", "gt", "bp::multiply", "bp::sum_to",
    "bp::cast", "bp::real"};
static const bp_program op2_program = {op2_nodes, op2_inputs, op2_consts, op2_names, 30, 38, 7, 11};
static const uint32_t op2_roots0[] = {21, 22};
static const uint32_t op2_targets2[] = {0};
static const uint32_t op2_roots2[] = {27};
static const uint32_t op2_targets3[] = {0};
static const uint32_t op2_roots3[] = {29, 0};
static const bp_formula op2_formulas[] = {
    {6, 0, 0, 0, op2_roots0, 2, 34, 0,
     "map(i in range(0, x.ndim): x.shape[i] if i < 2 else 1)"},
    {4, 2, 0, 0, 0, 0, 37, 0,
     "windows, like these, are not batched"},
    {1, 0, 1, op2_targets2, op2_roots2, 1, 35, 0,
     "g.values * x if x.ndim > 0 else g.values"},
    {2, 0, 1, op2_targets3, op2_roots3, 2, 36, demo_op2_formula3,
     "t * x; none"}
};
static const bp_shape_rule op2_shapes[] = {
    {"expr", 0, 0, 0, 0},
    {"expr", 0, 0, 0, 0}
};
static const bp_result_dtype op2_dtypes[] = {{3, 0, 3, 0, 0}, {1, 0, 4, 0, 0}};
static const bp_op_def op2_def = {
    BP_HEADER(bp_op_def),
    "demo::window",
    0,
    "A host op with several results and every sort of argument.\n\nmode: same or full.\n\nResults:\n    values: shape: x.shape; dtype: the argument dtype; if absent, the promoted dtype.\n    count: shape: map(i in range(0, x.ndim): x.shape[i] if i < 2 else 1); dtype: int64.\n\nGradient:\n    x: in forward and reverse mode.\n\nBatching: refused: windows, like these, are not batched.",
    "golden.yaml",
    29, 0, 256u,
    {op2_args, 5, sizeof(bp_arg_def)},
    {op2_results, 2, sizeof(bp_result_def)},
    {op2_formulas, 4, sizeof(bp_formula)},
    {op2_shapes, 2, sizeof(bp_shape_rule)},
    {op2_dtypes, 2, sizeof(bp_result_dtype)},
    op2_accepts, 1u, 0, BP_NO_ARG,
    &op2_program, fit_names, "except:gradient", 0, 0, 0,
#if BP_TARGET_MINOR >= 3
    0, 0u, 1u, 0, 0, 0,
#endif
};

/* demo::noise */
static const bp_arg_def op3_args[] = {
    {"shape", 5, 0, 0, {.tag = BP_TAG_ABSENT}},
    {"generator", 10, 0, 0, {.tag = BP_TAG_ABSENT}}
};
static const bp_dtype_mask op3_accepts[] = {0x0000, 0x0000};
static const bp_result_def op3_results[] = {
    {"out", BP_TYPE_TENSOR, 256, 0}
};
static const uint32_t op3_shape0[] = {0};
static const bp_shape_rule op3_shapes[] = {
    {"arg", op3_shape0, 1, 0, 0}
};
static const bp_result_dtype op3_dtypes[] = {{1, 0, 7, 0, 0}};
static const bp_op_def op3_def = {
    BP_HEADER(bp_op_def),
    "demo::noise",
    "bits",
    "Random bits.\n\nResult:\n    out: shape: shape; dtype: uint32.\n\nGradient:\n    None: no argument is differentiable.\n\nBatching: by the argument randomness of vmap.",
    "golden.yaml",
    41, 0, 1216u,
    {op3_args, 2, sizeof(bp_arg_def)},
    {op3_results, 1, sizeof(bp_result_def)},
    {0, 0, sizeof(bp_formula)},
    {op3_shapes, 1, sizeof(bp_shape_rule)},
    {op3_dtypes, 1, sizeof(bp_result_dtype)},
    op3_accepts, 0u, 0, BP_NO_ARG,
    &no_program, 0, 0, 0, 0, 0,
#if BP_TARGET_MINOR >= 3
    0, 0u, 1u, 0, 0, 0,
#endif
};

/* demo::turn */
static const bp_arg_def op4_args[] = {
    {"x", 1, 0, 0, {.tag = BP_TAG_ABSENT}},
    {"axes", 4, 0, 0, {.tag = BP_TAG_ABSENT}}
};
static const bp_dtype_mask op4_accepts[] = {0x7fff, 0x0000};
static const bp_result_def op4_results[] = {
    {"out", BP_TYPE_TENSOR, 0, 0}
};
static const bp_node op4_nodes[] = {{4, 0, 0, 0}, {2, 0, 0, 1}, {12, 2, 0, 0}, {2, 0, 2, 0}, {12, 1, 2, 1}, {12, 2, 3, 2}, {8, 1, 5, 0},
    {1, 0, 6, 0}, {10, 1, 6, 0}, {11, 1, 7, 0}, {12, 4, 8, 3}, {12, 1, 12, 1}, {12, 2, 13, 2},
    {20, 1, 15, 0}, {5, 0, 16, 0}, {12, 2, 16, 0}};
static const uint32_t op4_inputs[] = {0, 1, 3, 2, 4, 3, 3, 3, 6, 7, 8, 9, 10, 2, 11, 12, 14, 1};
static const bp_value op4_consts[] = {{.tag = BP_TAG_INT, .u = {.i = INT64_C(0)}}};
static const char* const op4_names[] = {"demo::turn", "bp::zeros_like", "bp::add", "bp::full", "bp::sum_to", "bp::cast", "bp::real"};
static const bp_program op4_program = {op4_nodes, op4_inputs, op4_consts, op4_names, 16, 18, 1, 7};
static const uint32_t op4_roots0[] = {5};
static const uint32_t op4_targets2[] = {0};
static const uint32_t op4_roots2[] = {13};
static const uint32_t op4_targets3[] = {0};
static const uint32_t op4_roots3[] = {15};
static const bp_formula op4_formulas[] = {
    {5, 0, 0, 0, op4_roots0, 1, 53, demo_op4_formula0,
     "turn(v, axes) + zeros_like(x)"},
    {4, 32, 0, 0, 0, 0, 50, 0,
     "by the shape class view.permute"},
    {1, 32, 1, op4_targets2, op4_roots2, 1, 53, demo_op4_formula2,
     "turn(v, axes) + zeros_like(x)"},
    {2, 32, 1, op4_targets3, op4_roots3, 1, 50, demo_op4_formula3,
     "linear"}
};
static const uint32_t op4_shape0[] = {0, 1};
static const bp_shape_rule op4_shapes[] = {
    {"view.permute", op4_shape0, 2, 0, 0}
};
static const bp_result_dtype op4_dtypes[] = {{0, 0, 0, 0, 0}};
static const bp_op_def op4_def = {
    BP_HEADER(bp_op_def),
    "demo::turn",
    0,
    "A view with its axes in another order.\n\nResult:\n    out: shape: view.permute(x, axes); dtype: the dtype of x.\n    A view: it shares the memory of x.\n\nGradient:\n    x: in forward and reverse mode.\n\nBatching: derived from the shape rule.",
    "golden.yaml",
    50, 0, 2049u,
    {op4_args, 2, sizeof(bp_arg_def)},
    {op4_results, 1, sizeof(bp_result_def)},
    {op4_formulas, 4, sizeof(bp_formula)},
    {op4_shapes, 1, sizeof(bp_shape_rule)},
    {op4_dtypes, 1, sizeof(bp_result_dtype)},
    op4_accepts, 1u, 0, 0,
    &op4_program, fit_names, 0, 0, 0, 0,
#if BP_TARGET_MINOR >= 3
    0, 0u, 1u, 0, 0, 0,
#endif
};

const bp_op_def* const demo_ops[] = {
    &op0_def, &op1_def, &op2_def, &op3_def, &op4_def,
};
const uint32_t demo_op_count = 5;

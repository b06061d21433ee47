/* The op records of namespace mine, as constant data. Made by backplane-codegen from wave.yaml; edit that instead. */
#include "mine_records.h"

#include <math.h>

static const char* const fit_names[] = {"bp::sum_to", "bp::cast", "bp::real"};

/* mine::wave */
static const bp_arg_def op0_args[] = {
    {"x", 1, 0, 0, {.tag = BP_TAG_ABSENT}},
    {"speed", 2, 16, 0, {.tag = BP_TAG_INT, .u = {.i = INT64_C(1)}}}
};
static const bp_dtype_mask op0_accepts[] = {0x1e00, 0x7fff};
static const bp_result_def op0_results[] = {
    {"out", BP_TYPE_TENSOR, 0, 0}
};
static const bp_node op0_nodes[] = {{2, 0, 0, 1}, {2, 0, 0, 0}, {12, 2, 0, 0}, {12, 1, 2, 1}, {12, 1, 3, 2}, {12, 2, 4, 0}, {4, 0, 6, 0},
    {12, 2, 6, 0}, {20, 1, 8, 0}, {5, 0, 9, 0}, {12, 2, 9, 0}};
static const uint32_t op0_inputs[] = {0, 1, 2, 2, 0, 4, 6, 5, 7, 9, 5};
static const char* const op0_names[] = {"bp::multiply", "bp::sin", "bp::cos"};
static const bp_program op0_program = {op0_nodes, op0_inputs, 0, op0_names, 11, 11, 0, 3};
static const uint32_t op0_roots0[] = {3};
static const uint32_t op0_targets2[] = {0};
static const uint32_t op0_roots2[] = {8};
static const uint32_t op0_targets3[] = {0};
static const uint32_t op0_roots3[] = {10};
static const bp_formula op0_formulas[] = {
    {3, 0, 0, 0, op0_roots0, 1, 9, 0,
     "sin(multiply(speed, x))"},
    {4, 32, 0, 0, 0, 0, 4, 0,
     ""},
    {1, 32, 1, op0_targets2, op0_roots2, 1, 8, 0,
     "multiply(speed, cos(multiply(speed, x)))"},
    {2, 32, 1, op0_targets3, op0_roots3, 1, 8, 0,
     "multiply(speed, cos(multiply(speed, x)))"}
};
static const uint32_t op0_shape0[] = {0};
static const bp_shape_rule op0_shapes[] = {
    {"broadcast", op0_shape0, 1, 0, 0}
};
static const bp_result_dtype op0_dtypes[] = {{0, 0, 0, 0, 0}};
static const bp_op_def op0_def = {
    BP_HEADER(bp_op_def),
    "mine::wave",
    0,
    "The sine of x, speeded up.",
    "wave.yaml",
    4, 0, 16u,
    {op0_args, 2, sizeof(bp_arg_def)},
    {op0_results, 1, sizeof(bp_result_def)},
    {op0_formulas, 4, sizeof(bp_formula)},
    {op0_shapes, 1, sizeof(bp_shape_rule)},
    {op0_dtypes, 1, sizeof(bp_result_dtype)},
    op0_accepts, 1u, 0, BP_NO_ARG,
    &op0_program, fit_names, 0, 0};

const bp_op_def* const mine_ops[] = {
    &op0_def,
};
const uint32_t mine_op_count = 1;

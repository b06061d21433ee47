/* Native forms of the formulas of namespace demo. Made by backplane-codegen from golden.yaml; edit that instead. */
#ifndef BACKPLANE_GENERATED_demo_FORMULAS_H
#define BACKPLANE_GENERATED_demo_FORMULAS_H

#include "backplane/abi/host.h"

#ifdef __cplusplus
extern "C" {
#endif

bp_status BP_CALL demo_op0_formula0(const bp_frame* frame, const bp_formula_env* env, bp_value* results);
bp_status BP_CALL demo_op0_formula2(const bp_frame* frame, const bp_formula_env* env, bp_value* results);
bp_status BP_CALL demo_op0_formula3(const bp_frame* frame, const bp_formula_env* env, bp_value* results);
bp_status BP_CALL demo_op0_formula4(const bp_frame* frame, const bp_formula_env* env, bp_value* results);
bp_status BP_CALL demo_op1_formula0(const bp_frame* frame, const bp_formula_env* env, bp_value* results);
bp_status BP_CALL demo_op1_formula2(const bp_frame* frame, const bp_formula_env* env, bp_value* results);
bp_status BP_CALL demo_op1_formula3(const bp_frame* frame, const bp_formula_env* env, bp_value* results);
bp_status BP_CALL demo_op2_formula3(const bp_frame* frame, const bp_formula_env* env, bp_value* results);
bp_status BP_CALL demo_op4_formula0(const bp_frame* frame, const bp_formula_env* env, bp_value* results);
bp_status BP_CALL demo_op4_formula2(const bp_frame* frame, const bp_formula_env* env, bp_value* results);
bp_status BP_CALL demo_op4_formula3(const bp_frame* frame, const bp_formula_env* env, bp_value* results);

#ifdef __cplusplus
}
#endif
#endif

/* Native forms of the formulas of namespace demo, equal to the evaluator's bit for bit. Made by backplane-codegen from golden.yaml; edit that instead. */
#include "demo_formulas.h"

#include <math.h>

#include "backplane/plugin/formula.h"

/* demo::axpby, decompose: x * alpha + y * beta */
bp_status BP_CALL demo_op0_formula0(const bp_frame* frame, const bp_formula_env* env, bp_value* results) {
  bp_status status = BP_OK;
  bp_value t[3] = {{0}};
  {
    const bp_value args0[] = {bp_as_tensor(env->args[0]), bp_as_tensor(env->args[2])};
    status = frame->host->call_op(frame, env->calls[0], args0, 2, &t[0], 1);
    if (status) goto done;
  }
  {
    const bp_value args1[] = {bp_as_tensor(env->args[1]), bp_as_tensor(env->args[3])};
    status = frame->host->call_op(frame, env->calls[0], args1, 2, &t[1], 1);
    if (status) goto done;
  }
  {
    const bp_value args2[] = {t[0], t[1]};
    status = bp_call_donating(frame, env->calls[1], args2, 2, &t[2], 3);
    if (status) goto done;
  }
  bp_drop(frame, &t[0], 1);
  bp_drop(frame, &t[1], 1);
  results[0] = t[2];
  t[2].tag = BP_TAG_ABSENT;
done:
  bp_drop(frame, t, 3);
  (void)frame;
  (void)env;
  return status;
}

/* demo::axpby, vjp: g * alpha */
bp_status BP_CALL demo_op0_formula2(const bp_frame* frame, const bp_formula_env* env, bp_value* results) {
  bp_status status = BP_OK;
  bp_value t[2] = {{0}};
  {
    const bp_value args0[] = {bp_as_tensor(env->cotangents[0]), bp_as_tensor(env->args[2])};
    status = frame->host->call_op(frame, env->calls[0], args0, 2, &t[0], 1);
    if (status) goto done;
  }
  status = bp_fit(frame, env->calls + 3, bp_move(&t[0]), 1, &env->args[0], &t[1]);
  if (status) goto done;
  results[0] = t[1];
  t[1].tag = BP_TAG_ABSENT;
done:
  bp_drop(frame, t, 2);
  (void)frame;
  (void)env;
  return status;
}

/* demo::axpby, vjp: g * beta */
bp_status BP_CALL demo_op0_formula3(const bp_frame* frame, const bp_formula_env* env, bp_value* results) {
  bp_status status = BP_OK;
  bp_value t[2] = {{0}};
  {
    const bp_value args0[] = {bp_as_tensor(env->cotangents[0]), bp_as_tensor(env->args[3])};
    status = frame->host->call_op(frame, env->calls[0], args0, 2, &t[0], 1);
    if (status) goto done;
  }
  status = bp_fit(frame, env->calls + 3, bp_move(&t[0]), 1, &env->args[1], &t[1]);
  if (status) goto done;
  results[0] = t[1];
  t[1].tag = BP_TAG_ABSENT;
done:
  bp_drop(frame, t, 2);
  (void)frame;
  (void)env;
  return status;
}

/* demo::axpby, jvp: linear */
bp_status BP_CALL demo_op0_formula4(const bp_frame* frame, const bp_formula_env* env, bp_value* results) {
  bp_status status = BP_OK;
  bp_value t[1] = {{0}};
  {
    const bp_value args0[] = {bp_as_tensor(env->tangents[0]), bp_as_tensor(env->tangents[1]), env->args[2], env->args[3]};
    status = frame->host->call_op(frame, env->calls[2], args0, 4, &t[0], 1);
    if (status) goto done;
  }
  results[0] = t[0];
  t[0].tag = BP_TAG_ABSENT;
done:
  bp_drop(frame, t, 1);
  (void)frame;
  (void)env;
  return status;
}

/* demo::cube, decompose: let s = x * x; x * s */
bp_status BP_CALL demo_op1_formula0(const bp_frame* frame, const bp_formula_env* env, bp_value* results) {
  bp_status status = BP_OK;
  bp_value t[2] = {{0}};
  {
    const bp_value args0[] = {bp_as_tensor(env->args[0]), bp_as_tensor(env->args[0])};
    status = frame->host->call_op(frame, env->calls[0], args0, 2, &t[0], 1);
    if (status) goto done;
  }
  {
    const bp_value args1[] = {bp_as_tensor(env->args[0]), t[0]};
    status = bp_call_donating(frame, env->calls[0], args1, 2, &t[1], 2);
    if (status) goto done;
  }
  bp_drop(frame, &t[0], 1);
  results[0] = t[1];
  t[1].tag = BP_TAG_ABSENT;
done:
  bp_drop(frame, t, 2);
  (void)frame;
  (void)env;
  return status;
}

/* demo::cube, vjp: let s = x * x; s * 3 */
bp_status BP_CALL demo_op1_formula2(const bp_frame* frame, const bp_formula_env* env, bp_value* results) {
  bp_status status = BP_OK;
  bp_value t[5] = {{0}};
  bp_value v2;
  {
    const bp_value args0[] = {env->args[0], env->args[0]};
    status = frame->host->call_op(frame, env->calls[0], args0, 2, &t[0], 1);
    if (status) goto done;
  }
  {
    const bp_value args1[] = {t[0], bp_as_tensor(bp_int_value(INT64_C(3)))};
    status = bp_call_donating(frame, env->calls[0], args1, 2, &t[1], 1);
    if (status) goto done;
  }
  bp_drop(frame, &t[0], 1);
  if (((BP_MASK_COMPLEX >> bp_dtype_of(t[1]).u.i) & 1)) {
    {
      const bp_value args3[] = {t[1]};
      status = frame->host->call_op(frame, env->calls[2], args3, 1, &t[2], 1);
      if (status) goto done;
    }
    v2 = t[2];
  } else {
    v2 = t[1];
  }
  {
    const bp_value args4[] = {bp_as_tensor(env->cotangents[0]), bp_as_tensor(v2)};
    status = frame->host->call_op(frame, env->calls[0], args4, 2, &t[3], 1);
    if (status) goto done;
  }
  status = bp_fit(frame, env->calls + 3, bp_move(&t[3]), 1, &env->args[0], &t[4]);
  if (status) goto done;
  results[0] = t[4];
  t[4].tag = BP_TAG_ABSENT;
done:
  bp_drop(frame, t, 5);
  (void)frame;
  (void)env;
  return status;
}

/* demo::cube, jvp: let s = x * x; s * 3 */
bp_status BP_CALL demo_op1_formula3(const bp_frame* frame, const bp_formula_env* env, bp_value* results) {
  bp_status status = BP_OK;
  bp_value t[3] = {{0}};
  {
    const bp_value args0[] = {env->args[0], env->args[0]};
    status = frame->host->call_op(frame, env->calls[0], args0, 2, &t[0], 1);
    if (status) goto done;
  }
  {
    const bp_value args1[] = {t[0], bp_as_tensor(bp_int_value(INT64_C(3)))};
    status = bp_call_donating(frame, env->calls[0], args1, 2, &t[1], 1);
    if (status) goto done;
  }
  bp_drop(frame, &t[0], 1);
  {
    const bp_value args2[] = {bp_as_tensor(env->tangents[0]), t[1]};
    status = bp_call_donating(frame, env->calls[0], args2, 2, &t[2], 2);
    if (status) goto done;
  }
  bp_drop(frame, &t[1], 1);
  results[0] = t[2];
  t[2].tag = BP_TAG_ABSENT;
done:
  bp_drop(frame, t, 3);
  (void)frame;
  (void)env;
  return status;
}

/* demo::window, jvp: t * x; none */
bp_status BP_CALL demo_op2_formula3(const bp_frame* frame, const bp_formula_env* env, bp_value* results) {
  bp_status status = BP_OK;
  bp_value t[1] = {{0}};
  {
    const bp_value args0[] = {bp_as_tensor(env->tangents[0]), env->args[0]};
    status = frame->host->call_op(frame, env->calls[7], args0, 2, &t[0], 1);
    if (status) goto done;
  }
  results[0] = t[0];
  t[0].tag = BP_TAG_ABSENT;
  results[1] = bp_keep(frame, bp_absent_value());
done:
  bp_drop(frame, t, 1);
  (void)frame;
  (void)env;
  return status;
}

/* demo::turn, put: turn(v, axes) + zeros_like(x) */
bp_status BP_CALL demo_op4_formula0(const bp_frame* frame, const bp_formula_env* env, bp_value* results) {
  bp_status status = BP_OK;
  bp_value t[3] = {{0}};
  {
    const bp_value args0[] = {bp_as_tensor(env->cotangents[0]), env->args[1]};
    status = frame->host->call_op(frame, env->calls[0], args0, 2, &t[0], 1);
    if (status) goto done;
  }
  {
    const bp_value args1[] = {bp_as_tensor(env->args[0])};
    status = frame->host->call_op(frame, env->calls[1], args1, 1, &t[1], 1);
    if (status) goto done;
  }
  {
    const bp_value args2[] = {t[0], t[1]};
    status = bp_call_donating(frame, env->calls[2], args2, 2, &t[2], 3);
    if (status) goto done;
  }
  bp_drop(frame, &t[0], 1);
  bp_drop(frame, &t[1], 1);
  results[0] = t[2];
  t[2].tag = BP_TAG_ABSENT;
done:
  bp_drop(frame, t, 3);
  (void)frame;
  (void)env;
  return status;
}

/* demo::turn, vjp: turn(v, axes) + zeros_like(x) */
bp_status BP_CALL demo_op4_formula2(const bp_frame* frame, const bp_formula_env* env, bp_value* results) {
  bp_status status = BP_OK;
  bp_value t[5] = {{0}};
  {
    const bp_value args0[] = {bp_as_tensor(env->cotangents[0]), env->args[1]};
    status = frame->host->call_op(frame, env->calls[0], args0, 2, &t[0], 1);
    if (status) goto done;
  }
  {
    const bp_value args1[] = {bp_shape_of(env->args[0]), bp_int_value(INT64_C(0)), bp_dtype_of(env->args[0]), bp_device_of(env->args[0])};
    status = frame->host->call_op(frame, env->calls[3], args1, 4, &t[1], 1);
    if (status) goto done;
  }
  {
    const bp_value args2[] = {t[1]};
    status = bp_call_donating(frame, env->calls[1], args2, 1, &t[2], 1);
    if (status) goto done;
  }
  bp_drop(frame, &t[1], 1);
  {
    const bp_value args3[] = {t[0], t[2]};
    status = bp_call_donating(frame, env->calls[2], args3, 2, &t[3], 3);
    if (status) goto done;
  }
  bp_drop(frame, &t[0], 1);
  bp_drop(frame, &t[2], 1);
  status = bp_fit(frame, env->calls + 4, bp_move(&t[3]), 1, &env->args[0], &t[4]);
  if (status) goto done;
  results[0] = t[4];
  t[4].tag = BP_TAG_ABSENT;
done:
  bp_drop(frame, t, 5);
  (void)frame;
  (void)env;
  return status;
}

/* demo::turn, jvp: linear */
bp_status BP_CALL demo_op4_formula3(const bp_frame* frame, const bp_formula_env* env, bp_value* results) {
  bp_status status = BP_OK;
  bp_value t[1] = {{0}};
  {
    const bp_value args0[] = {bp_as_tensor(env->tangents[0]), env->args[1]};
    status = frame->host->call_op(frame, env->calls[0], args0, 2, &t[0], 1);
    if (status) goto done;
  }
  results[0] = t[0];
  t[0].tag = BP_TAG_ABSENT;
done:
  bp_drop(frame, t, 1);
  (void)frame;
  (void)env;
  return status;
}

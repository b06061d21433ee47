/* Native forms of the formulas of namespace demo, equal to the evaluator's bit for bit. Made by backplane-codegen from golden.yaml; edit that instead. */
#include "demo_formulas.h"

#include <math.h>

#if defined(__GNUC__)
#define BP_MAYBE_UNUSED __attribute__((unused))
#else
#define BP_MAYBE_UNUSED
#endif
#define BP_LOCAL static inline BP_MAYBE_UNUSED

BP_LOCAL bp_value absent_value(void) {
  bp_value v = {0};
  return v;
}
BP_LOCAL bp_value int_value(int64_t i) {
  bp_value v = {0};
  v.tag = BP_TAG_INT;
  v.u.i = i;
  return v;
}
BP_LOCAL bp_value bool_value(int64_t b) {
  bp_value v = {0};
  v.tag = BP_TAG_BOOL;
  v.u.i = b != 0;
  return v;
}
BP_LOCAL bp_value float_value(double f) {
  bp_value v = {0};
  v.tag = BP_TAG_FLOAT;
  v.u.f = f;
  return v;
}
BP_LOCAL bp_value dtype_value(int64_t dtype) {
  bp_value v = {0};
  v.tag = BP_TAG_DTYPE;
  v.u.i = dtype;
  return v;
}
BP_LOCAL bp_value string_value(const char* s, uint32_t size) {
  bp_value v = {0};
  v.tag = BP_TAG_STRING;
  v.count = size;
  v.u.s = s;
  return v;
}
BP_LOCAL bp_value int_list(const int64_t* ints, uint32_t count) {
  bp_value v = {0};
  v.tag = BP_TAG_INT_LIST;
  v.count = count;
  v.u.ints = ints;
  return v;
}
BP_LOCAL int is_number(bp_value v) { return v.tag >= BP_TAG_BOOL && v.tag <= BP_TAG_COMPLEX; }
BP_LOCAL bp_value as_tensor(bp_value v) {
  if (is_number(v)) v.flags |= BP_VALUE_NUMBER;
  return v;
}
BP_LOCAL bp_value default_value(bp_value v, bp_value fallback) { return v.tag == BP_TAG_ABSENT ? fallback : v; }
BP_LOCAL bp_value shape_of(bp_value v) {
  return v.tag == BP_TAG_TENSOR ? int_list(v.u.t->dl.shape, (uint32_t)v.u.t->dl.ndim) : int_list(0, 0);
}
BP_LOCAL int64_t ndim_of(bp_value v) { return v.tag == BP_TAG_TENSOR ? v.u.t->dl.ndim : 0; }
BP_LOCAL bp_value dtype_of(bp_value v) {
  static const uint16_t of_number[] = {BP_BOOL, BP_BOOL, BP_INT64, BP_FLOAT32, BP_COMPLEX64};
  return dtype_value(v.tag == BP_TAG_TENSOR ? v.u.t->dtype : of_number[is_number(v) ? v.tag : 0]);
}
BP_LOCAL bp_value device_of(bp_value v) {
  bp_device device = {v.u.t->backend, v.u.t->ordinal};
  v = absent_value();
  v.tag = BP_TAG_DEVICE;
  v.u.d = device;
  return v;
}
BP_LOCAL bp_value keep(const bp_frame* frame, bp_value v) {
  if (v.tag == BP_TAG_TENSOR) frame->host->retain(v.u.t);
  return v;
}
BP_LOCAL void drop(const bp_frame* frame, bp_value* t, int n) {
  for (int i = 0; i < n; ++i) {
    if (t[i].tag == BP_TAG_TENSOR) frame->host->release(t[i].u.t);
    t[i].tag = BP_TAG_ABSENT;
  }
}

/* As call_op. Bit i of `spent`: args[i] is dropped next, and the result may take its memory. */
BP_MAYBE_UNUSED static bp_status call_spending(const bp_frame* frame, uint32_t op, const bp_value* args, int32_t n_args,
                                               bp_value* out, uint64_t spent) {
  const bp_host* host = frame->host;
  if (BP_HAS(host, bp_host, call_op_spending)) return host->call_op_spending(frame, op, args, n_args, out, spent);
  return host->call_op(frame, op, args, n_args, out, 1);
}

static int same_shape(const bp_tensor* a, const bp_tensor* b) {
  if (a->dl.ndim != (b ? b->dl.ndim : 0)) return 0;
  for (int32_t i = 0; i < a->dl.ndim; ++i)
    if (a->dl.shape[i] != b->dl.shape[i]) return 0;
  return 1;
}

/* Replaces *current, which it owns where `owned`, by op(*current, arg). */
static bp_status replace(const bp_frame* frame, uint32_t op, bp_value* current, int* owned, bp_value arg, int n_args) {
  bp_value args[2] = {*current, arg};
  bp_value out = {0};
  bp_status status = frame->host->call_op(frame, op, args, n_args, &out, 1);
  if (*owned) drop(frame, current, 1);
  *owned = status == BP_OK;
  *current = out;
  return status;
}

BP_LOCAL bp_value move(bp_value* v) {
  bp_value moved = *v;
  v->tag = BP_TAG_ABSENT;
  return moved;
}

/* Real part, sum to the argument's shape, cast to its dtype: whichever differs. Takes v over where it is `owned`;
 * *out owns its tensor. */
BP_MAYBE_UNUSED static bp_status fit(const bp_frame* frame, const uint32_t ops[3], bp_value v, int owned,
                                     const bp_value* like, bp_value* out) {
  const bp_tensor* target = like->tag == BP_TAG_TENSOR ? like->u.t : 0;
  bp_status status = BP_OK;
  *out = v;
  if (v.tag != BP_TAG_TENSOR) return BP_OK;
  if (target && (BP_MASK_COMPLEX >> v.u.t->dtype & 1) && !(BP_MASK_COMPLEX >> target->dtype & 1))
    status = replace(frame, ops[2], out, &owned, absent_value(), 1);
  if (!status && !same_shape(out->u.t, target))
    status = replace(frame, ops[0], out, &owned, target ? shape_of(*like) : int_list(0, 0), 2);
  if (!status && target && out->u.t->dtype != target->dtype)
    status = replace(frame, ops[1], out, &owned, dtype_value(target->dtype), 2);
  if (!status && !owned) *out = keep(frame, *out);
  if (status) *out = absent_value();
  return status;
}

/* demo::axpby, decompose: x * alpha + y * beta */
bp_status BP_CALL demo_op0_formula0(const bp_frame* frame, const bp_formula_env* env, bp_value* results) {
  bp_status status = BP_OK;
  bp_value t[3] = {{0}};
  {
    const bp_value args0[] = {as_tensor(env->args[0]), as_tensor(env->args[2])};
    status = frame->host->call_op(frame, env->calls[0], args0, 2, &t[0], 1);
    if (status) goto done;
  }
  {
    const bp_value args1[] = {as_tensor(env->args[1]), as_tensor(env->args[3])};
    status = frame->host->call_op(frame, env->calls[0], args1, 2, &t[1], 1);
    if (status) goto done;
  }
  {
    const bp_value args2[] = {t[0], t[1]};
    status = call_spending(frame, env->calls[1], args2, 2, &t[2], 3);
    if (status) goto done;
  }
  drop(frame, &t[0], 1);
  drop(frame, &t[1], 1);
  results[0] = t[2];
  t[2].tag = BP_TAG_ABSENT;
done:
  drop(frame, t, 3);
  (void)frame;
  (void)env;
  return status;
}

/* demo::axpby, vjp: g * alpha */
bp_status BP_CALL demo_op0_formula2(const bp_frame* frame, const bp_formula_env* env, bp_value* results) {
  bp_status status = BP_OK;
  bp_value t[2] = {{0}};
  {
    const bp_value args0[] = {as_tensor(env->cotangents[0]), as_tensor(env->args[2])};
    status = frame->host->call_op(frame, env->calls[0], args0, 2, &t[0], 1);
    if (status) goto done;
  }
  status = fit(frame, env->calls + 3, move(&t[0]), 1, &env->args[0], &t[1]);
  if (status) goto done;
  results[0] = t[1];
  t[1].tag = BP_TAG_ABSENT;
done:
  drop(frame, t, 2);
  (void)frame;
  (void)env;
  return status;
}

/* demo::axpby, vjp: g * beta */
bp_status BP_CALL demo_op0_formula3(const bp_frame* frame, const bp_formula_env* env, bp_value* results) {
  bp_status status = BP_OK;
  bp_value t[2] = {{0}};
  {
    const bp_value args0[] = {as_tensor(env->cotangents[0]), as_tensor(env->args[3])};
    status = frame->host->call_op(frame, env->calls[0], args0, 2, &t[0], 1);
    if (status) goto done;
  }
  status = fit(frame, env->calls + 3, move(&t[0]), 1, &env->args[1], &t[1]);
  if (status) goto done;
  results[0] = t[1];
  t[1].tag = BP_TAG_ABSENT;
done:
  drop(frame, t, 2);
  (void)frame;
  (void)env;
  return status;
}

/* demo::axpby, jvp: linear */
bp_status BP_CALL demo_op0_formula4(const bp_frame* frame, const bp_formula_env* env, bp_value* results) {
  bp_status status = BP_OK;
  bp_value t[1] = {{0}};
  {
    const bp_value args0[] = {as_tensor(env->tangents[0]), as_tensor(env->tangents[1]), env->args[2], env->args[3]};
    status = frame->host->call_op(frame, env->calls[2], args0, 4, &t[0], 1);
    if (status) goto done;
  }
  results[0] = t[0];
  t[0].tag = BP_TAG_ABSENT;
done:
  drop(frame, t, 1);
  (void)frame;
  (void)env;
  return status;
}

/* demo::cube, decompose: let s = x * x; x * s */
bp_status BP_CALL demo_op1_formula0(const bp_frame* frame, const bp_formula_env* env, bp_value* results) {
  bp_status status = BP_OK;
  bp_value t[2] = {{0}};
  {
    const bp_value args0[] = {as_tensor(env->args[0]), as_tensor(env->args[0])};
    status = frame->host->call_op(frame, env->calls[0], args0, 2, &t[0], 1);
    if (status) goto done;
  }
  {
    const bp_value args1[] = {as_tensor(env->args[0]), t[0]};
    status = call_spending(frame, env->calls[0], args1, 2, &t[1], 2);
    if (status) goto done;
  }
  drop(frame, &t[0], 1);
  results[0] = t[1];
  t[1].tag = BP_TAG_ABSENT;
done:
  drop(frame, t, 2);
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
    const bp_value args0[] = {as_tensor(env->args[0]), as_tensor(env->args[0])};
    status = frame->host->call_op(frame, env->calls[0], args0, 2, &t[0], 1);
    if (status) goto done;
  }
  {
    const bp_value args1[] = {t[0], as_tensor(int_value(INT64_C(3)))};
    status = call_spending(frame, env->calls[0], args1, 2, &t[1], 1);
    if (status) goto done;
  }
  drop(frame, &t[0], 1);
  if (((BP_MASK_COMPLEX >> dtype_of(t[1]).u.i) & 1)) {
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
    const bp_value args4[] = {as_tensor(env->cotangents[0]), as_tensor(v2)};
    status = frame->host->call_op(frame, env->calls[0], args4, 2, &t[3], 1);
    if (status) goto done;
  }
  status = fit(frame, env->calls + 3, move(&t[3]), 1, &env->args[0], &t[4]);
  if (status) goto done;
  results[0] = t[4];
  t[4].tag = BP_TAG_ABSENT;
done:
  drop(frame, t, 5);
  (void)frame;
  (void)env;
  return status;
}

/* demo::cube, jvp: let s = x * x; s * 3 */
bp_status BP_CALL demo_op1_formula3(const bp_frame* frame, const bp_formula_env* env, bp_value* results) {
  bp_status status = BP_OK;
  bp_value t[3] = {{0}};
  {
    const bp_value args0[] = {as_tensor(env->args[0]), as_tensor(env->args[0])};
    status = frame->host->call_op(frame, env->calls[0], args0, 2, &t[0], 1);
    if (status) goto done;
  }
  {
    const bp_value args1[] = {t[0], as_tensor(int_value(INT64_C(3)))};
    status = call_spending(frame, env->calls[0], args1, 2, &t[1], 1);
    if (status) goto done;
  }
  drop(frame, &t[0], 1);
  {
    const bp_value args2[] = {as_tensor(env->tangents[0]), t[1]};
    status = call_spending(frame, env->calls[0], args2, 2, &t[2], 2);
    if (status) goto done;
  }
  drop(frame, &t[1], 1);
  results[0] = t[2];
  t[2].tag = BP_TAG_ABSENT;
done:
  drop(frame, t, 3);
  (void)frame;
  (void)env;
  return status;
}

/* demo::window, jvp: t * x; none */
bp_status BP_CALL demo_op2_formula3(const bp_frame* frame, const bp_formula_env* env, bp_value* results) {
  bp_status status = BP_OK;
  bp_value t[1] = {{0}};
  {
    const bp_value args0[] = {as_tensor(env->tangents[0]), as_tensor(env->args[0])};
    status = frame->host->call_op(frame, env->calls[7], args0, 2, &t[0], 1);
    if (status) goto done;
  }
  results[0] = t[0];
  t[0].tag = BP_TAG_ABSENT;
  results[1] = keep(frame, absent_value());
done:
  drop(frame, t, 1);
  (void)frame;
  (void)env;
  return status;
}

/* demo::turn, put: turn(v, axes) + zeros_like(x) */
bp_status BP_CALL demo_op4_formula0(const bp_frame* frame, const bp_formula_env* env, bp_value* results) {
  bp_status status = BP_OK;
  bp_value t[3] = {{0}};
  {
    const bp_value args0[] = {as_tensor(env->cotangents[0]), env->args[1]};
    status = frame->host->call_op(frame, env->calls[0], args0, 2, &t[0], 1);
    if (status) goto done;
  }
  {
    const bp_value args1[] = {as_tensor(env->args[0])};
    status = frame->host->call_op(frame, env->calls[1], args1, 1, &t[1], 1);
    if (status) goto done;
  }
  {
    const bp_value args2[] = {t[0], t[1]};
    status = call_spending(frame, env->calls[2], args2, 2, &t[2], 3);
    if (status) goto done;
  }
  drop(frame, &t[0], 1);
  drop(frame, &t[1], 1);
  results[0] = t[2];
  t[2].tag = BP_TAG_ABSENT;
done:
  drop(frame, t, 3);
  (void)frame;
  (void)env;
  return status;
}

/* demo::turn, vjp: turn(v, axes) + zeros_like(x) */
bp_status BP_CALL demo_op4_formula2(const bp_frame* frame, const bp_formula_env* env, bp_value* results) {
  bp_status status = BP_OK;
  bp_value t[5] = {{0}};
  {
    const bp_value args0[] = {as_tensor(env->cotangents[0]), env->args[1]};
    status = frame->host->call_op(frame, env->calls[0], args0, 2, &t[0], 1);
    if (status) goto done;
  }
  {
    const bp_value args1[] = {as_tensor(env->args[0])};
    status = frame->host->call_op(frame, env->calls[1], args1, 1, &t[1], 1);
    if (status) goto done;
  }
  {
    const bp_value args2[] = {t[1]};
    status = call_spending(frame, env->calls[1], args2, 1, &t[2], 1);
    if (status) goto done;
  }
  drop(frame, &t[1], 1);
  {
    const bp_value args3[] = {t[0], t[2]};
    status = call_spending(frame, env->calls[2], args3, 2, &t[3], 3);
    if (status) goto done;
  }
  drop(frame, &t[0], 1);
  drop(frame, &t[2], 1);
  status = fit(frame, env->calls + 3, move(&t[3]), 1, &env->args[0], &t[4]);
  if (status) goto done;
  results[0] = t[4];
  t[4].tag = BP_TAG_ABSENT;
done:
  drop(frame, t, 5);
  (void)frame;
  (void)env;
  return status;
}

/* demo::turn, jvp: linear */
bp_status BP_CALL demo_op4_formula3(const bp_frame* frame, const bp_formula_env* env, bp_value* results) {
  bp_status status = BP_OK;
  bp_value t[1] = {{0}};
  {
    const bp_value args0[] = {as_tensor(env->tangents[0]), env->args[1]};
    status = frame->host->call_op(frame, env->calls[0], args0, 2, &t[0], 1);
    if (status) goto done;
  }
  results[0] = t[0];
  t[0].tag = BP_TAG_ABSENT;
done:
  drop(frame, t, 1);
  (void)frame;
  (void)env;
  return status;
}

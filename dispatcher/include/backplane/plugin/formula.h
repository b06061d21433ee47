/* What generated formulas are written in: values, and calls of ops that hand temporaries on. C11.
 *
 * Not the contract: sugar over it for the C files that codegen writes (SYMBOL_formulas.c). Each piece mirrors one node
 * of the evaluator, dispatcher/record/evaluation.cpp, whose results tests compare bit for bit. Values are borrowed
 * unless a line says that they are owned; nothing here is kept between calls, so any thread may run it. */
#ifndef BACKPLANE_PLUGIN_FORMULA_H
#define BACKPLANE_PLUGIN_FORMULA_H

#include "backplane/abi/host.h"

#ifdef __cplusplus
extern "C" {
#endif

static inline bp_value bp_tagged(uint16_t tag, uint32_t count) {
  bp_value v;
  v.tag = tag;
  v.flags = 0;
  v.count = count;
  v.u.i = 0;
  return v;
}
static inline bp_value bp_absent_value(void) { return bp_tagged(BP_TAG_ABSENT, 0); }
static inline bp_value bp_int_value(int64_t i) {
  bp_value v = bp_tagged(BP_TAG_INT, 0);
  v.u.i = i;
  return v;
}
static inline bp_value bp_bool_value(int64_t b) {
  bp_value v = bp_tagged(BP_TAG_BOOL, 0);
  v.u.i = b != 0;
  return v;
}
static inline bp_value bp_float_value(double f) {
  bp_value v = bp_tagged(BP_TAG_FLOAT, 0);
  v.u.f = f;
  return v;
}
static inline bp_value bp_dtype_value(int64_t dtype) {
  bp_value v = bp_tagged(BP_TAG_DTYPE, 0);
  v.u.i = dtype;
  return v;
}
static inline bp_value bp_string_value(const char* s, uint32_t size) {
  bp_value v = bp_tagged(BP_TAG_STRING, size);
  v.u.s = s;
  return v;
}
static inline bp_value bp_int_list(const int64_t* ints, uint32_t count) {
  bp_value v = bp_tagged(BP_TAG_INT_LIST, count);
  v.u.ints = ints;
  return v;
}
static inline int bp_is_number(bp_value v) { return v.tag >= BP_TAG_BOOL && v.tag <= BP_TAG_COMPLEX; }
static inline bp_value bp_as_tensor(bp_value v) {
  if (bp_is_number(v)) v.flags |= BP_VALUE_NUMBER;
  return v;
}
static inline bp_value bp_default_value(bp_value v, bp_value fallback) { return v.tag == BP_TAG_ABSENT ? fallback : v; }
static inline bp_value bp_shape_of(bp_value v) {
  return v.tag == BP_TAG_TENSOR ? bp_int_list(v.u.t->dl.shape, (uint32_t)v.u.t->dl.ndim) : bp_int_list(0, 0);
}
static inline int64_t bp_ndim_of(bp_value v) { return v.tag == BP_TAG_TENSOR ? v.u.t->dl.ndim : 0; }
static inline bp_value bp_dtype_of(bp_value v) {
  static const uint16_t of_number[] = {BP_BOOL, BP_BOOL, BP_INT64, BP_FLOAT32, BP_COMPLEX64};
  return bp_dtype_value(v.tag == BP_TAG_TENSOR ? v.u.t->dtype : of_number[bp_is_number(v) ? v.tag : 0]);
}
/* Absent for a tensor. `parts` is to live as long as what is returned. */
static inline bp_value bp_conj_of_number(bp_value v, double parts[2]) {
  if (!bp_is_number(v)) return bp_absent_value();
  if (v.tag != BP_TAG_COMPLEX) return v;
  parts[0] = v.u.c[0];
  parts[1] = -v.u.c[1];
  v.u.c = parts;
  return v;
}
static inline bp_value bp_device_of(bp_value v) {
  bp_device device = {v.u.t->backend, v.u.t->ordinal};
  v = bp_tagged(BP_TAG_DEVICE, 0);
  v.u.d = device;
  return v;
}
static inline bp_value bp_keep(const bp_frame* frame, bp_value v) {
  if (v.tag == BP_TAG_TENSOR) frame->host->retain(v.u.t);
  return v;
}
static inline void bp_drop(const bp_frame* frame, bp_value* t, int n) {
  for (int i = 0; i < n; ++i) {
    if (t[i].tag == BP_TAG_TENSOR) frame->host->release(t[i].u.t);
    t[i].tag = BP_TAG_ABSENT;
  }
}

/* As call_op. Bit i of `donated`: args[i] is dropped next, and the result may take its memory. */
static inline bp_status bp_call_donating(const bp_frame* frame, uint32_t op, const bp_value* args, int32_t n_args,
                                         bp_value* out, uint64_t donated) {
  const bp_host* host = frame->host;
  if (BP_HAS(host, bp_host, call_op_donating)) return host->call_op_donating(frame, op, args, n_args, out, donated);
  return host->call_op(frame, op, args, n_args, out, 1);
}

static inline int bp_same_shape(const bp_tensor* a, const bp_tensor* b) {
  if (a->dl.ndim != (b ? b->dl.ndim : 0)) return 0;
  for (int32_t i = 0; i < a->dl.ndim; ++i)
    if (a->dl.shape[i] != b->dl.shape[i]) return 0;
  return 1;
}

/* Replaces *current, which it owns where `owned`, by op(*current, arg). */
static inline bp_status bp_replace(const bp_frame* frame, uint32_t op, bp_value* current, int* owned, bp_value arg,
                                   int n_args) {
  bp_value args[2] = {*current, arg};
  bp_value out = bp_absent_value();
  bp_status status = frame->host->call_op(frame, op, args, n_args, &out, 1);
  if (*owned) bp_drop(frame, current, 1);
  *owned = status == BP_OK;
  *current = out;
  return status;
}

static inline bp_value bp_move(bp_value* v) {
  bp_value moved = *v;
  v->tag = BP_TAG_ABSENT;
  return moved;
}

/* Real part, sum to the argument's shape, cast to its dtype: whichever differs. Takes v over where it is `owned`;
 * *out owns its tensor. */
static inline bp_status bp_fit(const bp_frame* frame, const uint32_t ops[3], bp_value v, int owned,
                               const bp_value* like, bp_value* out) {
  const bp_tensor* target = like->tag == BP_TAG_TENSOR ? like->u.t : 0;
  bp_status status = BP_OK;
  *out = v;
  if (v.tag != BP_TAG_TENSOR) return BP_OK;
  if (target && (BP_MASK_COMPLEX >> v.u.t->dtype & 1) && !(BP_MASK_COMPLEX >> target->dtype & 1))
    status = bp_replace(frame, ops[2], out, &owned, bp_absent_value(), 1);
  if (!status && !bp_same_shape(out->u.t, target))
    status = bp_replace(frame, ops[0], out, &owned, target ? bp_shape_of(*like) : bp_int_list(0, 0), 2);
  if (!status && target && out->u.t->dtype != target->dtype)
    status = bp_replace(frame, ops[1], out, &owned, bp_dtype_value(target->dtype), 2);
  if (!status && !owned) *out = bp_keep(frame, *out);
  if (status) *out = bp_absent_value();
  return status;
}

#ifdef __cplusplus
}
#endif
#endif

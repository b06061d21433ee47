/* The backend "first", an op, and kernels for it and for the host's copy (which autograd calls). Counts its stops, and
 * fails the stop where a test asks. */
#include "tiny.h"

static bp_status BP_CALL scale(const bp_frame* frame, const bp_value* args, int32_t n_args, bp_value* outs,
                               int32_t n_outs) {
  (void)frame;
  (void)n_args;
  (void)n_outs;
  return tiny_scale(args, outs, 2.0f);
}

static bp_status BP_CALL copy(const bp_frame* frame, const bp_value* args, int32_t n_args, bp_value* outs,
                              int32_t n_outs) {
  (void)frame;
  (void)n_args;
  (void)n_outs;
  return tiny_scale(args, outs, 1.0f);
}

static bp_status BP_CALL register_all(void* context, const bp_host* host, bp_plugin_record* record) {
  const bp_backend_def backend = tiny_backend("first");
  bp_status status = tiny_register_op(host, record, "first::scale", 0);
  (void)context;
  if (status == BP_OK) status = host->register_backend(record, &backend);
  if (status == BP_OK) status = tiny_register_kernel(host, record, "first::scale", "first", scale, 0, 0);
  if (status == BP_OK) status = tiny_register_kernel(host, record, "bp::copy", "first", copy, 0, 0);
  return status;
}

static bp_status BP_CALL stop(void* context) {
  (void)context;
  setenv("BACKPLANE_TEST_FIRST_STOPPED", "1", 1);
  return BP_OK;
}

#ifndef FIRST_FLAGS
#define FIRST_FLAGS BP_PLUGIN_UNLOADABLE
#endif
TINY_PLUGIN("first", FIRST_FLAGS, register_all, stop)

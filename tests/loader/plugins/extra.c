/* A better kernel for another plugin's op on another plugin's backend, and an op of its own there. */
#include "tiny.h"

#ifndef EXTRA_FACTOR
#define EXTRA_FACTOR 3.0f
#endif

static bp_status BP_CALL scale(const bp_frame* frame, const bp_value* args, int32_t n_args, bp_value* outs,
                               int32_t n_outs) {
  (void)frame;
  (void)n_args;
  (void)n_outs;
  return tiny_scale(args, outs, EXTRA_FACTOR);
}

static bp_status BP_CALL register_all(void* context, const bp_host* host, bp_plugin_record* record) {
  bp_status status = tiny_register_op(host, record, EXTRA_NAME "::scale", 0);
  (void)context;
  if (status == BP_OK) status = tiny_register_kernel(host, record, "first::scale", "first", scale, 0, 10);
  if (status == BP_OK) status = tiny_register_kernel(host, record, EXTRA_NAME "::scale", "first", scale, 0, 0);
  return status;
}

TINY_PLUGIN(EXTRA_NAME, BP_PLUGIN_UNLOADABLE, register_all, NULL)

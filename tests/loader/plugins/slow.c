/* Registers an op, and its kernel a while after that. */
#include "tiny.h"

#include <time.h>

static bp_status BP_CALL scale(const bp_frame* frame, const bp_value* args, int32_t n_args, bp_value* outs,
                               int32_t n_outs) {
  (void)frame;
  (void)n_args;
  (void)n_outs;
  return tiny_scale(args, outs, 4.0f);
}

static bp_status BP_CALL register_all(void* context, const bp_host* host, bp_plugin_record* record) {
  const struct timespec a_while = {0, 50000000};
  const bp_backend_def backend = tiny_backend("slow");
  bp_status status = tiny_register_op(host, record, "slow::scale", 0);
  (void)context;
  nanosleep(&a_while, NULL);
  if (status == BP_OK) status = tiny_register_kernel(host, record, "slow::scale", "first", scale, 0, 0);
  if (status == BP_OK) status = host->register_backend(record, &backend);
  nanosleep(&a_while, NULL);
  if (status == BP_OK) status = tiny_register_kernel(host, record, "slow::scale", "slow", scale, 0, 0);
  return status;
}

TINY_PLUGIN("slow", BP_PLUGIN_UNLOADABLE, register_all, NULL)

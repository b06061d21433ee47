/* A device in C: memory of the host, work done at once, and one op with a kernel for it. PLUGIN names all of them. */
#include "tiny.h"

static bp_status BP_CALL scale(const bp_frame* frame, const bp_value* args, int32_t n_args, bp_value* outs,
                               int32_t n_outs) {
  void* room = NULL;
  const bp_status status = frame->host->scratch(frame, 64, &room);
  (void)n_args;
  (void)n_outs;
  if (status != BP_OK) return status;
  memset(room, 0x5a, 64);
  if (tiny_count(&outs[0]) > 0 && tiny_floats(&args[0])[0] < 0) {
    frame->host->set_error(BP_ERROR_VALUE, "the first element is negative");
    return BP_ERROR_VALUE;
  }
  return tiny_scale(args, outs, 2.0f);
}

static bp_status BP_CALL register_all(void* context, const bp_host* host, bp_plugin_record* record) {
  const bp_backend_def backend = tiny_backend(PLUGIN);
  bp_status status = tiny_register_op(host, record, PLUGIN "::scale", 0);
  (void)context;
  if (status == BP_OK) status = host->register_backend(record, &backend);
  return status == BP_OK ? tiny_register_kernel(host, record, PLUGIN "::scale", PLUGIN, scale, 0, 0) : status;
}

TINY_PLUGIN(PLUGIN, BP_PLUGIN_UNLOADABLE, register_all, NULL)

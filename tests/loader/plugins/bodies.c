/* Ops whose kernels fail: in the body of a parallel_for, and with no message at all. */
#include "tiny.h"

typedef struct loop_context {
  const bp_host* host;
} loop_context;

static bp_status BP_CALL body(void* context, int64_t begin, int64_t end, int32_t worker) {
  const loop_context* loop = (const loop_context*)context;
  (void)worker;
  if (begin <= 700 && 700 < end) {
    loop->host->set_error(BP_ERROR_DATA, "element 700 is out of range");
    return BP_ERROR_DATA;
  }
  return BP_OK;
}

static bp_status BP_CALL in_body(const bp_frame* frame, const bp_value* args, int32_t n_args, bp_value* outs,
                                 int32_t n_outs) {
  loop_context loop = {frame->host};
  (void)args;
  (void)n_args;
  (void)outs;
  (void)n_outs;
  return frame->host->parallel_for(0, 1000, 10, body, &loop);
}

static bp_status BP_CALL silent(const bp_frame* frame, const bp_value* args, int32_t n_args, bp_value* outs,
                                int32_t n_outs) {
  (void)frame;
  (void)args;
  (void)n_args;
  (void)outs;
  (void)n_outs;
  return BP_ERROR_DEVICE;
}

static bp_status BP_CALL register_all(void* context, const bp_host* host, bp_plugin_record* record) {
  bp_status status = tiny_register_op(host, record, "bodies::in_body", 0);
  (void)context;
  if (status == BP_OK) status = tiny_register_op(host, record, "bodies::silent", 0);
  if (status == BP_OK) status = tiny_register_kernel(host, record, "bodies::in_body", "first", in_body, 0, 0);
  if (status == BP_OK) status = tiny_register_kernel(host, record, "bodies::silent", "first", silent, 0, 0);
  return status;
}

TINY_PLUGIN("bodies", BP_PLUGIN_UNLOADABLE, register_all, NULL)

/* A functionality key with a function for every op, which passes the call on. */
#include "tiny.h"

static const bp_host* services;

static bp_status BP_CALL pass_on(const bp_frame* frame, const bp_value* args, int32_t n_args, bp_value* outs,
                                 int32_t n_outs) {
  return services->call_op(frame, frame->op->op, args, n_args, outs, n_outs);
}

static bp_status BP_CALL register_all(void* context, const bp_host* host, bp_plugin_record* record) {
  bp_key_def key;
  (void)context;
  services = host;
  memset(&key, 0, sizeof key);
  key.header.struct_size = sizeof key;
  key.header.version = BP_TARGET_MINOR;
  key.name = "keyed";
  key.fallback = pass_on;
  return host->register_key(record, &key);
}

TINY_PLUGIN("keyed", BP_PLUGIN_UNLOADABLE, register_all, NULL)

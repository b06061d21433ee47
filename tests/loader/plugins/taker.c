/* Registers a name that "first" holds: its op, or with TAKE_BACKEND its backend; something of its own before that. */
#include "tiny.h"

static bp_status BP_CALL register_all(void* context, const bp_host* host, bp_plugin_record* record) {
  const bp_backend_def backend = tiny_backend("first");
  bp_status status = tiny_register_op(host, record, "taker::own", 0);
  (void)context;
  (void)backend;
  if (status != BP_OK) return status;
#ifdef TAKE_BACKEND
  return host->register_backend(record, &backend);
#else
  return tiny_register_op(host, record, "first::scale", 0);
#endif
}

TINY_PLUGIN("taker", BP_PLUGIN_UNLOADABLE, register_all, NULL)

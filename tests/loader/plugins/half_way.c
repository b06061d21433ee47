/* Registers an op and a backend, then fails: with a message, unless HALF_WAY_SILENT. */
#include "tiny.h"

static bp_status BP_CALL register_all(void* context, const bp_host* host, bp_plugin_record* record) {
  const bp_backend_def backend = tiny_backend("half");
  bp_status status = tiny_register_op(host, record, "half::first", 0);
  (void)context;
  if (status == BP_OK) status = host->register_backend(record, &backend);
  if (status != BP_OK) return status;
  if (getenv("BACKPLANE_TEST_HALF_WAY_WORKS")) return BP_OK;
#ifndef HALF_WAY_SILENT
  host->set_error(BP_ERROR_DEVICE, "the second half is missing");
#endif
  return BP_ERROR_DEVICE;
}

#ifdef HALF_WAY_SILENT
TINY_PLUGIN("half_silent", BP_PLUGIN_UNLOADABLE, register_all, NULL)
#else
TINY_PLUGIN("half", BP_PLUGIN_UNLOADABLE, register_all, NULL)
#endif

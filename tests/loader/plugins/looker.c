/* While it registers, it looks up an op of another plugin, which makes the host open that one; and one of its own. */
#include "tiny.h"

static bp_status BP_CALL register_all(void* context, const bp_host* host, bp_plugin_record* record) {
  (void)context;
  if (host->find_op("looker::own") != BP_NO_OP) return BP_ERROR_INTERNAL;
  if (host->find_op("extra::scale") == BP_NO_OP) {
    host->set_error(BP_ERROR_NOT_IMPLEMENTED, "looker needs extra::scale");
    return BP_ERROR_NOT_IMPLEMENTED;
  }
  return tiny_register_op(host, record, "looker::own", 0);
}

TINY_PLUGIN("looker", BP_PLUGIN_UNLOADABLE, register_all, NULL)

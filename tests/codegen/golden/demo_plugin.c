/* A plugin that registers the ops of namespace demo, by the contract alone. Made by backplane-codegen from golden.yaml; edit that instead. */
#include "backplane/abi/plugin.h"

#include <string.h>

#include "demo_records.h"

#ifndef BP_PLUGIN_NAME
#define BP_PLUGIN_NAME "demo"
#endif
#ifndef BP_PLUGIN_FLAGS
#define BP_PLUGIN_FLAGS BP_PLUGIN_UNLOADABLE
#endif
#ifndef BP_PLUGIN_VERSION
#define BP_PLUGIN_VERSION "0.1.0"
#endif

static bp_status BP_CALL register_all(void* context, const bp_host* host, bp_plugin_record* record) {
  (void)context;
  for (uint32_t i = 0; i < demo_op_count; ++i) {
    const bp_status status = host->register_op(record, demo_ops[i]);
    if (status != BP_OK) return status;
  }
  return BP_OK;
}

/* Pure: it answers and starts nothing. It writes no further than the host knows. */
BP_EXPORT bp_status BP_CALL bp_plugin_query(uint32_t host_major, uint32_t host_minor, bp_plugin* out) {
  (void)host_minor;
  if (host_major != BP_ABI_MAJOR || out->header.struct_size < sizeof(bp_header)) return BP_ERROR_VERSION;
  const bp_plugin answer = {
      .header = BP_HEADER(bp_plugin),
      .abi_major = BP_ABI_MAJOR,
      .abi_minor = BP_ABI_MINOR,
      .needs_minor = BP_TARGET_MINOR,
      .flags = BP_PLUGIN_FLAGS,
      .name = BP_PLUGIN_NAME,
      .version = BP_PLUGIN_VERSION,
      .register_all = register_all,
  };
  const size_t room = out->header.struct_size, size = room < sizeof(answer) ? room : sizeof(answer);
  memcpy(out, &answer, size);
  out->header.struct_size = (uint32_t)size;
  return BP_OK;
}

/* A plugin that takes its name, and that of its backend and op, from the name of its file: so that a test has as many
 * as it makes copies. One whose name begins with "bad" fails in its registration. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>

#include "tiny.h"

static char name[64], op[80];

static bp_status BP_CALL scale(const bp_frame* frame, const bp_value* args, int32_t n_args, bp_value* outs,
                               int32_t n_outs) {
  (void)frame;
  (void)n_args;
  (void)n_outs;
  return tiny_scale(args, outs, 7.0f);
}

static bp_status BP_CALL register_all(void* context, const bp_host* host, bp_plugin_record* record) {
  bp_backend_def backend = tiny_backend(name);
  bp_status status;
  (void)context;
  if (strncmp(name, "bad", 3) == 0) {
    host->set_error(BP_ERROR_DEVICE, "this one is broken");
    return BP_ERROR_DEVICE;
  }
  status = host->register_backend(record, &backend);
  if (status == BP_OK) status = tiny_register_op(host, record, op, 0);
  return status == BP_OK ? tiny_register_kernel(host, record, op, name, scale, 0, 0) : status;
}

static void name_from_file(void) {
  Dl_info info;
  const char *file, *end;
  if (!dladdr((void*)name, &info)) return;
  file = strrchr(info.dli_fname, '/');
  file = file ? file + 1 : info.dli_fname;
  end = strrchr(file, '.');
  snprintf(name, sizeof name, "%.*s", end ? (int)(end - file) : 63, file);
  snprintf(op, sizeof op, "%s::scale", name);
}

BP_EXPORT bp_status BP_CALL bp_plugin_query(uint32_t host_major, uint32_t host_minor, bp_plugin* out) {
  bp_plugin answer = {BP_HEADER(bp_plugin), BP_ABI_MAJOR, BP_ABI_MINOR, 1, BP_PLUGIN_UNLOADABLE, name, "1.0", NULL,
                      register_all,         NULL};
  (void)host_major;
  (void)host_minor;
  name_from_file();
  *out = answer;
  return BP_OK;
}

/* Ops whose kernels do what no kernel may: throw what is no exception, call themselves without end, register an op, and
 * say that a device of another plugin is lost. */
#include "tiny.h"

namespace {

bp_plugin_record* own_record;

bp_status BP_CALL throws(const bp_frame*, const bp_value*, int32_t, bp_value*, int32_t) { throw 42; }

bp_status BP_CALL recurses(const bp_frame* frame, const bp_value* args, int32_t n_args, bp_value*, int32_t) {
  bp_value out{};
  return frame->host->call_op(frame, frame->host->find_op("rude::recurses"), args, n_args, &out, 1);
}

bp_status BP_CALL registers(const bp_frame* frame, const bp_value*, int32_t, bp_value*, int32_t) {
  return tiny_register_op(frame->host, own_record, "rude::late", 0);
}

bp_status BP_CALL loses(const bp_frame* frame, const bp_value*, int32_t, bp_value*, int32_t) {
  frame->host->set_error(BP_ERROR_DEVICE_LOST, "it fell off the bus");
  return BP_ERROR_DEVICE_LOST;
}

bp_status BP_CALL register_all(void*, const bp_host* host, bp_plugin_record* record) {
  struct Row {
    const char* op;
    bp_kernel_fn fn;
  };
  own_record = record;
  const Row rows[] = {
      {"rude::throws", throws}, {"rude::recurses", recurses}, {"rude::registers", registers}, {"rude::loses", loses}};
  for (const Row& row : rows) {
    if (const bp_status status = tiny_register_op(host, record, row.op, 0)) return status;
    if (const bp_status status = tiny_register_kernel(host, record, row.op, "first", row.fn, 0, 0)) return status;
  }
  return BP_OK;
}

}  // namespace

extern "C" {
TINY_PLUGIN("rude", 0, register_all, nullptr)
}

/* A row for batch_norm that takes some calls and declines the others; docs/guides/backend.md shows its function. */
#include <initializer_list>

#include "tiny.h"

namespace {

bp_status BP_CALL supports(const bp_frame* frame, const bp_value* args, int32_t, bp_value* outs, int32_t) {
  const char* why = args[0].tag != BP_TAG_TENSOR ? "takes x as a tensor" : nullptr;
  for (const int i : {1, 2}) {                   // weight and bias
    if (args[i].tag == BP_TAG_ABSENT) continue;  // left out
    if (args[i].tag != BP_TAG_TENSOR)            // weight=2: a number in a tensor position
      why = "takes weight and bias as tensors";
    else if (args[i].u.t->dl.ndim != 1)
      why = "takes a weight and a bias of one dimension";
  }
  for (const int i : {1, 2})  // mean and var
    if ((outs[i].flags & BP_VALUE_NOT_WANTED) != 0) why = "always writes mean and var";
  if (why == nullptr) return BP_OK;
  frame->host->set_error(BP_ERROR_NOT_IMPLEMENTED, why);
  return BP_ERROR_NOT_IMPLEMENTED;
}

bp_status BP_CALL batch_norm(const bp_frame* frame, const bp_value*, int32_t, bp_value*, int32_t) {
  frame->host->set_error(BP_ERROR_NOT_IMPLEMENTED, "the call was taken");
  return BP_ERROR_NOT_IMPLEMENTED;
}

bp_status BP_CALL register_all(void*, const bp_host* host, bp_plugin_record* record) {
  bp_kernel_def row{};
  row.header = BP_HEADER(bp_kernel_def);
  row.op = "bp::batch_norm";
  row.backend = "first";
  row.fn = batch_norm;
  row.supports = supports;
  row.flags = BP_KERNEL_MAY_DECLINE;
  row.dtypes = BP_MASK_FLOATING;
  return host->register_kernel(record, &row);
}

}  // namespace

extern "C" {
TINY_PLUGIN("declines", BP_PLUGIN_UNLOADABLE, register_all, nullptr)
}

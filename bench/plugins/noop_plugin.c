/* A plugin in C with a record written by hand: bench::noop(Tensor x) -> Tensor, which returns its argument, and its
 * kernel on the CPU. `./dev bench` times calls of it, and how long this file takes to compile. It owns nothing. */
#include "noop_kernel.h"

static const bp_arg_def kArgs[] = {{"x", BP_TYPE_TENSOR, 0, 0, {0, 0, 0, {0}}}};
static const bp_result_def kResults[] = {{"out", BP_TYPE_TENSOR, BP_RESULT_NONDIFF, 0}};
static const bp_shape_rule kShapes[] = {{"dynamic", NULL, 0, 0, NULL}};
static const bp_result_dtype kDtypes[] = {{BP_RESULT_DTYPE_COMPUTE, 0, 0, 0, 0}};
static const bp_dtype_mask kAccepts[] = {BP_MASK_ANY};

static bp_status BP_CALL register_all(void* context, const bp_host* host, bp_plugin_record* record) {
  (void)context;
  const bp_op_def op = {
      .header = BP_HEADER(bp_op_def),
      .name = "bench::noop",
      .doc = "Returns its argument.",
      .file = __FILE__,
      .line = __LINE__,
      .flags = BP_OP_DYNAMIC,
      .args = {kArgs, 1, sizeof kArgs[0]},
      .results = {kResults, 1, sizeof kResults[0]},
      .shapes = {kShapes, 1, sizeof kShapes[0]},
      .dtypes = {kDtypes, 1, sizeof kDtypes[0]},
      .accepts = kAccepts,
      .promote = 1,
      .alias = BP_NO_ARG,
  };
  const bp_kernel_def kernel = {
      .header = BP_HEADER(bp_kernel_def),
      .op = "bench::noop",
      .backend = "cpu",
      .fn = noop_kernel,
      .dtypes = BP_MASK_ANY,
      .flags = BP_KERNEL_STRIDED,
      .file = __FILE__,
      .line = __LINE__,
  };
  const bp_status status = host->register_op(record, &op);
  return status != BP_OK ? status : host->register_kernel(record, &kernel);
}

BP_EXPORT bp_status BP_CALL bp_plugin_query(uint32_t host_major, uint32_t host_minor, bp_plugin* out) {
  (void)host_minor;
  if (host_major != BP_ABI_MAJOR || out->header.struct_size < sizeof(bp_plugin)) return BP_ERROR_VERSION;
  const bp_plugin plugin = {
      .header = BP_HEADER(bp_plugin),
      .abi_major = BP_ABI_MAJOR,
      .abi_minor = BP_ABI_MINOR,
      .needs_minor = BP_ABI_MINOR,
      .flags = BP_PLUGIN_UNLOADABLE,
      .name = "bench_noop",
      .version = "1",
      .register_all = register_all,
  };
  *out = plugin;
  return BP_OK;
}

/* Registers the op of ops.yaml, and a kernel for it on the CPU. Other backends, and half floats, run its decomposition.
 *
 * The binary contract alone, in C: backplane/abi/plugin.h. */
#include "backplane/abi/plugin.h"

#include <math.h>
#include <string.h>

#include "sketch_records.h"

/* One pass over the loop of a call: sizes and byte strides, outermost dimension first. */
typedef struct walk {
  int32_t rank;
  const int64_t* sizes;
  const int64_t* to;   /* strides of the result */
  const int64_t* from; /* strides of x */
  double speed;
} walk;

static void run_float32(const walk* w, int32_t dim, char* to, const char* from) {
  if (dim == w->rank) {
    *(float*)to = sinf((float)w->speed * *(const float*)from);
    return;
  }
  for (int64_t i = 0; i < w->sizes[dim]; ++i) run_float32(w, dim + 1, to + i * w->to[dim], from + i * w->from[dim]);
}

static void run_float64(const walk* w, int32_t dim, char* to, const char* from) {
  if (dim == w->rank) {
    *(double*)to = sin(w->speed * *(const double*)from);
    return;
  }
  for (int64_t i = 0; i < w->sizes[dim]; ++i) run_float64(w, dim + 1, to + i * w->to[dim], from + i * w->from[dim]);
}

static double number(const bp_value* value) { return value->tag == BP_TAG_FLOAT ? value->u.f : (double)value->u.i; }

static char* address(const bp_tensor* tensor) { return (char*)tensor->dl.data + tensor->dl.byte_offset; }

/* The core has inferred and checked dtypes and shapes, and made the result. */
static bp_status BP_CALL wave(const bp_frame* frame, const bp_value* args, int32_t n_args, bp_value* outs,
                              int32_t n_outs) {
  if (n_args != 2 || n_outs != 1) {
    frame->host->set_error(BP_ERROR_INTERNAL, "sketch::wave: the kernel was written for x and speed, and one result");
    return BP_ERROR_INTERNAL;
  }
  const bp_tensor *out = outs[0].u.t, *x = args[0].u.t;
  const int64_t item = frame->compute == BP_FLOAT32 ? 4 : 8, count = (int64_t)out->nbytes / item;
  walk w = {1, &count, &item, &item, number(&args[1])}; /* no loop: contiguous, and of one shape */
  if (frame->loop != NULL) {
    w.rank = frame->loop->rank;
    w.sizes = frame->loop->sizes;
    w.to = frame->loop->strides;
    w.from = frame->loop->strides + w.rank;
  }
  if (frame->compute == BP_FLOAT32)
    run_float32(&w, 0, address(out), address(x));
  else
    run_float64(&w, 0, address(out), address(x));
  return BP_OK;
}

static bp_status BP_CALL register_all(void* context, const bp_host* host, bp_plugin_record* record) {
  (void)context;
  for (uint32_t i = 0; i < sketch_op_count; ++i) {
    const bp_status status = host->register_op(record, sketch_ops[i]);
    if (status != BP_OK) return status;
  }
  const bp_kernel_def row = {
      .header = BP_HEADER(bp_kernel_def),
      .op = "sketch::wave",
      .backend = "cpu",
      .fn = wave,
      .dtypes = BP_DTYPE_BIT(BP_FLOAT32) | BP_DTYPE_BIT(BP_FLOAT64),
      .flags = BP_KERNEL_LOOP | BP_KERNEL_INPLACE,
      .file = __FILE__,
      .line = __LINE__,
  };
  return host->register_kernel(record, &row);
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
      .version = "0.1.0",
      .register_all = register_all,
  };
  const size_t room = out->header.struct_size, size = room < sizeof(answer) ? room : sizeof(answer);
  memcpy(out, &answer, size);
  out->header.struct_size = (uint32_t)size;
  return BP_OK;
}

/* What the tests' plugins share: the query function, an op record and a backend of host memory, each in a few lines.
 * Plain C over the contract, as an author without our C++ headers would write it. */
#ifndef BACKPLANE_TESTS_TINY_H
#define BACKPLANE_TESTS_TINY_H

#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200112L /* setenv */
#endif
#include <stdlib.h>
#include <string.h>

#include "backplane/abi/plugin.h"

#ifndef TINY_VERSION
#define TINY_VERSION "1.0"
#endif

#define TINY_PLUGIN(plugin_name, plugin_flags, register_function, stop_function)                          \
  BP_EXPORT bp_status BP_CALL bp_plugin_query(uint32_t host_major, uint32_t host_minor, bp_plugin* out) { \
    const bp_plugin answer = {BP_HEADER(bp_plugin), BP_ABI_MAJOR, BP_ABI_MINOR, 1,                        \
                              plugin_flags,         plugin_name,  TINY_VERSION, NULL,                     \
                              register_function,    stop_function};                                       \
    (void)host_minor;                                                                                     \
    if (host_major != BP_ABI_MAJOR) return BP_ERROR_VERSION;                                              \
    *out = answer;                                                                                        \
    return BP_OK;                                                                                         \
  }

static inline bp_array tiny_array(const void* data, uint32_t count, size_t stride) {
  bp_array array;
  array.data = data;
  array.count = count;
  array.stride = (uint32_t)stride;
  return array;
}

/* NAME(Tensor x) -> Tensor on float32; from revision 1 on: NAME(Tensor x, Scalar scale=1). */
static inline bp_status tiny_register_op(const bp_host* host, bp_plugin_record* record, const char* name,
                                         uint32_t revision) {
  bp_arg_def args[2];
  bp_result_def result;
  bp_result_dtype dtype;
  bp_shape_rule shape;
  const uint32_t shape_args[1] = {0};
  const bp_dtype_mask accepts[2] = {BP_DTYPE_BIT(BP_FLOAT32), 0};
  bp_op_def op;
  memset(args, 0, sizeof args);
  memset(&result, 0, sizeof result);
  memset(&dtype, 0, sizeof dtype);
  memset(&shape, 0, sizeof shape);
  memset(&op, 0, sizeof op);
  args[0].name = "x";
  args[0].type = BP_TYPE_TENSOR;
  args[1].name = "scale";
  args[1].type = BP_TYPE_SCALAR;
  args[1].flags = BP_ARG_HAS_DEFAULT;
  args[1].since = 1;
  args[1].default_value.tag = BP_TAG_INT;
  args[1].default_value.u.i = 1;
  result.name = "out";
  result.type = BP_TYPE_TENSOR;
  shape.name = "same";
  shape.args = shape_args;
  shape.n_args = 1;
  op.header.struct_size = sizeof op;
  op.header.version = BP_TARGET_MINOR;
  op.name = name;
  op.doc = "For the loader's tests.";
  op.file = __FILE__;
  op.line = __LINE__;
  op.revision = revision;
  op.args = tiny_array(args, revision > 0 ? 2u : 1u, sizeof args[0]);
  op.results = tiny_array(&result, 1, sizeof result);
  op.shapes = tiny_array(&shape, 1, sizeof shape);
  op.dtypes = tiny_array(&dtype, 1, sizeof dtype);
  op.accepts = accepts;
  op.promote = 1;
  op.alias = BP_NO_ARG;
  return host->register_op(record, &op);
}

static inline bp_status tiny_register_kernel(const bp_host* host, bp_plugin_record* record, const char* op,
                                             const char* backend, bp_kernel_fn fn, uint32_t revision,
                                             int32_t priority) {
  bp_kernel_def row;
  memset(&row, 0, sizeof row);
  row.header.struct_size = sizeof row;
  row.header.version = BP_TARGET_MINOR;
  row.op = op;
  row.backend = backend;
  row.fn = fn;
  row.revision = revision;
  row.priority = priority;
  row.dtypes = BP_MASK_ANY;
  row.file = __FILE__;
  row.line = __LINE__;
  return host->register_kernel(record, &row);
}

static inline float* tiny_floats(const bp_value* value) {
  return (float*)((char*)value->u.t->dl.data + value->u.t->dl.byte_offset);
}
static inline uint64_t tiny_count(const bp_value* value) { return value->u.t->nbytes / sizeof(float); }

/* out = factor * x: for kernels of NAME(Tensor x), which tests tell apart by the factor. */
static inline bp_status tiny_scale(const bp_value* args, bp_value* outs, float factor) {
  const float* x = tiny_floats(&args[0]);
  float* out = tiny_floats(&outs[0]);
  uint64_t i;
  for (i = 0; i < tiny_count(&outs[0]); ++i) out[i] = factor * x[i];
  return BP_OK;
}

static inline bp_status BP_CALL tiny_device_count(void* context, int32_t* count) {
  (void)context;
  *count = 1;
  return BP_OK;
}
static inline bp_status BP_CALL tiny_properties(void* context, int32_t ordinal, bp_device_properties* out) {
  (void)context;
  (void)ordinal;
  strcpy(out->name, "tiny");
  out->total_memory = 1u << 20;
  out->alignment = 4;
  out->dl_device_type = kDLExtDev;
  return BP_OK;
}
static inline bp_status BP_CALL tiny_allocate(void* context, int32_t ordinal, uint64_t size, void** data) {
  (void)context;
  (void)ordinal;
  *data = malloc(size);
  return *data ? BP_OK : BP_ERROR_MEMORY;
}
static inline bp_status BP_CALL tiny_deallocate(void* context, int32_t ordinal, void* data, uint64_t size) {
  (void)context;
  (void)ordinal;
  (void)size;
  free(data);
  return BP_OK;
}
static inline bp_status BP_CALL tiny_copy_from_host(void* context, int32_t ordinal, bp_stream* stream, uint64_t ticket,
                                                    void* dst, uint64_t dst_offset, const void* src, uint64_t size) {
  (void)context;
  (void)ordinal;
  (void)stream;
  (void)ticket;
  memcpy((char*)dst + dst_offset, src, size);
  return BP_OK;
}
static inline bp_status BP_CALL tiny_copy_to_host(void* context, int32_t ordinal, bp_stream* stream, void* dst,
                                                  void* src, uint64_t src_offset, uint64_t size) {
  (void)context;
  (void)ordinal;
  (void)stream;
  memcpy(dst, (char*)src + src_offset, size);
  return BP_OK;
}
static inline bp_status BP_CALL tiny_copy(void* context, int32_t ordinal, bp_stream* stream, uint64_t ticket, void* dst,
                                          uint64_t dst_offset, void* src, uint64_t src_offset, uint64_t size) {
  (void)context;
  (void)ordinal;
  (void)stream;
  (void)ticket;
  memmove((char*)dst + dst_offset, (char*)src + src_offset, size);
  return BP_OK;
}

/* Memory of the C library, no streams. */
static inline bp_backend_def tiny_backend(const char* name) {
  bp_backend_def backend;
  memset(&backend, 0, sizeof backend);
  backend.header.struct_size = sizeof backend;
  backend.header.version = BP_TARGET_MINOR;
  backend.name = name;
  backend.flags = BP_BACKEND_ADDRESSABLE | BP_BACKEND_HOST_MEMORY | BP_BACKEND_SYNCHRONOUS;
  backend.device_count = tiny_device_count;
  backend.properties = tiny_properties;
  backend.allocate = tiny_allocate;
  backend.deallocate = tiny_deallocate;
  backend.copy_from_host = tiny_copy_from_host;
  backend.copy_to_host = tiny_copy_to_host;
  backend.copy = tiny_copy;
  return backend;
}

#endif

/* The device table: memory and copies of one device, whose kernels run on the processor and are done when they return.
 *
 * Replace what the functions do by calls of your driver. Each returns a status; a message goes to the host first. Any
 * thread may call. */
#include "device.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GRANULE = 64 };                      /* every block begins on a cache line, and has a multiple of it */
static const uint64_t kMemory = 4ull << 30; /* bytes of the device */

typedef struct device {
  const bp_host* host; /* set once, when the backend is registered */
  _Atomic uint64_t in_use;
} device;

static device the_device;

static bp_status failed(const device* d, bp_status code, const char* format, ...) {
  char message[256];
  va_list values;
  va_start(values, format);
  vsnprintf(message, sizeof(message), format, values);
  va_end(values);
  d->host->set_error(code, message);
  return code;
}

static uint64_t rounded(uint64_t size) { return (size + GRANULE - 1) / GRANULE * GRANULE; }

static char* at(void* data, uint64_t offset) { return (char*)data + offset; }

/* How many devices there are. A driver is started here, when the backend is first named, and not before. */
static bp_status BP_CALL device_count(void* context, int32_t* count) {
  (void)context;
  *count = 1;
  return BP_OK;
}

static bp_status BP_CALL properties(void* context, int32_t ordinal, bp_device_properties* out) {
  (void)context;
  (void)ordinal;
  snprintf(out->name, sizeof(out->name), "minimal device");
  out->total_memory = kMemory;
  out->dl_device_type = kDLExtDev;
  out->lacks = 0; /* dtypes in which the device cannot compute: BP_DTYPE_BIT(BP_FLOAT64) | ... */
  return BP_OK;
}

static bp_status BP_CALL allocate(void* context, int32_t ordinal, uint64_t size, void** data) {
  device* d = context;
  (void)ordinal;
  if (size > kMemory)
    return failed(d, BP_ERROR_MEMORY, "minimal: %llu bytes asked for; the device has %llu", (unsigned long long)size,
                  (unsigned long long)kMemory);
  const uint64_t bytes = rounded(size), in_use = atomic_fetch_add(&d->in_use, bytes);
  *data = in_use + bytes <= kMemory ? aligned_alloc(GRANULE, bytes) : NULL;
  if (*data != NULL) return BP_OK;
  atomic_fetch_sub(&d->in_use, bytes);
  return failed(d, BP_ERROR_MEMORY, "minimal: %llu bytes asked for; %llu of %llu are in use", (unsigned long long)size,
                (unsigned long long)in_use, (unsigned long long)kMemory);
}

static bp_status BP_CALL deallocate(void* context, int32_t ordinal, void* data, uint64_t size) {
  device* d = context;
  (void)ordinal;
  free(data);
  atomic_fetch_sub(&d->in_use, rounded(size));
  return BP_OK;
}

/* A copy has no stream and no ticket here: all work is done when a call returns (BP_BACKEND_SYNCHRONOUS). */
static bp_status BP_CALL copy_from_host(void* context, int32_t ordinal, bp_stream* stream, uint64_t ticket, void* dst,
                                        uint64_t dst_offset, const void* src, uint64_t size) {
  (void)context;
  (void)ordinal;
  (void)stream;
  (void)ticket;
  memcpy(at(dst, dst_offset), src, size);
  return BP_OK;
}

static bp_status BP_CALL copy_to_host(void* context, int32_t ordinal, bp_stream* stream, void* dst, void* src,
                                      uint64_t src_offset, uint64_t size) {
  (void)context;
  (void)ordinal;
  (void)stream;
  memcpy(dst, at(src, src_offset), size);
  return BP_OK;
}

static bp_status BP_CALL copy(void* context, int32_t ordinal, bp_stream* stream, uint64_t ticket, void* dst,
                              uint64_t dst_offset, void* src, uint64_t src_offset, uint64_t size) {
  (void)context;
  (void)ordinal;
  (void)stream;
  (void)ticket;
  memmove(at(dst, dst_offset), at(src, src_offset), size);
  return BP_OK;
}

bp_status minimal_register_device(const bp_host* host, bp_plugin_record* record, const char* name) {
  the_device.host = host;
  const bp_backend_def table = {
      .header = BP_HEADER(bp_backend_def),
      .name = name,
      .flags = BP_BACKEND_SYNCHRONOUS | BP_BACKEND_ADDRESSABLE,
      .context = &the_device,
      .device_count = device_count,
      .properties = properties,
      .allocate = allocate,
      .deallocate = deallocate,
      .copy_from_host = copy_from_host,
      .copy_to_host = copy_to_host,
      .copy = copy,
  };
  return host->register_backend(record, &table);
}

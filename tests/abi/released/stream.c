/* An asynchronous device in C: a stream keeps what is recorded, and does it when somebody waits for it. Its kernel's
 * work fails, later, where the first element is negative. PLUGIN names the device and the op. */
#include "tiny.h"

#define MOST_WORK 64

struct work {
  uint64_t ticket, count;
  const float* from;
  float* to;
};
struct bp_stream {
  struct work queue[MOST_WORK];
  uint32_t n;
  uint64_t done, failed;
};

static void run(bp_stream* stream, uint64_t upto) {
  uint32_t i, left = 0;
  for (i = 0; i < stream->n; ++i) {
    const struct work* work = &stream->queue[i];
    uint64_t k;
    if (work->ticket > upto) {
      stream->queue[left++] = *work;
      continue;
    }
    for (k = 0; k < work->count; ++k) work->to[k] = 3.0f * work->from[k];
    if (work->count > 0 && work->from[0] < 0) stream->failed = work->ticket;
  }
  stream->n = left;
  if (upto > stream->done) stream->done = upto;
}

static bp_status BP_CALL stream_create(void* context, int32_t ordinal, bp_stream** stream) {
  (void)context;
  (void)ordinal;
  *stream = (bp_stream*)calloc(1, sizeof(bp_stream));
  return *stream ? BP_OK : BP_ERROR_MEMORY;
}
static void BP_CALL stream_destroy(void* context, int32_t ordinal, bp_stream* stream) {
  (void)context;
  (void)ordinal;
  free(stream);
}
static bp_status BP_CALL flush(void* context, int32_t ordinal, bp_stream* stream, uint64_t ticket) {
  (void)context;
  (void)ordinal;
  (void)stream;
  (void)ticket;
  return BP_OK;
}
static bp_status BP_CALL completed(void* context, int32_t ordinal, bp_stream* stream, uint64_t* ticket) {
  (void)context;
  (void)ordinal;
  *ticket = stream->done;
  return BP_OK;
}
static bp_status BP_CALL wait_ticket(void* context, int32_t ordinal, bp_stream* stream, uint64_t ticket) {
  (void)context;
  (void)ordinal;
  run(stream, ticket);
  return stream->failed ? BP_ERROR_DATA : BP_OK;
}
static bp_status BP_CALL stream_wait(void* context, int32_t ordinal, bp_stream* stream, bp_stream* other,
                                     uint64_t ticket) {
  (void)context;
  (void)ordinal;
  (void)stream;
  run(other, ticket);
  return BP_OK;
}
static bp_status BP_CALL deferred_error(void* context, int32_t ordinal, bp_stream* stream, bp_deferred_error* out) {
  (void)context;
  (void)ordinal;
  out->code = stream->failed ? BP_ERROR_DATA : BP_OK;
  out->ticket = stream->failed;
  strcpy(out->message, "the first element is negative");
  stream->failed = 0;
  return BP_OK;
}
/* Behind the work that is recorded: the host has copied when this returns. */
static bp_status BP_CALL copy_from_host(void* context, int32_t ordinal, bp_stream* stream, uint64_t ticket, void* dst,
                                        uint64_t dst_offset, const void* src, uint64_t size) {
  run(stream, ticket);
  return tiny_copy_from_host(context, ordinal, stream, ticket, dst, dst_offset, src, size);
}
static bp_status BP_CALL copy(void* context, int32_t ordinal, bp_stream* stream, uint64_t ticket, void* dst,
                              uint64_t dst_offset, void* src, uint64_t src_offset, uint64_t size) {
  run(stream, ticket);
  return tiny_copy(context, ordinal, stream, ticket, dst, dst_offset, src, src_offset, size);
}

static bp_status BP_CALL scale(const bp_frame* frame, const bp_value* args, int32_t n_args, bp_value* outs,
                               int32_t n_outs) {
  bp_stream* stream = frame->stream;
  struct work work;
  (void)n_args;
  (void)n_outs;
  if (stream->n == MOST_WORK) run(stream, frame->ticket - 1);
  work.ticket = frame->ticket;
  work.from = tiny_floats(&args[0]);
  work.to = tiny_floats(&outs[0]);
  work.count = tiny_count(&outs[0]);
  stream->queue[stream->n++] = work;
  return BP_OK;
}

static bp_status BP_CALL register_all(void* context, const bp_host* host, bp_plugin_record* record) {
  bp_backend_def backend = tiny_backend(PLUGIN);
  bp_status status = tiny_register_op(host, record, PLUGIN "::scale", 0);
  (void)context;
  backend.flags = BP_BACKEND_ADDRESSABLE;
  backend.copy_from_host = copy_from_host;
  backend.copy = copy;
  backend.stream_create = stream_create;
  backend.stream_destroy = stream_destroy;
  backend.flush = flush;
  backend.completed = completed;
  backend.wait = wait_ticket;
  backend.stream_wait = stream_wait;
  backend.deferred_error = deferred_error;
  if (status == BP_OK) status = host->register_backend(record, &backend);
  return status == BP_OK ? tiny_register_kernel(host, record, PLUGIN "::scale", PLUGIN, scale, 0, 0) : status;
}

TINY_PLUGIN(PLUGIN, BP_PLUGIN_UNLOADABLE, register_all, NULL)

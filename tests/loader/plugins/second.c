/* The backend "second": with one stream per request and tickets, its work done at once. The kernel of second::poison
 * succeeds, and its failure is reported when somebody waits for its ticket. No after_fork. */
#include "tiny.h"

struct bp_stream {
  uint64_t done;
  uint64_t poisoned; /* the ticket whose error is still to be fetched; 0: none */
};

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
  stream->done = ticket;
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
  stream->done = ticket;
  return stream->poisoned ? BP_ERROR_DATA : BP_OK;
}
static bp_status BP_CALL stream_wait(void* context, int32_t ordinal, bp_stream* stream, bp_stream* other,
                                     uint64_t ticket) {
  (void)context;
  (void)ordinal;
  (void)stream;
  (void)other;
  (void)ticket;
  return BP_OK;
}
static bp_status BP_CALL deferred_error(void* context, int32_t ordinal, bp_stream* stream, bp_deferred_error* out) {
  (void)context;
  (void)ordinal;
  out->code = stream->poisoned ? BP_ERROR_DATA : BP_OK;
  out->ticket = stream->poisoned;
  strcpy(out->message, "the well is poisoned");
  stream->poisoned = 0;
  return BP_OK;
}

static bp_status BP_CALL scale(const bp_frame* frame, const bp_value* args, int32_t n_args, bp_value* outs,
                               int32_t n_outs) {
  (void)frame;
  (void)n_args;
  (void)n_outs;
  return tiny_scale(args, outs, -1.0f);
}
static bp_status BP_CALL poison(const bp_frame* frame, const bp_value* args, int32_t n_args, bp_value* outs,
                                int32_t n_outs) {
  frame->stream->poisoned = frame->ticket;
  return scale(frame, args, n_args, outs, n_outs);
}

static bp_status BP_CALL register_all(void* context, const bp_host* host, bp_plugin_record* record) {
  bp_backend_def backend = tiny_backend("second");
  bp_status status = tiny_register_op(host, record, "second::scale", 0);
  (void)context;
  backend.flags = 0;
  backend.stream_create = stream_create;
  backend.stream_destroy = stream_destroy;
  backend.flush = flush;
  backend.completed = completed;
  backend.wait = wait_ticket;
  backend.stream_wait = stream_wait;
  backend.deferred_error = deferred_error;
  if (status == BP_OK) status = tiny_register_op(host, record, "second::poison", 0);
  if (status == BP_OK) status = host->register_backend(record, &backend);
  if (status == BP_OK) status = tiny_register_kernel(host, record, "second::scale", "second", scale, 0, 0);
  if (status == BP_OK) status = tiny_register_kernel(host, record, "second::poison", "second", poison, 0, 0);
  return status;
}

TINY_PLUGIN("second", BP_PLUGIN_UNLOADABLE, register_all, NULL)

/* The least kernel that returns something: its argument, with a reference of its own. The plugin registers it, and the
 * benchmark calls the same function directly, so that the difference is the dispatcher's share. */
#ifndef BACKPLANE_BENCH_NOOP_KERNEL_H
#define BACKPLANE_BENCH_NOOP_KERNEL_H

#include "backplane/abi/plugin.h"

static bp_status BP_CALL noop_kernel(const bp_frame* frame, const bp_value* args, int32_t n_args, bp_value* outs,
                                     int32_t n_outs) {
  (void)n_args;
  (void)n_outs;
  frame->host->retain(args[0].u.t);
  outs[0] = args[0];
  return BP_OK;
}

#endif

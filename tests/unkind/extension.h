/* The extension "unkind" of the unkind devices' backends: what tests steer and read them by. */
#ifndef BACKPLANE_TESTS_UNKIND_EXTENSION_H
#define BACKPLANE_TESTS_UNKIND_EXTENSION_H

#include "backplane/abi/plugin.h"

#define UNKIND_EXTENSION "unkind"
typedef struct unkind_extension {
  bp_header header;
  /* "seed=7,pace=eager,lose=30"; see plan.hpp. Counts begin anew, findings are forgotten. */
  bp_status(BP_CALL* plan)(void* context, const char* plan);
  /* How often the host broke a rule; the first time as text, cut to `room` bytes. */
  uint64_t(BP_CALL* findings)(void* context, char* text, uint64_t room);
  /* "work=12 allocations=3" since the plan. */
  void(BP_CALL* counts)(void* context, char* text, uint64_t room);
} unkind_extension;

#endif

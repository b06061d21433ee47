// How the evaluator calls ops: stateless hooks into the call path. call/caller.cpp fills them in, tests set their own.
#pragma once

#include "backplane/abi/host.h"

namespace backplane::core {

struct OpRecord;

struct Caller {
  // As bp_host::call_op: empty outs receive owned values (owned_value.hpp). A failing status has its message set.
  bp_status (*call)(const bp_frame* frame, uint32_t op, const bp_value* args, int32_t n_args, bp_value* outs,
                    int32_t n_outs);
  // The callee's signature: how many results, and which positions are tensors (there a number carries its flag).
  const OpRecord* (*record)(uint32_t op);
  void (*retain)(bp_tensor* tensor);
  void (*release)(bp_tensor* tensor);
  // As bp_host::call_op_donating; nullptr: `call` serves.
  bp_status (*call_donating)(const bp_frame* frame, uint32_t op, const bp_value* args, int32_t n_args, bp_value* out,
                             uint64_t donated) = nullptr;
};
extern Caller caller;

}  // namespace backplane::core

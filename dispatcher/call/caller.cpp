#include "record/caller.hpp"

#include "call/dispatch.hpp"
#include "call/reuse.hpp"
#include "memory/process/epoch.hpp"

namespace backplane::core {
namespace {

bp_status call_op(const bp_frame* frame, uint32_t op, const bp_value* args, int32_t n_args, bp_value* outs,
                  int32_t n_outs) {
  try {
    call(checked_entry(op), args, n_args, outs, n_outs, frame ? frame->keys : kInnerKeys);
    return BP_OK;
  } catch (...) {
    return status_of_exception();
  }
}
bp_status call_one_donating(const bp_frame* frame, uint32_t op, const bp_value* args, int32_t n_args, bp_value* out,
                            uint64_t donated) {
  try {
    call_donating(checked_entry(op), args, n_args, out, frame ? frame->keys : kInnerKeys, donated);
    return BP_OK;
  } catch (...) {
    return status_of_exception();
  }
}
const OpRecord* record_of(uint32_t op) { return op_entry(op)->record.get(); }
}  // namespace

constinit Caller caller{call_op, record_of, [](bp_tensor* t) { retain(impl(t)); },
                        [](bp_tensor* t) { release(impl(t)); }, call_one_donating};

}  // namespace backplane::core

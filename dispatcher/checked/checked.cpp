// Checked mode's place in front of kernels: rows are changed as they are registered. See backplane/checked.hpp.
#include "backplane/checked.hpp"

#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

#include "checked/guarded_call.hpp"
#include "checked/retired_blocks.hpp"
#include "memory/process/epoch.hpp"
#include "record/host_table.hpp"
#include "registry/plan.hpp"

namespace backplane::core {
namespace {

std::atomic<bool> checking{false};

// What the row was before.
struct CheckedRow {
  bp_kernel_fn fn, supports;
  void* context;
  const PluginRecord* owner;
  uint32_t flags;
  RetiredBlocks retired{};
};

thread_local GuardedCall* guarded = nullptr;  // the innermost one that runs on this thread

bp_status checked_scratch(const bp_frame* frame, uint64_t size, void** data) {
  if (!guarded) return host_table.scratch(frame, size, data);
  try {
    return guarded->scratch(size, data);
  } catch (...) {
    return status_of_exception();
  }
}

bp_status checked_parallel_for(int64_t begin, int64_t end, int64_t grain, bp_parallel_body body, void* context) {
  if (!guarded) return host_table.parallel_for(begin, end, grain, body, context);
  try {
    return guarded->parallel_for(begin, end, grain, body, context);
  } catch (...) {
    return status_of_exception();
  }
}

const bp_host& checked_host() {
  static const bp_host table = [] {
    bp_host made = host_table;
    made.scratch = checked_scratch;
    made.parallel_for = checked_parallel_for;
    return made;
  }();
  return table;
}

void report(bp_status code, const bp_frame& frame, const std::string& text) {
  host_table.set_error(code, (std::string(frame.op->name) + ": " + text).c_str());
}

class InnermostGuarded {
 public:
  explicit InnermostGuarded(GuardedCall* call) : before_(std::exchange(guarded, call)) {}
  ~InnermostGuarded() { guarded = before_; }
  InnermostGuarded(const InnermostGuarded&) = delete;

 private:
  GuardedCall* before_;
};

bp_status run_checked(CheckedRow& row, const bp_frame& frame, const bp_value* args, int32_t n_args, bp_value* outs,
                      int32_t n_outs) {
  Device& device = device_at({frame.backend, frame.ordinal});
  RetiredBlocks::Taken retired(row.retired, device);
  GuardedCall call(device, frame, row.owner->name.c_str(), retired.blocks);
  const bp_value* lent = call.begin(args, n_args, outs, n_outs);
  take_error();
  bp_status status;
  {
    InnermostGuarded scope(&call);
    status = row.fn(&frame, lent, n_args, outs, n_outs);
  }
  const std::string said = take_error();
  const std::string fault = call.end();
  if (!fault.empty()) {
    report(BP_ERROR_INTERNAL, frame, fault);
    return BP_ERROR_INTERNAL;
  }
  if (status != BP_OK && said.empty())
    report(status, frame,
           "the kernel of plugin \"" + row.owner->name + "\" failed with status " + std::to_string(status) +
               " and no message; a kernel must call set_error before it fails");
  else if (status != BP_OK)
    host_table.set_error(status, said.c_str());
  return status;
}

bp_status checked_kernel(const bp_frame* frame, const bp_value* args, int32_t n_args, bp_value* outs, int32_t n_outs) {
  auto& row = *static_cast<CheckedRow*>(frame->context);
  bp_frame inner = *frame;
  inner.context = row.context;
  if ((row.flags & BP_KERNEL_CALLS_OPS) || !checking.load(std::memory_order_relaxed))
    return row.fn(&inner, args, n_args, outs, n_outs);
  inner.host = &checked_host();
  try {
    return run_checked(row, inner, args, n_args, outs, n_outs);
  } catch (...) {
    return status_of_exception();
  }
}

bp_status checked_supports(const bp_frame* frame, const bp_value* args, int32_t n_args, bp_value* outs,
                           int32_t n_outs) {
  const auto& row = *static_cast<const CheckedRow*>(frame->context);
  bp_frame inner = *frame;
  inner.context = row.context;
  return row.supports(&inner, args, n_args, outs, n_outs);
}

std::shared_ptr<void> stand_in_front(bp_kernel_def& def, const PluginRecord& owner) {
  if (std::strncmp(def.backend, "key:", 4) == 0) return nullptr;
  auto row = std::make_shared<CheckedRow>(def.fn, def.supports, def.context, &owner, def.flags);
  def.context = row.get();
  def.fn = checked_kernel;
  if (def.supports) def.supports = checked_supports;
  return row;
}

[[maybe_unused]] const bool kFromTheStart = [] {
  const char* wanted = std::getenv("BACKPLANE_CHECKED");
  if (!wanted || std::strcmp(wanted, "1") != 0) return false;
  enable_checked_kernels();
  return true;
}();

}  // namespace
}  // namespace backplane::core

namespace backplane {

using namespace core;

void enable_checked_kernels() noexcept {
  row_filter = stand_in_front;
  checking = true;
}

bool check_kernels(bool checked) noexcept { return checking.exchange(checked); }

const bp_backend_def& backend_table(bp_device device) { return device_at(device).backend->def; }

}  // namespace backplane

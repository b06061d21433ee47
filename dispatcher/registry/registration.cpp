// Registrations of the program itself, on the functions that plugins' registrations use; see
// backplane/registration.hpp.
#include "backplane/registration.hpp"

#include "memory/process/epoch.hpp"
#include "memory/process/thread_state.hpp"
#include "registry/registry_state.hpp"
#include "registry/withdrawal.hpp"

namespace backplane {

using namespace core;

Registration::Registration(const std::string& owner) : owner_(new PluginRecord) {
  owner_->index = kCountedPlugins;  // its leases are counted in the record
  owner_->name = owner;
  owner_->state = PluginRecord::State::kLoaded;
}

// Entries of the registry keep their owner for good, and leases may be dropped at any time.
Registration::~Registration() {
  withdraw();
  if (!kept_) {
    delete owner_;
    return;
  }
  static std::vector<PluginRecord*>& records = *new std::vector<PluginRecord*>;
  std::lock_guard guard(registry().lock);
  records.push_back(owner_);
}

OpHandle Registration::define(const bp_op_def& op, std::span<const bp_kernel_def> kernels, std::shared_ptr<void> kept) {
  std::shared_ptr<const Withdrawn> before;
  if (defined_) before = core::withdraw(owner_);
  try {
    const OpHandle handle = register_op(owner_, op);
    kept_ = true;
    op_entry(handle)->kept = std::move(kept);
    for (const bp_kernel_def& kernel : kernels) register_kernel(owner_, kernel);
    defined_ = true;
    reclaim_replaced();
    return handle;
  } catch (...) {
    if (before && find_op_loaded(op.name) != BP_NO_OP && op_entry(find_op_loaded(op.name))->withdrawn) restore(*before);
    throw;
  }
}

void Registration::withdraw() noexcept {
  if (!defined_) return;
  defined_ = false;
  try {
    core::withdraw(owner_);
  } catch (const std::exception&) {
    // Out of memory while plans were made anew: the op stays.
    defined_ = true;
  }
}

KernelScope::KernelScope(const bp_frame& frame) noexcept
    : level_(thread_state.level),
      included_(thread_state.included_keys),
      excluded_(thread_state.excluded_keys),
      captures_(thread_state.captures) {
  thread_state.level = nullptr;
  thread_state.included_keys &= kPluginKeys;
  thread_state.excluded_keys |= ~frame.keys & kPluginKeys;
  thread_state.captures = nullptr;  // who notes instead of recording would hear of nothing but the kernel's parts
}

KernelScope::~KernelScope() {
  thread_state.level = static_cast<Level*>(level_);
  thread_state.included_keys = included_;
  thread_state.excluded_keys = excluded_;
  thread_state.captures = static_cast<Captures*>(captures_);
}

bool is_recorded_whole(const bp_frame& frame) noexcept { return !(frame.keys & kTapeKey); }

}  // namespace backplane

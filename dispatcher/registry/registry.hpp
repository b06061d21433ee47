// The run-time registry: ops, kernel rows and functionality keys, each with its owner.
//
// Reading is lock-free: an op's entry and its plan are reached through atomics, and freed once every call that
// could see them has ended: data read under a CallGuard stays valid. Writing happens under one lock. Kernel
// rows of a withdrawn plugin leave the plan; entries of its ops stay, marked. What a program's own definition replaces
// is freed once nothing reads it.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "memory/devices/device.hpp"
#include "record/evaluator.hpp"
#include "registry/batch_rule.hpp"
#include "registry/plan.hpp"

namespace backplane::core {

// Beside BP_OP_*, in OpEntry::flags: a composite with a batch rule of its own, which a level sees whole.
inline constexpr uint64_t kBatchedWhole = uint64_t{1} << 60;
// And one that makes tensors out of nothing, or out of metadata: of the innermost level, while one is active.
inline constexpr uint64_t kCreates = uint64_t{1} << 61;
// And one that gives a tensor's value without its history, through which the tensor can be written: on the tape it
// shares its memory.
inline constexpr uint64_t kDetaches = uint64_t{1} << 62;

// And one that adds to its first argument, linearly in all that it adds, if its last argument, a bool, is true:
// op(x, …, true) = x + op(0, …, true).
inline constexpr uint64_t kAddsToFirst = uint64_t{1} << 59;

// And one with an argument whose cotangent may be zero but for a part of it: it is a view, or a formula adds to zeros.
inline constexpr uint64_t kPartialGradient = uint64_t{1} << 58;

// And those whose calls a block of autocast casts, to its dtype or to float32.
// Bit 57 is that of ordered_ops.hpp.
inline constexpr uint64_t kAutocastHalf = uint64_t{1} << 54;
inline constexpr uint64_t kAutocastWide = uint64_t{1} << 55;

// How an op is differentiated, in either mode. Computed once, at registration.
enum class Derivative : uint8_t { kFormulas, kDecompose, kNone };

struct OpEntry {
  // Read by every call, and therefore side by side. A withdrawn op's plan has no fast rows that take anything.
  std::unique_ptr<OpRecord> record;
  std::atomic<const Plan*> current_plan{nullptr};
  uint64_t flags = 0;  // BP_OP_*, and those above
  int32_t n_args = 0;
  int32_t n_results = 0;
  FastEdges edges;  // of its fast path
  FastPath fast_path = FastPath::kNone;
  std::atomic<bool> withdrawn{false};
  const Plan& plan() const { return *current_plan.load(std::memory_order_acquire); }

  uint32_t handle = 0;
  mutable std::atomic<bool> host_fallback_reported{false}, batch_loop_reported{false};
  PluginRecord* owner = nullptr;
  const bp_formula* decompose = nullptr;
  Derivative derivative = Derivative::kNone;
  Derivative forward = Derivative::kNone;
  BatchRule batch;
  std::vector<const bp_formula*> vjp_of_arg;  // per argument; nullptr: none is stated
  std::vector<const bp_formula*> jvp_of_arg;
  FreeNames reads[8];  // what the formulas read together, by the mask of the arguments needed; of up to 3 arguments
  std::vector<std::unique_ptr<KernelRow>> rows;  // all ever registered; under the registry's lock
  std::shared_ptr<void> kept;                    // what the record's functions read, where the registering side asks
  std::atomic<uint32_t> holds{0};                // references from hold_op_def
  bool lasting = false;                          // others may point into it for as long as the process lives
  ~OpEntry() { delete current_plan.load(std::memory_order_relaxed); }
};

// What the VJP formulas of the needed arguments read together.
FreeNames formulas_read(const OpEntry& op, uint64_t needs);

// What a layer above computes of each op when it is registered, and keeps in its entry. Added by static initialisers,
// before the first op.
using ResolveOp = void (*)(OpEntry& entry);
void add_resolver(ResolveOp resolve);

// Entries by handle, in one flat array, so a look-up is one load. Only its used pages take memory.
inline constexpr uint32_t kMaxOps = 1 << 18;
extern std::atomic<OpEntry*> op_slots[kMaxOps];

// nullptr for a handle that was never given out.
inline OpEntry* op_entry(uint32_t handle) noexcept {
  return handle < kMaxOps ? op_slots[handle].load(std::memory_order_acquire) : nullptr;
}
[[noreturn]] void fail_entry(uint32_t handle);
// Throws for unknown and withdrawn ops.
inline OpEntry& checked_entry(uint32_t handle) {
  OpEntry* entry = op_entry(handle);
  if (!entry || entry->withdrawn.load(std::memory_order_acquire)) [[unlikely]]
    fail_entry(handle);
  return *entry;
}
uint32_t op_count() noexcept;
uint32_t find_op_loaded(std::string_view name) noexcept;  // without opening plugins
void link_entry(OpEntry& entry);                          // links the record's formulas once

// Ops that the core itself needs, found by the tag `role:NAME` of their entries, so that the core names none.
enum class Role : uint8_t {
  kAdd,
  kFull,
  kCopy,
  kCast,
  kExpand,
  kPermute,
  kReshape,
  kSelect,
  kConcat,
  kSum,
  kReverseConstant,
  kCount
};
OpEntry& role_op(Role role);  // throws where no entry has the role

// Each verifies, copies and throws Error; a duplicate names both owners. They run under the
// registry's lock, which the loader does not hold.
uint32_t register_op(PluginRecord* owner, const bp_op_def& op);
uint32_t register_backend(PluginRecord* owner, const bp_backend_def& backend);

}  // namespace backplane::core

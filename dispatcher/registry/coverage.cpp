// What the registry holds for an op on each backend, and for batching, as tables for tools.
#include "backplane/op.hpp"
#include "memory/process/epoch.hpp"
#include "registry/registry.hpp"

namespace backplane {

using namespace core;

namespace {

const char* rule_on(const OpEntry& entry, const BackendRecord& backend) {
  static constexpr const char* kNames[] = {"view", "function", "decomposition", "host fallback", "none"};
  const Plan& plan = entry.plan();
  if (entry.flags & BP_OP_COMPOSITE) return "decomposition";
  if (backend.index >= plan.n_devices) return "none";
  const DeviceSlot& slot = plan.devices[backend.index];
  const bool kernel = !slot.rows.empty() && slot.otherwise > DeviceRule::kFunction;
  return kernel ? "kernel" : kNames[static_cast<size_t>(slot.otherwise)];
}

}  // namespace

const char* batch_rule(OpHandle op) {
  static constexpr const char* kNames[] = {"stated",   "derived", "decomposition", "loop",
                                           "creation", "refused", "missing"};
  CallGuard guard;
  const OpEntry& entry = checked_entry(op);
  return entry.flags & BP_OP_HIGHER_ORDER ? "function" : kNames[static_cast<size_t>(entry.batch.kind)];
}

std::vector<BackendRule> backend_rules(OpHandle op) {
  CallGuard guard;  // it reads the rows as a call does
  const OpEntry& entry = checked_entry(op);
  std::vector<BackendRule> rules;
  for (uint32_t i = 0; i < backend_count(); ++i)
    if (const BackendRecord& backend = backend_at(i); !backend.withdrawn)
      rules.push_back({backend.name, rule_on(entry, backend)});
  return rules;
}

}  // namespace backplane

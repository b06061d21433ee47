#include "registry/registry_state.hpp"

#include <utility>

// The records that codegen derived from ops.yaml.
extern "C" {
extern const bp_op_def* const bp_ops[];
extern const uint32_t bp_op_count;
}

namespace backplane::core {

constinit Tables tables;

namespace {

void register_built_ins() {
  BP_CHECK(handlers.device && handlers.function && key_at(63) && key_at(62), INTERNAL,
           "an op was asked for before the library's static initialisers ran");
  for (uint32_t i = 0; i < bp_op_count; ++i) register_op(core_plugin(), *bp_ops[i]);
}

}  // namespace

Registry& registry() {
  // Never destroyed: calls may come from static destructors of the program.
  static Registry* instance = [] {
    auto* made = new Registry;
    made->lock.enlist(LockRank::kRegistry);
    return made;
  }();
  return *instance;
}

// Before anybody can fork: a child could not end what another thread has begun.
[[gnu::constructor]] static void make_registry() {
  registry();
  retired();
}

Registry& ready_registry() {
  Registry& r = registry();
  if (r.has_built_ins.load(std::memory_order_acquire)) [[likely]]
    return r;
  std::lock_guard guard(r.lock);
  if (!std::exchange(r.making_built_ins, true)) {
    register_built_ins();
    r.has_built_ins.store(true, std::memory_order_release);
  }
  return r;
}

Retired& retired() {
  static Retired& all = *new Retired;
  return all;
}

}  // namespace backplane::core

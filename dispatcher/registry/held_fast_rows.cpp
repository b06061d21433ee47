#include "registry/held_fast_rows.hpp"

#include "registry/registry_state.hpp"
#include "registry/withdrawal.hpp"

namespace backplane::core {
namespace {

uint32_t holders = 0;  // under the registry's lock

}  // namespace

bool fast_rows_are_held() noexcept { return holders > 0; }

void hold_fast_rows_back(bool held) {
  {
    std::lock_guard guard(ready_registry().lock);
    const bool before = fast_rows_are_held();
    holders += held ? 1u : ~0u;
    if (before != fast_rows_are_held()) rebuild_all_plans();
  }
  reclaim_replaced();
}

}  // namespace backplane::core

#include "registry/row_targets.hpp"

#include <map>
#include <string_view>

#include "memory/devices/device.hpp"
#include "registry/registry_state.hpp"

namespace backplane::core {
namespace {

bool is_registered(std::string_view backend) {
  constexpr std::string_view kKey = "key:";
  if (backend == "*") return true;
  if (!backend.starts_with(kKey)) return find_backend(backend) != nullptr;
  const KeyRecord* key = find_key(backend.substr(kKey.size()));
  return key && !key->withdrawn;
}

}  // namespace

std::vector<RowTarget> row_targets(const PluginRecord& owner) {
  std::map<std::string, RowTarget> found;
  std::lock_guard guard(ready_registry().lock);
  for (uint32_t i = 0; i < op_count(); ++i)
    for (const auto& row : op_entry(i)->rows) {
      if (row->owner != &owner || row->withdrawn) continue;
      const auto [place, first] = found.try_emplace(row->backend, RowTarget{row->backend, row->op, 0, false});
      if (first) place->second.registered = is_registered(row->backend);
      ++place->second.rows;
    }
  std::vector<RowTarget> targets;
  for (auto& [name, target] : found) targets.push_back(std::move(target));
  return targets;
}

}  // namespace backplane::core

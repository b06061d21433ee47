// Which backends and keys a plugin's kernel rows are for, for reports.
#pragma once

#include <string>
#include <vector>

#include "memory/process/plugin_record.hpp"

namespace backplane::core {

struct RowTarget {
  std::string backend;  // as the rows name it: "acme", "key:profile", "*"
  std::string op;       // of the first such row
  size_t rows;
  bool registered;  // there is such a backend or key, so that calls reach the rows
};

// In the order of the names. Takes the registry's lock.
std::vector<RowTarget> row_targets(const PluginRecord& owner);

}  // namespace backplane::core

// A plugin that is known by its manifest. Entries are guarded by lifecycle_lock and never removed.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backplane/error.hpp"
#include "backplane/plugins.hpp"
#include "loader/manifest.hpp"

namespace backplane::loader {

struct Found {
  // kOpened for good, even after an unload: what a user unloads comes back only when a user loads it.
  enum class State : uint8_t { kFound, kOpening, kOpened, kRefused };
  Manifest manifest;
  State state = State::kFound;
  std::string why;  // of a refusal
  bp_status code = BP_ERROR_VERSION;
};

// Searches the folders at the first call.
std::vector<std::unique_ptr<Found>>& found_plugins();
// The entry of a file that was loaded by its path.
void mark_opened(const std::string& real_file);

}  // namespace backplane::loader

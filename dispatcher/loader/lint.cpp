// `backplane lint`: a plugin's file, then its manifest, then its table and its registrations.
#include "backplane/plugins.hpp"

#include <algorithm>
#include <filesystem>
#include <optional>

#include "loader/discovery.hpp"
#include "loader/library.hpp"
#include "loader/lint_file.hpp"
#include "loader/load.hpp"
#include "loader/manifest.hpp"
#include "loader/records.hpp"
#include "memory/process/plugin_finder.hpp"
#include "registry/row_targets.hpp"

namespace backplane {
namespace {

namespace fs = std::filesystem;
using Findings = std::vector<LintFinding>;
using loader::Manifest;
using enum LintLevel;

bool contains(const std::vector<std::string>& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// The registrations of a plugin.
struct Contents {
  std::string name, version;
  std::vector<std::string> backends, ops;
  std::vector<core::RowTarget> rows;
  bool stops = false;
  std::string why_kept;  // its registration could not be taken back
};

Contents contents_of(const core::PluginRecord& record) {
  return {
      record.name, record.version, record.backends, record.ops, core::row_targets(record), record.table.stop != nullptr,
      ""};
}

// Registered for as long as it takes to look, unless it is loaded already. Throws the refusal.
Contents look_inside(const std::string& path) {
  std::error_code error;
  {
    std::lock_guard lock(loader::lifecycle_lock());
    const core::PluginRecord* known = loader::record_at_path(fs::canonical(path, error).string());
    if (known && known->state == loader::State::kLoaded) return contents_of(*known);
  }
  const core::PluginRecord& record = loader::load(path);
  Contents found;
  {
    std::lock_guard lock(loader::lifecycle_lock());
    found = contents_of(record);
  }
  try {
    unload_plugin(found.name);
  } catch (const Error& refusal) {
    found.why_kept = refusal.what();
  }
  return found;
}

void lint_names(const char* kind, const std::vector<std::string>& named, const std::vector<std::string>& registered,
                Findings& out) {
  for (const std::string& name : named)
    if (!contains(registered, name))
      out.push_back(
          {kError, std::string("its manifest names the ") + kind + " \"" + name + "\", which it does not register",
           "a program that needs it loads the file without use, and another plugin that provides it is refused",
           "take the name out of the manifest, or register it"});
}

void lint_rows(const Manifest* manifest, const Contents& found, Findings& out) {
  const std::vector<std::string> known = core::plugin_finder.known_backends();
  for (const core::RowTarget& target : found.rows) {
    const bool own = contains(found.backends, target.backend);
    const bool for_backend = target.backend != "*" && !target.backend.starts_with("key:");
    const std::string rows = std::to_string(target.rows) + " of its rows (the first: " + target.op + ")";
    if (!target.registered && !contains(known, target.backend))
      out.push_back({kWarning, rows + " are for \"" + target.backend + "\", which no plugin registers here",
                     "they are never called", "correct the name, or install the plugin that brings it"});
    if (manifest && for_backend && !own && !contains(manifest->kernels_for, target.backend))
      out.push_back({kWarning,
                     rows + " are for \"" + target.backend + "\", which its manifest does not name in \"kernels_for\"",
                     "the file is not opened with that backend, so the rows are missing until a program loads it",
                     "add the name to \"kernels_for\""});
  }
  if (!manifest) return;
  for (const std::string& backend : manifest->kernels_for)
    if (std::none_of(found.rows.begin(), found.rows.end(), [&](const auto& row) { return row.backend == backend; }))
      out.push_back({kWarning,
                     "its manifest names \"" + backend + "\" in \"kernels_for\", but no row of it is for that backend",
                     "the file is opened with that backend without use", "take the name out"});
}

void lint_contents(const std::string& path, const Manifest* manifest, Findings& out) {
  Contents found;
  try {
    found = look_inside(path);
  } catch (const Error& error) {
    out.push_back({kError, error.what(), "", ""});
    loader::lint_libraries(path, out);
    return;
  }
  if (!found.why_kept.empty())
    out.push_back({kWarning, "it does not unload once it is registered: " + found.why_kept, "", ""});
  if (found.version.empty())
    out.push_back({kWarning, "its table gives no version", "reports cannot say which release is at fault",
                   "fill bp_plugin::version"});
  if (!found.stops)
    for (LintFinding& finding : out)
      if (finding.text == loader::kCanStartThreads)
        finding.level = kWarning, finding.text += ", but it does not define stop";
  lint_rows(manifest, found, out);
  if (!manifest) return;
  lint_names("backend", manifest->backends, found.backends, out);
  lint_names("op", manifest->ops, found.ops, out);
  if (manifest->backends.empty() && manifest->ops.empty() && manifest->kernels_for.empty())
    out.push_back({kWarning, "its manifest names no backend, op or kernels", "nothing opens the file but load_plugin",
                   "name its backends and ops, as backplane_add_plugin() does"});
}

// The manifest beside the file; none where that is missing or unusable, with a finding.
std::optional<Manifest> lint_manifest(const std::string& path, Findings& out) {
  const fs::path place = fs::path(path).replace_extension().concat(loader::kManifestSuffix);
  std::error_code error;
  if (!fs::exists(place, error)) {
    out.push_back({kWarning, "it has no manifest " + place.string(),
                   "so a search does not find it; it can only be loaded by its path",
                   "write one (docs/reference/manifest.md), as backplane_add_plugin() does"});
    return std::nullopt;
  }
  try {
    Manifest manifest = loader::read_manifest(place.string());
    if (fs::path(manifest.file).filename() != fs::path(path).filename())
      out.push_back({kError, "its manifest describes the file " + manifest.file, "", "correct \"file\" there"});
    return manifest;
  } catch (const Error& failure) {
    out.push_back({kError, failure.what(), "the plugin is refused", "correct the manifest"});
    return std::nullopt;
  }
}

// What the table and the manifest both say. The file is opened and asked, and nothing registered.
void lint_table(const std::string& path, const Manifest& manifest, Findings& out) {
  try {
    const loader::Library library = loader::open_library(path);
    if (manifest.contract_minor != library.table.needs_minor)
      out.push_back({kWarning,
                     "its manifest asks for contract minor " + std::to_string(manifest.contract_minor) +
                         " and its table for " + std::to_string(library.table.needs_minor),
                     "hosts between the two refuse it late, or without need", "write the table's into the manifest"});
    loader::close_library(library.handle, path);
  } catch (const Error&) {
    // The registration that follows is refused for the same reason, and reports it.
  }
}

}  // namespace

std::vector<LintFinding> lint_plugin(const std::string& path) {
  Findings out;
  const loader::ElfFile file = loader::read_elf(path);
  if (!file.problem.empty())
    return {
        {kError, "it " + file.problem, "", "build it with backplane_add_plugin(), or as a shared object (-shared)"}};
  const std::optional<Manifest> manifest = lint_manifest(path, out);
  loader::lint_symbols(file, out);
  loader::lint_traits(path, manifest ? manifest->cpu_features : std::vector<std::string>{}, out);
  if (manifest) lint_table(path, *manifest, out);
  lint_contents(path, manifest ? &*manifest : nullptr, out);
  std::stable_sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.level > b.level; });
  return out;
}

}  // namespace backplane

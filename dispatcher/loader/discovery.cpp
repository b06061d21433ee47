// The list of found plugins, by manifest, and what opens them. See discovery.hpp; locks as in lifecycle.hpp.
#include "loader/discovery.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "core/plugin_finder.hpp"
#include "loader/found.hpp"
#include "loader/lifecycle.hpp"

namespace backplane::loader {
namespace {

namespace fs = std::filesystem;

struct Discovery {
  std::vector<std::unique_ptr<Found>> found;
  std::vector<PluginFolder> folders;
  bool searched = false;
};
Discovery& discovery() {
  static Discovery& instance = *new Discovery;
  return instance;
}

// The folder of the file that holds this very code: libbackplane.so, or a test that links its objects.
fs::path own_folder() {
  static const char anchor = 0;
  Dl_info info{};
  if (dladdr(&anchor, &info) == 0 || !info.dli_fname) return {};
  std::error_code error;
  return fs::canonical(info.dli_fname, error).parent_path();
}

// A name counts once: the first found is the one that opens.
void check_name_is_new(Found& entry) {
  for (const auto& earlier : discovery().found)
    if (earlier->state != Found::State::kRefused && earlier->manifest.name == entry.manifest.name) {
      entry.state = Found::State::kRefused;
      entry.why = "its name \"" + entry.manifest.name + "\" is that of " + earlier->manifest.path + ", found earlier";
      return;
    }
}

void add_manifest(const std::string& path) {
  for (const auto& known : discovery().found)
    if (known->manifest.path == path) return;
  auto entry = std::make_unique<Found>();
  try {
    entry->manifest = read_manifest(path);
    entry->why = why_unusable(entry->manifest);
    if (!entry->why.empty()) entry->state = Found::State::kRefused;
    check_name_is_new(*entry);
  } catch (const Error& error) {
    entry->manifest.path = path;
    entry->manifest.name = fs::path(path).filename().string();
    entry->manifest.name.resize(entry->manifest.name.size() - std::string_view(kManifestSuffix).size());
    entry->state = Found::State::kRefused;
    entry->why = error.what();
  }
  discovery().found.push_back(std::move(entry));
}

void search_folder(const std::string& folder) {
  const std::vector<std::string> manifests = manifests_in(folder);
  discovery().folders.push_back({folder, ""});
  for (const std::string& path : manifests) add_manifest(path);
}

void search_if_there(const std::string& folder) {
  try {
    search_folder(folder);
  } catch (const Error& error) {
    discovery().folders.push_back({folder, error.what()});
  }
}

bool contains(const std::vector<std::string>& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// True when it was opened now. A refusal is kept in the entry.
bool open_entry(Found& entry) {
  if (entry.state != Found::State::kFound) return false;
  entry.state = Found::State::kOpening;
  try {
    const core::PluginRecord& record = load_under_lock(entry.manifest.file);
    entry.state = Found::State::kOpened;
    const std::vector<std::string> backends = record.backends;
    for (const std::string& backend : backends) core::open_plugins_with_kernels_for(backend);
    return true;
  } catch (const Error& error) {
    entry.state = Found::State::kRefused;
    entry.why = error.what();
    entry.code = error.code();
    return false;
  }
}

// Opens what `wanted` picks, with the lock held. By index, since a registration may add folders.
template <class Wanted>
bool open_all(Wanted wanted) {
  bool opened = false;
  for (size_t i = 0; i < found_plugins().size(); ++i)
    if (Found& entry = *found_plugins()[i]; wanted(entry.manifest)) opened = open_entry(entry) || opened;
  return opened;
}

// As open_all; throws the refusals where there is nothing else.
template <class Wanted>
bool open_or_explain(const char* kind, std::string_view name, Wanted wanted) {
  std::lock_guard lock(lifecycle_lock());
  if (open_all(wanted)) return true;
  std::string refusals;
  bp_status code = BP_ERROR_NOT_IMPLEMENTED;
  for (const auto& entry : found_plugins()) {
    if (!wanted(entry->manifest)) continue;
    if (entry->state != Found::State::kRefused) return false;
    refusals += "\n  " + entry->why;
    code = entry->code;
  }
  if (!refusals.empty()) detail::fail(code, kind, " ", name, ": each plugin that brings it is refused:", refusals);
  return false;
}

}  // namespace

std::vector<std::unique_ptr<Found>>& found_plugins() {
  Discovery& all = discovery();
  if (!all.searched) {
    all.searched = true;
    const char* paths = std::getenv("BACKPLANE_PLUGIN_PATH");
    for (std::string_view rest = paths ? paths : ""; !rest.empty();) {
      const size_t colon = std::min(rest.find(':'), rest.size());
      if (colon > 0) search_if_there(std::string(rest.substr(0, colon)));
      rest.remove_prefix(std::min(colon + 1, rest.size()));
    }
    search_if_there((own_folder() / "backplane/plugins").string());
  }
  return all.found;
}

void mark_opened(const std::string& real_file) {
  std::error_code error;
  for (const auto& entry : found_plugins())
    if (entry->state != Found::State::kOpening && fs::equivalent(entry->manifest.file, real_file, error))
      entry->state = Found::State::kOpened;
}

}  // namespace backplane::loader

namespace backplane::core {

using namespace loader;

void open_plugins_with_kernels_for(std::string_view backend) {
  std::lock_guard lock(lifecycle_lock());
  open_all([&](const Manifest& m) { return contains(m.kernels_for, backend); });
}

namespace {

bool open_plugin_for_backend(std::string_view backend) {
  return open_or_explain("backend", backend, [&](const Manifest& m) { return contains(m.backends, backend); });
}

bool open_plugin_for_op(std::string_view op) {
  return open_or_explain("op", op, [&](const Manifest& m) { return contains(m.ops, op); });
}

void open_host_plugin() {
  std::lock_guard lock(lifecycle_lock());
  if (open_all([](const Manifest& m) { return !m.host_backends.empty(); })) return;
  open_all([](const Manifest& m) { return m.host_backends.empty() && !m.backends.empty(); });
}

std::vector<std::string> known_backends() {
  std::lock_guard lock(lifecycle_lock());
  std::vector<std::string> names;
  const auto add = [&](const std::vector<std::string>& backends) {
    for (const std::string& backend : backends)
      if (!contains(names, backend)) names.push_back(backend);
  };
  for (const PluginRecord* record : all_records())
    if (record->state == State::kLoaded) add(record->backends);
  for (const auto& entry : found_plugins())
    if (entry->state == Found::State::kFound) add(entry->manifest.backends);
  return names;
}

[[gnu::constructor]] void register_finder() {
  plugin_finder = {open_plugin_for_backend, open_plugin_for_op, open_host_plugin, known_backends};
}

}  // namespace
}  // namespace backplane::core

namespace backplane {

void add_plugin_path(const std::string& folder) {
  std::lock_guard lock(loader::lifecycle_lock());
  loader::found_plugins();
  loader::search_folder(folder);
}

std::vector<PluginFolder> plugin_folders() {
  std::lock_guard lock(loader::lifecycle_lock());
  loader::found_plugins();
  return loader::discovery().folders;
}

}  // namespace backplane

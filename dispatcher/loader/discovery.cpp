// The list of found plugins, by manifest, and what opens them. See discovery.hpp; locks as in records.hpp.
#include "loader/discovery.hpp"

#include <algorithm>
#include <filesystem>

#include "backplane/log.hpp"
#include "loader/elf_symbols.hpp"
#include "loader/load.hpp"
#include "loader/records.hpp"
#include "loader/search_path.hpp"
#include "loader/trust.hpp"
#include "memory/process/plugin_finder.hpp"
#include "registry/registry.hpp"

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

bool contains(const std::vector<std::string>& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

std::string_view namespace_of(std::string_view op) { return op.substr(0, op.find("::")); }

// What two plugins may not both claim: a name, a backend, the namespace of an op. The claim that clashes, or "".
std::string clash(const Manifest& manifest, const std::string& name, const std::vector<std::string>& backends,
                  const std::vector<std::string>& ops) {
  if (manifest.name == name) return "its name \"" + name + "\"";
  for (const std::string& backend : manifest.backends)
    if (contains(backends, backend)) return "its backend \"" + backend + "\"";
  for (const std::string& op : manifest.ops)
    for (const std::string& other : ops)
      if (namespace_of(op) == namespace_of(other))
        return "the namespace of its op \"" + op + "\", which belongs to one plugin (one ops.yaml has all entries),";
  return "";
}

// A manifest without a shared object does not reserve a name.
std::string why_no_library(const std::string& file) {
  std::error_code error;
  if (!fs::is_regular_file(file, error)) return file + " is not a file";
  const ElfFile object = read_elf(file);
  return object.problem.empty() ? "" : file + " " + object.problem;
}

// A name counts once: who was found or loaded first keeps it.
std::string why_taken(const Manifest& manifest) {
  for (const auto& earlier : discovery().found) {
    if (earlier->state == Found::State::kRefused) continue;
    const Manifest& other = earlier->manifest;
    const std::string what = clash(manifest, other.name, other.backends, other.ops);
    if (what.empty()) continue;
    if (earlier->state != Found::State::kFound || (earlier->why = why_no_library(other.file)).empty())
      return what + " is that of " + other.path + ", found earlier";
    earlier->state = Found::State::kRefused;
  }
  std::error_code error;
  core::op_count();  // registers the core's own ops, where nothing has asked for one yet
  for (const core::PluginRecord* record : all_records()) {
    const bool own = record == core::core_plugin();
    if (!own && (record->state != State::kLoaded || fs::equivalent(record->path, manifest.file, error))) continue;
    if (std::string what = clash(manifest, record->name, record->backends, record->ops); !what.empty())
      return what + " is that of " + (own ? "backplane itself" : "the plugin loaded from " + record->path);
  }
  return "";
}

std::string why_refused(const std::string& folder, const Manifest& manifest) {
  std::string why = why_unusable(manifest);
  std::error_code error;
  if (why.empty() && fs::exists(manifest.file, error)) why = why_untrusted_in(folder, manifest.file);
  return why.empty() ? why_taken(manifest) : why;
}

void add_found(std::unique_ptr<Found> entry) {
  if (logs(LogTopic::kLoader))
    log_line(LogTopic::kLoader, "plugin " + entry->manifest.name +
                                    (entry->state == Found::State::kRefused ? ": refused: " + entry->why
                                                                            : ": found, " + entry->manifest.path));
  discovery().found.push_back(std::move(entry));
}

// A fault of one manifest is stored in its entry, so that it does not hide the others.
void add_manifest(const std::string& folder, const std::string& path) {
  for (const auto& known : discovery().found)
    if (known->manifest.path == path) return;
  auto entry = std::make_unique<Found>();
  try {
    const std::string why = why_untrusted_in(folder, path);
    BP_CHECK(why.empty(), VALUE, "manifest ", path, ": ", why);
    entry->manifest = read_manifest(path);
    entry->why = why_disabled(entry->manifest.name);
    if (entry->why.empty()) entry->why = why_refused(folder, entry->manifest);
    if (!entry->why.empty()) entry->state = Found::State::kRefused;
  } catch (const std::exception& error) {
    entry->manifest.path = path;
    entry->manifest.name = fs::path(path).filename().string();
    entry->manifest.name.resize(entry->manifest.name.size() - std::string_view(kManifestSuffix).size());
    entry->state = Found::State::kRefused;
    entry->why = error.what();
  }
  add_found(std::move(entry));
}

// A plugin's file without a manifest is not found. The report tells the user why.
void add_orphans(const std::string& folder) {
  std::error_code error, ignored;
  std::vector<std::string> files;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
    if (entry->path().extension() == ".so" && entry->is_regular_file(ignored)) files.push_back(entry->path().string());
  std::sort(files.begin(), files.end());
  for (const std::string& file : files) {
    const auto is_of = [&](const auto& known) { return fs::path(known->manifest.file) == fs::path(file); };
    const auto& found = discovery().found;
    const fs::path usual = fs::path(file).replace_extension().concat(kManifestSuffix);  // which may be a broken one
    if (fs::exists(usual, error) || std::any_of(found.begin(), found.end(), is_of)) continue;
    if (!read_elf(file).exports(BP_PLUGIN_QUERY_SYMBOL)) continue;
    auto entry = std::make_unique<Found>();
    entry->manifest.name = fs::path(file).stem().string();
    entry->manifest.file = file;
    entry->state = Found::State::kRefused;
    entry->why = file + " has no manifest, so it is not found; write " + usual.filename().string() +
                 " beside it (docs/reference/manifest.md), or load it by its path";
    add_found(std::move(entry));
  }
}

void search_folder(const std::string& folder) {
  const std::vector<std::string> manifests = manifests_in(folder);
  const std::string why = why_untrusted(folder);
  BP_CHECK(why.empty(), VALUE, "plugin folder ", folder, ": is not searched: ", why);
  if (logs(LogTopic::kLoader)) log_line(LogTopic::kLoader, "folder " + folder + ": searched");
  discovery().folders.push_back({folder, ""});
  for (const std::string& path : manifests) add_manifest(folder, path);
  add_orphans(folder);
}

void search_if_there(const std::string& folder) {
  try {
    search_folder(folder);
  } catch (const Error& error) {
    if (logs(LogTopic::kLoader)) log_line(LogTopic::kLoader, "folder " + folder + ": skipped: " + error.what());
    discovery().folders.push_back({folder, error.what()});
  }
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
    if (logs(LogTopic::kLoader))
      log_line(LogTopic::kLoader, "plugin " + entry.manifest.name + ": refused: " + entry.why);
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
    std::error_code error;
    for (const SearchFolder& folder : search_path())
      if (!folder.optional || fs::exists(folder.path, error)) search_if_there(folder.path);
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

void settle() { std::lock_guard lock(lifecycle_lock()); }

[[gnu::constructor]] void register_finder() {
  plugin_finder = {open_plugin_for_backend, open_plugin_for_op, open_host_plugin, settle, known_backends};
}

}  // namespace
}  // namespace backplane::core

namespace backplane {

void add_plugin_path(const std::string& folder) {
  std::lock_guard lock(loader::lifecycle_lock());
  loader::found_plugins();
  loader::search_folder(folder);
}

void offer_plugin_path(const std::string& folder) {
  std::lock_guard lock(loader::lifecycle_lock());
  loader::found_plugins();
  loader::search_if_there(folder);
}

std::vector<PluginFolder> plugin_folders() {
  std::lock_guard lock(loader::lifecycle_lock());
  loader::found_plugins();
  return loader::discovery().folders;
}

}  // namespace backplane

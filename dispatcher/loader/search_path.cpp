// Folders and names as the XDG Base Directory Specification 0.8 places them.
#include "loader/search_path.hpp"

#include <fnmatch.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "loader/trust.hpp"

namespace backplane::loader {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPlugins = "backplane/plugins";

std::string variable(const char* name) {
  const char* value = secure_getenv(name);
  return value ? value : "";
}

std::vector<std::string> split(const std::string& words) {
  std::vector<std::string> parts;
  for (std::string_view rest = words; !rest.empty();) {
    const size_t colon = std::min(rest.find(':'), rest.size());
    if (colon > 0) parts.emplace_back(rest.substr(0, colon));
    rest.remove_prefix(std::min(colon + 1, rest.size()));
  }
  return parts;
}

// The user's folder of that kind, or "". A path that is not absolute is ignored (the specification).
std::string user_folder(const char* name, const char* below_home) {
  if (const std::string stated = variable(name); stated.starts_with('/')) return stated;
  const std::string home = variable("HOME");
  return home.starts_with('/') ? (fs::path(home) / below_home).string() : "";
}

struct Disabled {
  std::string pattern, by;
};

std::vector<Disabled> read_disabled() {
  std::vector<Disabled> found;
  for (const std::string& pattern : split(variable("BACKPLANE_DISABLE_PLUGINS")))
    found.push_back({pattern, "BACKPLANE_DISABLE_PLUGINS"});
  const std::string folder = user_folder("XDG_CONFIG_HOME", ".config");
  if (folder.empty()) return found;
  const std::string path = (fs::path(folder) / "backplane/disabled_plugins").string();
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    line.erase(std::min(line.find('#'), line.size()));
    std::erase_if(line, [](char c) { return c == ' ' || c == '\t' || c == '\r'; });
    if (!line.empty()) found.push_back({line, path});
  }
  return found;
}

}  // namespace

std::vector<SearchFolder> search_path() {
  std::vector<SearchFolder> folders;
  const auto add = [&](const fs::path& folder, bool optional) {
    const std::string path = folder.string();
    if (std::none_of(folders.begin(), folders.end(), [&](const SearchFolder& known) { return known.path == path; }))
      folders.push_back({path, optional});
  };
  for (const std::string& folder : split(variable("BACKPLANE_PLUGIN_PATH"))) add(folder, false);
  add(own_file().parent_path() / kPlugins, false);
  if (const std::string home = user_folder("XDG_DATA_HOME", ".local/share"); !home.empty())
    add(fs::path(home) / kPlugins, true);
  const std::string stated = variable("XDG_DATA_DIRS");
  for (const std::string& folder : split(stated.empty() ? "/usr/local/share:/usr/share" : stated))
    if (folder.starts_with('/')) add(fs::path(folder) / kPlugins, true);
  for (const char* folder : {"/usr/local/lib", "/usr/lib"}) add(fs::path(folder) / kPlugins, true);
  return folders;
}

std::string why_disabled(const std::string& name) {
  static const std::vector<Disabled>& disabled = *new std::vector<Disabled>(read_disabled());
  for (const Disabled& each : disabled)
    if (fnmatch(each.pattern.c_str(), name.c_str(), 0) == 0)
      return "plugin \"" + name + "\" is disabled by \"" + each.pattern + "\" in " + each.by +
             "; take that out, or load the plugin by its path";
  return "";
}

}  // namespace backplane::loader

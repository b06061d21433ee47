// `backplane plugins` and `backplane lint`.
#include "cli/plugins.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "backplane/plugins.hpp"

namespace backplane::cli {
namespace {

std::string joined(const std::vector<std::string>& words) { return fmt::format("{}", fmt::join(words, " ")); }

void print_folders() {
  fmt::print("\nfolders searched, in this order:\n");
  for (const PluginFolder& folder : plugin_folders())
    fmt::print("  {}\n", folder.why.empty() ? folder.path : folder.why);
  fmt::print(
      "BACKPLANE_PLUGIN_PATH (separated by colons) adds folders before these; BACKPLANE_DISABLE_PLUGINS names "
      "plugins that are passed over.\n");
}

}  // namespace

int plugins(bool why) {
  const std::vector<PluginInfo> all = backplane::plugins();
  if (all.empty()) fmt::print("no plugin is found\n");
  size_t width = 4;
  for (const PluginInfo& plugin : all) width = std::max(width, plugin.name.size());
  for (const PluginInfo& plugin : all) {
    fmt::print("{:<{}}  {:<8}  backends: {:<12}  ops: {:<4} {}\n", plugin.name, width, plugin.state,
               plugin.backends.empty() ? "-" : joined(plugin.backends), plugin.ops.size(), plugin.path);
    if (why && !plugin.why.empty()) fmt::print("{:<{}}  {}\n", "", width, plugin.why);
    if (why && !plugin.waits_for.empty())
      fmt::print("{:<{}}  has kernel rows for {}, which no plugin brings: they are never called\n", "", width,
                 joined(plugin.waits_for));
  }
  if (why) print_folders();
  return 0;
}

int lint(const std::string& path) {
  static constexpr const char* kWords[] = {"note", "warning", "error"};
  bool good = true;
  for (const LintFinding& finding : lint_plugin(path)) {
    good = good && finding.level != LintLevel::kError;
    fmt::print("{}: {}: {}\n", path, kWords[static_cast<size_t>(finding.level)], finding.text);
    if (!finding.why.empty()) fmt::print("  why: {}\n", finding.why);
    if (!finding.fix.empty()) fmt::print("  Fix: {}\n", finding.fix);
  }
  if (good) fmt::print("{}: loads here\n", path);
  return good ? 0 : 1;
}

}  // namespace backplane::cli

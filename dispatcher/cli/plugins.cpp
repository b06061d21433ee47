// `backplane plugins` and `backplane lint`.
#include "cli/plugins.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

#include "backplane/plugins.hpp"

namespace backplane::cli {
namespace {

constexpr unsigned kLintSeconds = 60;  // for a plugin to be opened and registered

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
  if (all.empty()) fmt::print("no plugin was found\n");
  size_t width = 4;
  for (const PluginInfo& plugin : all) width = std::max(width, plugin.name.size());
  for (const PluginInfo& plugin : all) {
    fmt::print("{:<{}}  {:<8}  backends: {:<12}  ops: {:<4} {}\n", plugin.name, width, plugin.state,
               plugin.backends.empty() ? "-" : joined(plugin.backends), plugin.ops.size(), plugin.path);
    if (why && !plugin.why.empty()) fmt::print("{:<{}}  {}\n", "", width, plugin.why);
    if (why && !plugin.waits_for.empty())
      fmt::print("{:<{}}  has kernel rows for {}, which no plugin provides: they are never called\n", "", width,
                 joined(plugin.waits_for));
  }
  if (why) print_folders();
  return 0;
}

namespace {

int lint_here(const std::string& path) {
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

// Reports a child that was ended by a signal while it ran the plugin's code.
int report_ended(const std::string& path, int status) {
  const std::string how = !WIFSIGNALED(status) ? fmt::format("exit({})", WEXITSTATUS(status))
                          : WTERMSIG(status) == SIGALRM
                              ? fmt::format("SIGALRM, because it did not return within {} seconds", kLintSeconds)
                              : fmt::format("the signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)));
  fmt::print("{}: error: its code ended the process of lint by {}\n", path, how);
  fmt::print(
      "  why: loading it runs its initialisers, bp_plugin_query and register_all; a program that loads it ends so, "
      "too\n  Fix: run `backplane lint` in a debugger with `set follow-fork-mode child`, and correct what it stops "
      "in\n");
  return 1;
}

}  // namespace

int lint(const std::string& path) {
  int done[2];
  BP_CHECK(pipe2(done, O_CLOEXEC) == 0, INTERNAL, "lint: pipe2: ", strerror(errno));
  std::fflush(nullptr);
  const pid_t child = fork();
  BP_CHECK(child >= 0, INTERNAL, "lint: fork: ", strerror(errno));
  if (child == 0) {
    alarm(kLintSeconds);
    const int result = lint_here(path);
    std::fflush(nullptr);
    return write(done[1], "", 1) == 1 ? result : 1;
  }
  close(done[1]);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  char byte;
  const bool finished = read(done[0], &byte, 1) == 1;
  close(done[0]);
  // A library's end may crash after that, at exit.
  const bool refused = WIFEXITED(status) && WEXITSTATUS(status) != 0;
  return WIFEXITED(status) && (finished || refused) ? WEXITSTATUS(status) : report_ended(path, status);
}

}  // namespace backplane::cli

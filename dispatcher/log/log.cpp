#include "backplane/log.hpp"

#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "backplane/abi/host.h"

namespace backplane {
namespace {

constexpr std::string_view kTopics[] = {"dispatch", "plan", "guard", "fuse", "loader"};  // by bit
constexpr std::string_view kSeverities[] = {"debug", "info", "warning", "error"};        // by BP_LOG_*

struct Wanted {
  uint32_t topics = 0;
  int32_t severity = BP_LOG_WARNING;
};

bool add_word(std::string_view word, Wanted& wanted) {
  for (uint32_t bit = 0; bit < std::size(kTopics); ++bit)
    if (word == kTopics[bit]) return wanted.topics |= 1u << bit, true;
  for (int32_t severity = 0; severity <= BP_LOG_ERROR; ++severity)
    if (word == kSeverities[severity]) return wanted.severity = severity, true;
  return word.empty();
}

Wanted read_variable() {
  Wanted wanted;
  const char* text = std::getenv("BACKPLANE_LOG");
  for (std::string_view rest = text ? text : ""; !rest.empty();) {
    const size_t comma = rest.find(',');
    const std::string_view word = rest.substr(0, comma);
    rest = comma == std::string_view::npos ? "" : rest.substr(comma + 1);
    if (add_word(word, wanted)) continue;
    std::fprintf(
        stderr,
        "backplane: warning: BACKPLANE_LOG: found \"%.*s\", expected a comma-separated list of dispatch, plan, "
        "guard, fuse and loader, and at most one of debug, info, warning and error\n",
        static_cast<int>(word.size()), word.data());
  }
  return wanted;
}

// Read when first asked, which the initialisers of other files do.
const Wanted& wanted() {
  static const Wanted read = read_variable();
  return read;
}

}  // namespace

bool logs(LogTopic topic) noexcept { return wanted().topics & static_cast<uint32_t>(topic); }

void log_line(LogTopic topic, const std::string& text) {
  const auto bit = static_cast<uint32_t>(__builtin_ctz(static_cast<uint32_t>(topic)));
  std::fprintf(stderr, "backplane: %s: %s\n", kTopics[bit].data(), text.c_str());
}

int32_t log_severity() noexcept { return wanted().severity; }

}  // namespace backplane

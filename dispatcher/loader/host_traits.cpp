// The facts of this build and this processor that decide whether a plugin can be used.
#include "loader/host_traits.hpp"

#include <sstream>

#include "backplane/abi/base.h"

namespace backplane::loader {

#if defined(__SANITIZE_ADDRESS__)
const std::string_view kHostSanitizer = "address";
#elif defined(__SANITIZE_THREAD__)
const std::string_view kHostSanitizer = "thread";
#else
const std::string_view kHostSanitizer = "";
#endif

namespace {

struct CpuFeature {
  std::string_view name;
  bool (*present)();
};

// The compiler takes the names only as literals.
#define BP_CPU_FEATURE(name)                               \
  {                                                        \
    name, [] { return __builtin_cpu_supports(name) != 0; } \
  }
constexpr CpuFeature kCpuFeatures[] = {
#if defined(__x86_64__)
    BP_CPU_FEATURE("sse4.1"),   BP_CPU_FEATURE("sse4.2"),     BP_CPU_FEATURE("popcnt"),   BP_CPU_FEATURE("avx"),
    BP_CPU_FEATURE("avx2"),     BP_CPU_FEATURE("fma"),        BP_CPU_FEATURE("bmi"),      BP_CPU_FEATURE("bmi2"),
    BP_CPU_FEATURE("f16c"),     BP_CPU_FEATURE("avx512f"),    BP_CPU_FEATURE("avx512bw"), BP_CPU_FEATURE("avx512dq"),
    BP_CPU_FEATURE("avx512vl"), BP_CPU_FEATURE("avx512vnni"),
#elif defined(__aarch64__)
    {"neon", [] { return true; }},  // part of the architecture
#endif
};
#undef BP_CPU_FEATURE

}  // namespace

std::string why_version_unusable(uint32_t major, uint32_t needs_minor) {
  std::ostringstream why;
  if (major != BP_ABI_MAJOR)
    why << "it was built for contract major " << major << " and this host has major " << BP_ABI_MAJOR
        << "; build it again against this host's headers";
  else if (needs_minor > BP_ABI_MINOR)
    why << "it needs contract " << major << "." << needs_minor << " or newer and this host has " << BP_ABI_MAJOR << "."
        << BP_ABI_MINOR << "; update backplane or take an older release of the plugin";
  return why.str();
}

std::string why_cpu_feature_missing(std::string_view feature) {
  std::ostringstream why;
  for (const CpuFeature& known : kCpuFeatures)
    if (known.name == feature) {
      if (!known.present()) why << "it needs the processor feature " << feature << ", which this processor lacks";
      return why.str();
    }
  why << "it needs the processor feature \"" << feature << "\", which this host does not know; known:";
  for (const CpuFeature& known : kCpuFeatures) why << " " << known.name;
  return why.str();
}

std::string why_sanitizer_unusable(std::string_view sanitizers) {
  std::string_view plugins_sanitizer;
  for (std::string_view word : {"address", "thread"})
    if (sanitizers.find(word) != std::string_view::npos) plugins_sanitizer = word;
  if (plugins_sanitizer.empty() || plugins_sanitizer == kHostSanitizer) return "";
  std::ostringstream why;
  why << "it was built with the " << plugins_sanitizer << " sanitizer and this host "
      << (kHostSanitizer.empty() ? "without one" : "with the " + std::string(kHostSanitizer) + " sanitizer")
      << "; build both alike";
  return why.str();
}

}  // namespace backplane::loader

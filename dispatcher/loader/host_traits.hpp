// What this host is, held against what a plugin asks for: contract version, processor, sanitizer.
//
// Pure functions. Each returns the reason why the plugin cannot be used, as the end of a sentence about it, or "".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace backplane::loader {

std::string why_version_unusable(uint32_t major, uint32_t needs_minor);
std::string why_cpu_feature_missing(std::string_view feature);
// As the compiler's option takes them: "address,undefined". Those whose run-time library a plugin brings along pass.
std::string why_sanitizer_unusable(std::string_view sanitizers);

// The sanitizer that this library was built with: "", "address" or "thread". Such builds never close a plugin, whose
// symbols their reports need.
extern const std::string_view kHostSanitizer;

}  // namespace backplane::loader

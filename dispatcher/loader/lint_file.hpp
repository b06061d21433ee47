// The findings of `backplane lint` in a plugin's file before its code runs: symbols, and requests to the system's
// loader.
#pragma once

#include <string>
#include <vector>

#include "backplane/plugins.hpp"
#include "loader/elf_symbols.hpp"

namespace backplane::loader {

// The finding that becomes a warning if the plugin defines no stop.
inline constexpr const char* kCanStartThreads = "it can start threads";

// `file` is what read_elf gave for the path, without a problem.
void lint_symbols(const ElfFile& file, std::vector<LintFinding>& out);
// `cpu_features`: of its manifest.
void lint_traits(const std::string& path, const std::vector<std::string>& cpu_features, std::vector<LintFinding>& out);
// The libraries without which the file does not open and which are not here. Opens those that are here for a moment.
void lint_libraries(const std::string& path, std::vector<LintFinding>& out);

}  // namespace backplane::loader

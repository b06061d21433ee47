// Findings of a file's tables. Each states the finding, why it matters, and how to avoid it.
#include "loader/lint_file.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <filesystem>
#include <string_view>

#include "backplane/abi/plugin.h"
#include "loader/elf_traits.hpp"
#include "loader/trust.hpp"

namespace backplane::loader {
namespace {

namespace fs = std::filesystem;
using Findings = std::vector<LintFinding>;
using enum LintLevel;

constexpr size_t kNamesShown = 3;

// C functions of the host (bp_...) and C++ ones of namespace backplane, mangled.
bool is_ours(const std::string& symbol) {
  return symbol.starts_with("bp_") || symbol.find("9backplane") != std::string::npos;
}

bool is_any_of(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// "a, b, c and 5 more".
std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (size_t i = 0; i < std::min(names.size(), kNamesShown); ++i) text += (i ? ", " : "") + names[i];
  if (names.size() > kNamesShown) text += " and " + std::to_string(names.size() - kNamesShown) + " more";
  return text;
}

struct Symbols {
  std::vector<std::string> exported, unique, ours, ending, imported;
};

Symbols sorted_out(const ElfFile& file) {
  Symbols all;
  for (const DynamicSymbol& symbol : file.symbols) {
    if (symbol.defined) {
      if (symbol.name != BP_PLUGIN_QUERY_SYMBOL) all.exported.push_back(symbol.name);
      if (symbol.unique) all.unique.push_back(symbol.name);
      continue;
    }
    all.imported.push_back(symbol.name);
    if (is_ours(symbol.name)) all.ours.push_back(symbol.name);
    if (is_any_of(symbol.name, {"exit", "_exit", "_Exit", "quick_exit", "abort", "__assert_fail"}))
      all.ending.push_back(symbol.name);
  }
  return all;
}

bool starts_threads(const ElfFile& file) {
  return file.imports("pthread_create") || file.imports("thrd_create") ||
         std::any_of(file.symbols.begin(), file.symbols.end(), [](const DynamicSymbol& symbol) {
           return !symbol.defined && symbol.name.find("6thread15_M_start_thread") != std::string::npos;
         });
}

// The libraries of C and C++, which every system has.
bool is_run_time_library(std::string_view name) {
  constexpr std::string_view kKnown[] = {"libc.so",      "libm.so",     "libdl.so",  "librt.so",     "libpthread.so",
                                         "libstdc++.so", "libgcc_s.so", "libc++.so", "libc++abi.so", "ld-linux"};
  return std::any_of(std::begin(kKnown), std::end(kKnown), [&](auto known) { return name.starts_with(known); });
}

// The manifest's word for the feature that stands for a level of the architecture.
const char* feature_of(std::string_view instruction_sets) {
  if (instruction_sets == "x86-64-v2") return "sse4.2";
  if (instruction_sets == "x86-64-v3") return "avx2";
  return instruction_sets == "x86-64-v4" ? "avx512f" : nullptr;
}

void lint_folder_of_run_path(const std::string& path, const std::string& folder, Findings& out) {
  if (folder.starts_with("$ORIGIN") || folder.starts_with("${ORIGIN}")) return;
  if (!folder.starts_with('/')) {
    out.push_back({kError, "its run path holds \"" + folder + "\", which is no full path",
                   "libraries are searched in the working directory of the program, where other users may have put "
                   "a library of that name",
                   "link without it, or write $ORIGIN/" + folder});
    return;
  }
  std::error_code error;
  const std::string untrusted = fs::exists(folder, error) ? why_untrusted(folder) : "";
  out.push_back({untrusted.empty() ? kWarning : kError, "its run path holds the folder " + folder,
                 untrusted.empty() ? "that folder is this machine's: elsewhere the libraries in it are missing"
                                   : "its libraries run in every process that loads " + path + ": " + untrusted,
                 "set INSTALL_RPATH to $ORIGIN, or link with -Wl,-rpath,'$ORIGIN'"});
}

void lint_run_path(const std::string& path, const std::string& run_path, Findings& out) {
  std::string_view rest = run_path;
  while (!rest.empty()) {
    const size_t colon = std::min(rest.find(':'), rest.size());
    lint_folder_of_run_path(path, std::string(rest.substr(0, colon)), out);
    rest.remove_prefix(std::min(colon + 1, rest.size()));
  }
}

void lint_thread_locals(const ElfTraits& traits, Findings& out) {
  if (traits.static_thread_locals)
    out.push_back({kError,
                   "its thread-locals (" + std::to_string(traits.thread_local_bytes) +
                       " bytes) are of the model initial-exec or local-exec",
                   "they use space that a process reserves only at its start: once it is full, the file cannot be "
                   "opened, depending on earlier files",
                   "compile without -ftls-model=initial-exec, with -fPIC"});
  else if (traits.thread_local_bytes > 0)
    out.push_back(
        {kWarning, "it has " + std::to_string(traits.thread_local_bytes) + " bytes of thread-locals",
         "thread-locals of the host's threads outlive an unload, and one with a destructor keeps the file mapped for "
         "good",
         "keep such state in the context of the table or of the row"});
}

}  // namespace

void lint_symbols(const ElfFile& file, Findings& out) {
  const Symbols all = sorted_out(file);
  if (!file.exports(BP_PLUGIN_QUERY_SYMBOL))
    out.push_back({kError, "it does not export " BP_PLUGIN_QUERY_SYMBOL, "so it is not a plugin of backplane",
                   "build it with backplane_add_plugin(), or mark the function BP_EXPORT"});
  for (const std::string& name : all.ours)
    out.push_back({kError, "it imports " + name, "a plugin may call the host only through bp_host",
                   "call it through the host's table; do not link a library of backplane"});
  if (!all.exported.empty())
    out.push_back({kWarning,
                   "it exports " + std::to_string(all.exported.size()) +
                       " symbols besides " BP_PLUGIN_QUERY_SYMBOL " (" + listed(all.exported) + ")",
                   "they may replace symbols of the same names in other libraries, or be replaced by them",
                   "compile with -fvisibility=hidden, and link with the version script plugin.map"});
  if (!all.unique.empty())
    out.push_back(
        {kWarning,
         std::to_string(all.unique.size()) + " of its symbols are unique in a process (" + listed(all.unique) + ")",
         "the system keeps the file mapped for good, so an unload cannot close it",
         "compile with -fno-gnu-unique, and link with the version script plugin.map"});
  if (!all.ending.empty())
    out.push_back({kWarning, "it imports " + listed(all.ending), "a call of it ends the user's process",
                   "return a status with a message (set_error); compile with -DNDEBUG if it comes from assert"});
  out.push_back({kNote,
                 "it exports " + std::to_string(all.exported.size() + file.exports(BP_PLUGIN_QUERY_SYMBOL)) +
                     " and imports " + std::to_string(all.imported.size()) + " symbols",
                 "", ""});
  if (starts_threads(file))
    out.push_back({kNote, kCanStartThreads, "a thread that runs when the file is closed ends the process",
                   "end them in bp_plugin::stop"});
}

void lint_traits(const std::string& path, const std::vector<std::string>& cpu_features, Findings& out) {
  const ElfTraits traits = read_traits(path);
  if (traits.text_relocations)
    out.push_back({kWarning, "it has text relocations",
                   "opening it writes to its code: hardened systems refuse that, and processes cannot share the pages",
                   "compile all of it, static libraries too, with -fPIC"});
  if (traits.executable_stack)
    out.push_back({kWarning, "it asks for an executable stack",
                   "that holds for the whole process; the C library refuses such files from 2.41 on, hardened systems "
                   "always",
                   "link with -Wl,-z,noexecstack; in assembler: .section .note.GNU-stack,\"\",@progbits"});
  if (traits.writable_code)
    out.push_back({kWarning, "a segment of it is writable and executable", "hardened systems refuse that",
                   "link without -N and without a linker script of your own"});
  if (traits.never_closed)
    out.push_back(
        {kWarning, "it is marked as never to be closed", "an unload leaves it mapped", "link without -Wl,-z,nodelete"});
  if (traits.constructors > 0)
    out.push_back({kWarning,
                   std::to_string(traits.constructors) + " functions of it run as it is opened (static objects)",
                   "the host cannot catch a failure there, and reading the table must not have side effects",
                   "make such objects in register_all, or constexpr"});
  lint_thread_locals(traits, out);
  lint_run_path(path, traits.run_path, out);
  const char* feature = feature_of(traits.instruction_sets);
  if (feature && std::find(cpu_features.begin(), cpu_features.end(), feature) == cpu_features.end())
    out.push_back({kError,
                   "it is marked as needing " + traits.instruction_sets +
                       ", and its manifest's \"cpu_features\" lacks \"" + feature + "\"",
                   "on a processor without it a kernel would end the process", "name the feature in the manifest"});
  std::vector<std::string> libraries;
  for (const std::string& name : traits.needed)
    if (!is_run_time_library(name)) libraries.push_back(name);
  if (!libraries.empty())
    out.push_back({kNote, "it needs " + listed(libraries),
                   "where one of them is missing, as a driver's is on a machine without the device, the file cannot be "
                   "opened at all",
                   "open a driver's library with dlopen in device_count, and give a message where it is missing "
                   "(docs/guides/backend.md, \"A driver that may be missing\", has the code)"});
}

void lint_libraries(const std::string& path, Findings& out) {
  const ElfTraits traits = read_traits(path);
  const fs::path beside = fs::path(path).parent_path();
  for (const std::string& name : traits.needed) {
    std::error_code error;
    if (fs::exists(beside / name, error) && traits.run_path.find("ORIGIN") != std::string::npos) continue;
    if (void* handle = dlopen(name.c_str(), RTLD_LAZY | RTLD_LOCAL)) {
      dlclose(handle);
      continue;
    }
    out.push_back({kError, "it needs " + name + ", which this system does not find", "so the file cannot be opened",
                   "install that library, put it beside the file and link with -Wl,-rpath,'$ORIGIN', or, of a driver, "
                   "open it with dlopen in device_count (docs/guides/backend.md, \"A driver that may be missing\")"});
  }
}

}  // namespace backplane::loader

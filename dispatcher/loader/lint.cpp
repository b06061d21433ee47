// What `backplane lint` says of a plugin's file: its symbols, its manifest, its table.
#include "backplane/plugins.hpp"

#include <filesystem>

#include "backplane/abi/plugin.h"
#include "loader/elf_symbols.hpp"
#include "loader/library.hpp"
#include "loader/manifest.hpp"

namespace backplane {
namespace {

namespace fs = std::filesystem;
using Findings = std::vector<LintFinding>;

// C functions of the host (bp_...) and C++ ones of namespace backplane, mangled.
bool is_ours(const std::string& symbol) {
  return symbol.starts_with("bp_") || symbol.find("9backplane") != std::string::npos;
}

void check_symbols(const loader::ElfFile& file, Findings& out) {
  if (!file.exports(BP_PLUGIN_QUERY_SYMBOL))
    out.push_back({true, "it does not export " BP_PLUGIN_QUERY_SYMBOL "; backplane_add_plugin() does"});
  size_t others = 0;
  std::string first, unique;
  for (const auto& symbol : file.symbols) {
    if (!symbol.defined && is_ours(symbol.name))
      out.push_back({true, "it imports " + symbol.name + "; a plugin reaches the host through bp_host alone"});
    if (symbol.defined && symbol.name != BP_PLUGIN_QUERY_SYMBOL && others++ == 0) first = symbol.name;
    if (symbol.defined && symbol.unique && unique.empty()) unique = symbol.name;
  }
  if (others > 0)
    out.push_back({false, "it exports " + std::to_string(others) + " symbols besides " BP_PLUGIN_QUERY_SYMBOL " (" +
                              first + "); link with the version script plugin.map"});
  if (!unique.empty())
    out.push_back({false, "the symbol " + unique +
                              " is unique in a process and keeps the file mapped; compile with "
                              "-fno-gnu-unique"});
}

void check_against(const loader::Manifest& manifest, const bp_plugin& table, Findings& out) {
  if (manifest.name != table.name)
    out.push_back({true, "its manifest gives the name \"" + manifest.name + "\" and its table \"" + table.name + "\""});
  if (manifest.contract_minor != table.needs_minor)
    out.push_back({false, "its manifest asks for contract minor " + std::to_string(manifest.contract_minor) +
                              " and its table for " + std::to_string(table.needs_minor)});
  if (manifest.backends.empty() && manifest.ops.empty() && manifest.kernels_for.empty())
    out.push_back({false, "its manifest names no backend, op or kernels, so it is opened only by load_plugin"});
}

void check_table(const std::string& path, const loader::Manifest* manifest, Findings& out) {
  try {
    const loader::Library library = loader::open_library(path);
    if (manifest) check_against(*manifest, library.table, out);
    if (!library.table.version || !*library.table.version) out.push_back({false, "its table gives no version"});
    loader::close_library(library.handle, path);
  } catch (const Error& error) {
    out.push_back({true, error.what()});
  }
}

}  // namespace

std::vector<LintFinding> lint_plugin(const std::string& path) {
  Findings out;
  const loader::ElfFile file = loader::read_elf(path);
  if (!file.problem.empty()) return {{true, "it " + file.problem}};
  check_symbols(file, out);
  const fs::path manifest_path = fs::path(path).replace_extension().concat(loader::kManifestSuffix);
  try {
    std::error_code error;
    if (!fs::exists(manifest_path, error)) {
      out.push_back(
          {false, "it has no manifest " + manifest_path.string() + ", so it is never found, only loaded by path"});
      check_table(path, nullptr, out);
    } else {
      const loader::Manifest manifest = loader::read_manifest(manifest_path.string());
      if (fs::path(manifest.file).filename() != fs::path(path).filename())
        out.push_back({true, "its manifest describes the file " + manifest.file});
      const std::string why = loader::why_unusable(manifest);
      if (!why.empty()) out.push_back({true, why});
      if (why.empty()) check_table(path, &manifest, out);
    }
  } catch (const Error& error) {
    out.push_back({true, error.what()});
  }
  return out;
}

}  // namespace backplane

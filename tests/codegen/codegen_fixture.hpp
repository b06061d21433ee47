// What the tests of codegen share: the base registry, one entry to try, and the report of its mistakes.
//
// `BACKPLANE_CODEGEN_TESTS` is the folder of these tests, from the build.
#pragma once

#include <fstream>
#include <iterator>
#include <string>

#include "check/compiled.hpp"
#include "cli/explain.hpp"
#include "schema/reader.hpp"

namespace backplane::codegen {

inline std::string read_text(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(stream), {});
}

inline std::string test_path(const std::string& name) { return std::string(BACKPLANE_CODEGEN_TESTS) + "/" + name; }

struct Checked {
  Diagnostics diagnostics;
  CompiledRegistry registry;
  std::string report() const { return diagnostics.render(); }
};

// Checks `text` as the file t.yaml, with the base registry imported unless `alone`.
inline Checked check_file(const std::string& text, bool alone = false) {
  Checked checked;
  std::vector<std::unique_ptr<RegistryFile>> files;
  files.push_back(read_registry_text("t.yaml", text, false, checked.diagnostics));
  if (!alone) files.push_back(read_registry(test_path("data/base.yaml"), true, checked.diagnostics));
  checked.registry = check(std::move(files), checked.diagnostics);
  return checked;
}

// An entry, whose lines are indented as one item of `ops`.
inline std::string in_file(const std::string& entry) { return "namespace: t\nops:\n" + entry; }

}  // namespace backplane::codegen

// The dynamic symbols of a shared object, read from its file: nothing of it runs.
//
// So a file that is not a plugin, or that was built with another sanitizer, is refused before its constructors could
// run. The file is not trusted: every offset is checked.
#pragma once

#include <string>
#include <vector>

namespace backplane::loader {

struct DynamicSymbol {
  std::string name;
  bool defined;  // else it is imported
  bool unique;   // STB_GNU_UNIQUE: pins the file in memory once it is opened
};

struct ElfFile {
  std::string problem;  // it is no shared object of this machine: the end of a sentence about it
  std::vector<DynamicSymbol> symbols;

  bool exports(const char* name) const;
  bool imports(const char* name) const;
  std::string sanitizer() const;  // "address", "thread" or ""
};

ElfFile read_elf(const std::string& path);

}  // namespace backplane::loader

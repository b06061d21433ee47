// Reads registry files into the model. Every mistake of form is reported; what can be read still is, so that one run
// finds them all.
#pragma once

#include <string>

#include "schema/model.hpp"

namespace backplane::codegen {

// Never nullptr; the file has no entries if it cannot be read. Included files are read with it, from paths
// beside `path`.
std::unique_ptr<RegistryFile> read_registry(const std::string& path, bool imported, Diagnostics& diagnostics);
std::unique_ptr<RegistryFile> read_registry_text(std::string path, std::string text, bool imported,
                                                 Diagnostics& diagnostics);

// Reads one value of an entry: the pieces of the reader that have files of their own.
class ValueReader {
 public:
  explicit ValueReader(Diagnostics& diagnostics) : diagnostics_(diagnostics) {}

  void error(const YamlNode& at, std::string message) { diagnostics_.error(at.location(), std::move(message)); }
  bool expect_map(const YamlNode& node, const std::string& what);
  bool expect_scalar(const YamlNode& node, const std::string& what);
  bool read_bool(const YamlNode& node, const std::string& what);
  bool read_int(const YamlNode& node, const std::string& what, int64_t& out);
  std::vector<Text> read_words(const YamlNode& node, const std::string& what);  // a word or a list of words
  WordMap read_word_map(const YamlNode& node, const std::string& what);
  Diagnostics& diagnostics() { return diagnostics_; }

 private:
  Diagnostics& diagnostics_;
};

void read_entry(ValueReader& reader, const YamlNode& node, Entry& entry);               // reader.cpp
void read_arguments(ValueReader& reader, const YamlNode& node, Entry& entry);           // read_arguments.cpp
void read_arguments(ValueReader& reader, const YamlNode& node, SharedNames& shared);    // read_arguments.cpp
void read_lets(ValueReader& reader, const YamlNode& node, Entry& entry);                // read_lets.cpp
void read_tables(ValueReader& reader, const YamlNode& node, SharedNames& shared);       // read_lets.cpp
void read_definitions(ValueReader& reader, const YamlNode& node, SharedNames& shared);  // read_lets.cpp
void read_dtypes(ValueReader& reader, const YamlNode* node, Entry& entry);              // read_dtypes.cpp
void read_rules(ValueReader& reader, const YamlNode& node, Entry& entry);               // read_rules.cpp
void read_scalar(ValueReader& reader, const YamlNode& node, Entry& entry);              // read_scalar.cpp
void read_rewrites(ValueReader& reader, const YamlNode& node, RegistryFile& file);      // read_rewrites.cpp
void read_faults(ValueReader& reader, const YamlNode& node, Entry& entry);              // read_facts.cpp
void read_region(ValueReader& reader, const YamlNode& node, Entry& entry);              // read_facts.cpp
void read_fuzz(ValueReader& reader, const YamlNode& node, Entry& entry);                // read_fuzz.cpp
void read_spellings(ValueReader& reader, const YamlNode& node, Entry& entry);           // read_spellings.cpp
void read_samples(ValueReader& reader, const YamlNode* samples, const YamlNode* large,
                  Entry& entry);  // read_samples.cpp

}  // namespace backplane::codegen

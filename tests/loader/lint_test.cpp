// Laws of lint and of the symbol reader under it: what load_plugin refuses is an error, a good plugin has none, and
// nothing is registered on the way.
#include "loader/elf_symbols.hpp"
#include "loader/plugin_files.hpp"

namespace backplane::loader_test {
namespace {

using testing::HasSubstr;

std::string errors_of(const std::string& path) {
  std::string text;
  for (const LintFinding& finding : lint_plugin(path))
    if (finding.level == LintLevel::kError) text += finding.text + "\n";
  return text;
}

TEST(Lint, AGoodPluginHasNoErrors) {
  const Folder folder;
  const std::string path = folder.plant("first", "first", "\"backends\": [\"first\"], \"ops\": [\"first::scale\"]");
  EXPECT_EQ(errors_of(path), "");
  EXPECT_FALSE(has_op("first::scale"));
}

TEST(Lint, WhatIsRefusedIsAnError) {
  EXPECT_THAT(errors_of(plugin_file("no_symbol")), HasSubstr("does not export bp_plugin_query"));
  EXPECT_THAT(errors_of(plugin_file("other_major")), HasSubstr("major 7"));
  EXPECT_THAT(errors_of(plugin_file("size_odd")), HasSubstr("invalid size"));
  EXPECT_THAT(errors_of(plugin_file("throws_in_query")), HasSubstr("threw"));
  const Folder folder;
  EXPECT_THAT(errors_of(folder.write("text.so", "text")), HasSubstr("is not a shared object"));
  EXPECT_THAT(errors_of(folder.path() + "/none.so"), HasSubstr("cannot be opened"));
}

TEST(Lint, TheManifestMustFitTheTable) {
  const Folder folder;
  EXPECT_THAT(errors_of(folder.plant("first", "other")), HasSubstr("its manifest says \"other\""));
}

TEST(ElfSymbols, SeparatesWhatIsDefinedFromWhatIsImported) {
  const loader::ElfFile file = loader::read_elf(plugin_file("first"));
  EXPECT_EQ(file.problem, "");
  EXPECT_TRUE(file.exports("bp_plugin_query"));
  EXPECT_FALSE(file.imports("bp_plugin_query"));
  EXPECT_TRUE(file.imports("malloc"));
  EXPECT_FALSE(file.exports("malloc"));
}

}  // namespace
}  // namespace backplane::loader_test

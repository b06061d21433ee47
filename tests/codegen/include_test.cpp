// The files that `include` reads, and its refusals, each with the place of the including line.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "cli/run.hpp"
#include "codegen_fixture.hpp"

namespace backplane::codegen::include_test {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

std::string entry(const std::string& name) {
  return "  - op: " + name +
         "(Tensor x) -> Tensor\n    doc: F.\n    primitive: unary\n    dtypes: bool\n    shape: broadcast(x)\n    "
         "samples: [{x: [2]}]\n";
}

// A folder of its own for each test, and codegen on the file at its root.
class Include : public testing::Test {
 protected:
  void SetUp() override {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = fs::path(testing::TempDir()) / ("include_" + std::string(test->name()));
    fs::remove_all(folder_);
    fs::create_directories(folder_ / "in" / "ops");
  }
  void TearDown() override { fs::remove_all(folder_); }

  void write(const std::string& path, const std::string& text) const { std::ofstream(folder_ / "in" / path) << text; }
  void root(const std::string& includes, const std::string& more = "") const {
    write("root.yaml", "namespace: t\ninclude: " + includes + "\n" + more);
  }
  // "" without an error; else the report, with each line's path relative to the folder.
  std::string report(const char* folder = "in") {
    Diagnostics diagnostics;
    std::vector<std::unique_ptr<RegistryFile>> files;
    files.push_back(read_registry((folder_ / folder / "root.yaml").string(), false, diagnostics));
    registry_ = check(std::move(files), diagnostics);
    std::string text = diagnostics.render();
    const std::string prefix = (folder_ / folder).string() + "/";
    for (size_t at; (at = text.find(prefix)) != std::string::npos;) text.erase(at, prefix.size());
    return text;
  }

  fs::path folder_;
  CompiledRegistry registry_;
};

TEST_F(Include, EntriesComeInTheOrderOfTheLinesAndKnowTheirFile) {
  root("[ops/b.yaml, ops/a.yaml]", "ops:\n" + entry("last"));
  write("ops/a.yaml", "ops:\n" + entry("second"));
  write("ops/b.yaml", "include: [deep.yaml]\nops:\n" + entry("first"));
  write("ops/deep.yaml", "ops:\n" + entry("zeroth"));
  ASSERT_EQ("", report());
  std::vector<std::string> names;
  for (const CompiledOp& op : registry_.ops) names.push_back(op.entry->full_name + " " + std::string(op.entry->file));
  EXPECT_THAT(names, ElementsAre("t::zeroth ops/deep.yaml", "t::first ops/b.yaml", "t::second ops/a.yaml",
                                 "t::last root.yaml"));
}

TEST_F(Include, MistakesOfAnIncludedFileAreReportedThere) {
  root("[ops/a.yaml]");
  write("ops/a.yaml", "# ours\nops:\n  - doc: F.\n");
  EXPECT_THAT(report(), StartsWith("ops/a.yaml:3:5: error: the entry has no 'op'"));
}

TEST_F(Include, AMissingFileIsReportedAtItsLine) {
  root("\n  - ops/gone.yaml");
  EXPECT_THAT(report(), StartsWith("root.yaml:3:5: error: cannot read 'ops/gone.yaml'"));
  root("[ops]");
  EXPECT_THAT(report(), StartsWith("root.yaml:2:11: error: 'ops' is not a path of an included file"));
}

TEST_F(Include, WhatIsNoFileIsNotOpened) {
  ASSERT_EQ(0, mkfifo((folder_ / "in/ops/pipe.yaml").c_str(), 0600));
  fs::create_directories(folder_ / "in/ops/folder.yaml");
  root("[ops/pipe.yaml]");
  EXPECT_THAT(report(), StartsWith("root.yaml:2:11: error: cannot read 'ops/pipe.yaml'"));
  root("[ops/folder.yaml]");
  EXPECT_THAT(report(), StartsWith("root.yaml:2:11: error: cannot read 'ops/folder.yaml'"));
}

TEST_F(Include, ACycleIsReportedWithItsFiles) {
  root("[ops/a.yaml]");
  write("ops/a.yaml", "include: [b.yaml]\n");
  write("ops/b.yaml", "\ninclude:\n  - a.yaml\n");
  EXPECT_THAT(report(), StartsWith("ops/b.yaml:3:5: error: files include each other: a.yaml -> b.yaml -> a.yaml"));
  root("[./root.yaml]");
  EXPECT_THAT(report(), StartsWith("root.yaml:2:11: error: files include each other: root.yaml -> root.yaml"));
}

TEST_F(Include, AFileIsIncludedOnce) {
  root("[ops/a.yaml, ./ops/a.yaml]");
  write("ops/a.yaml", "ops:\n" + entry("f"));
  EXPECT_THAT(report(), StartsWith("root.yaml:2:23: error: './ops/a.yaml' is included twice, first at root.yaml:2"));
}

TEST_F(Include, APathStaysInItsFolder) {
  std::ofstream(folder_ / "outside.yaml") << "ops:\n" + entry("f");
  for (const std::string path :
       {"../outside.yaml", "ops/../../outside.yaml", "/etc/hosts.yaml", "~/a.yaml", "a b.yaml"}) {
    root("['" + path + "']");
    EXPECT_THAT(report(), StartsWith("root.yaml:2:11: error: '" + path + "' is not a path of an included file"));
  }
  // Below the file that includes, not below the first one.
  root("[ops/a.yaml]");
  write("ops/a.yaml", "include: [../b.yaml]\n");
  write("b.yaml", "ops:\n" + entry("f"));
  EXPECT_THAT(report(), StartsWith("ops/a.yaml:1:11: error: '../b.yaml' is not a path"));
}

TEST_F(Include, ALinkStaysInItsFolderToo) {
  std::ofstream(folder_ / "outside.yaml") << "ops:\n" + entry("f");
  fs::create_symlink(folder_ / "outside.yaml", folder_ / "in/ops/link.yaml");
  root("[ops/link.yaml]");
  EXPECT_THAT(report(), StartsWith("root.yaml:2:11: error: 'ops/link.yaml' is a link that leads out"));
  fs::create_directory_symlink(folder_, folder_ / "in/up");
  root("[up/outside.yaml]");
  EXPECT_THAT(report(), StartsWith("root.yaml:2:11: error: 'up/outside.yaml' is a link that leads out"));
  write("ops/a.yaml", "ops:\n" + entry("f"));
  fs::create_symlink("a.yaml", folder_ / "in/ops/inner.yaml");
  root("[ops/inner.yaml]");
  EXPECT_EQ("", report());
}

TEST_F(Include, ASandboxOfLinksIsReadAsTheirFiles) {
  std::ofstream(folder_ / "outside.yaml") << "ops:\n" + entry("f");
  fs::create_directories(folder_ / "sandbox/ops");
  root("[ops/a.yaml]");
  write("ops/a.yaml", "include: [b.yaml]\n");
  write("ops/b.yaml", "ops:\n" + entry("f"));
  for (const char* name : {"root.yaml", "ops/a.yaml", "ops/b.yaml"})
    fs::create_symlink(folder_ / "in" / name, folder_ / "sandbox" / name);
  EXPECT_EQ("", report("sandbox"));
  fs::remove(folder_ / "sandbox/ops/b.yaml");
  fs::create_symlink(folder_ / "outside.yaml", folder_ / "sandbox/ops/b.yaml");
  EXPECT_THAT(report("sandbox"), StartsWith("ops/a.yaml:1:11: error: 'b.yaml' is a link that leads out"));
}

TEST_F(Include, ALongChainIsRefused) {
  root("[ops/0.yaml]");
  for (int i = 0; i < 200; ++i)
    write("ops/" + std::to_string(i) + ".yaml", "include: [" + std::to_string(i + 1) + ".yaml]\n");
  EXPECT_THAT(report(), HasSubstr("more than 64 deep"));
}

TEST_F(Include, FormIsChecked) {
  root("ops/a.yaml");
  EXPECT_THAT(report(), StartsWith("root.yaml:2:10: error: 'include' must be a list of files"));
  root("[[ops/a.yaml]]");
  EXPECT_THAT(report(), StartsWith("root.yaml:2:11: error: 'include' must be one text"));
  root("[ops/a.yaml]");
  write("ops/a.yaml", "namespace: t\nops:\n" + entry("f"));
  EXPECT_THAT(report(), StartsWith("ops/a.yaml:1:1: error: an included file has the namespace of the file"));
  write("ops/a.yaml", "tags: []\nops:\n" + entry("f"));
  EXPECT_THAT(report(), StartsWith("ops/a.yaml:1:1: error: unknown key 'tags'"));
}

TEST_F(Include, TheDepfileNamesEveryFile) {
  root("[ops/a.yaml]", "ops:\n" + entry("f"));
  write("ops/a.yaml", "include: [b.yaml]\n");
  write("ops/b.yaml", "ops:\n" + entry("h"));
  const std::string in = (folder_ / "in").string();
  Options options;
  options.ops = {in + "/root.yaml"};
  options.default_import = false;
  options.out = (folder_ / "out").string();
  options.depfile = (folder_ / "out" / "deps.d").string();
  std::ostringstream out, errors;
  ASSERT_EQ(0, run(options, out, errors)) << errors.str();
  EXPECT_EQ(options.out + "/t_records.c: \\\n  " + in + "/root.yaml \\\n  " + in + "/ops/a.yaml \\\n  " + in +
                "/ops/b.yaml\n",
            read_text(options.depfile));
  EXPECT_THAT(read_text(options.out + "/t_records.c"), HasSubstr("\"ops/b.yaml\""));
}

}  // namespace
}  // namespace backplane::codegen::include_test

// The outputs of a small registry are those kept in golden/, byte for byte; with BACKPLANE_UPDATE_GOLDENS=1 in the
// environment they are written there instead, to be read in the diff. And the laws of writing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "cli/run.hpp"
#include "codegen_fixture.hpp"

namespace backplane::codegen {
namespace {

namespace fs = std::filesystem;

class Outputs : public testing::Test {
 protected:
  void SetUp() override {
    directory_ = fs::temp_directory_path() / ("backplane_codegen_" + std::to_string(::getpid()));
    fs::remove_all(directory_);
  }
  void TearDown() override { fs::remove_all(directory_); }

  Options options() const {
    Options o;
    o.ops = {test_path("data/golden.yaml")};
    o.imports = {test_path("data/base.yaml")};
    o.out = directory_.string();
    return o;
  }

  int run_with(const Options& o) {
    std::ostringstream out, errors;
    const int status = run(o, out, errors);
    out_ = out.str();
    errors_ = errors.str();
    return status;
  }

  static std::map<std::string, std::string> files_in(const fs::path& directory) {
    std::map<std::string, std::string> files;
    if (!fs::exists(directory)) return files;
    for (const auto& file : fs::recursive_directory_iterator(directory))
      if (file.is_regular_file())
        files[fs::relative(file.path(), directory).generic_string()] = read_text(file.path().string());
    return files;
  }

  fs::path directory_;
  std::string out_, errors_;
};

TEST_F(Outputs, AreTheGoldens) {
  const fs::path golden = test_path("golden");
  Options o = options();
  if (std::getenv("BACKPLANE_UPDATE_GOLDENS")) {
    fs::remove_all(golden);
    o.out = golden.string();
    ASSERT_EQ(0, run_with(o)) << errors_;
    GTEST_SKIP() << "the goldens were written";
  }
  ASSERT_EQ(0, run_with(o)) << errors_;
  const auto made = files_in(directory_), expected = files_in(golden);
  for (const auto& [name, content] : expected) {
    ASSERT_TRUE(made.count(name)) << name << " is no longer made";
    EXPECT_EQ(content, made.at(name)) << name;
  }
  EXPECT_EQ(expected.size(), made.size());
}

TEST_F(Outputs, DoNotDependOnThePathOfTheFile) {
  ASSERT_EQ(0, run_with(options())) << errors_;
  const auto first = files_in(directory_);
  const fs::path elsewhere = directory_ / "elsewhere";
  fs::create_directories(elsewhere);
  fs::copy_file(test_path("data/golden.yaml"), elsewhere / "golden.yaml");
  Options moved = options();
  moved.ops = {(elsewhere / "golden.yaml").string()};
  moved.out = (elsewhere / "out").string();
  ASSERT_EQ(0, run_with(moved)) << errors_;
  EXPECT_EQ(first, files_in(elsewhere / "out"));
}

TEST_F(Outputs, ThatWouldNotChangeAreNotWritten) {
  ASSERT_EQ(0, run_with(options()));
  const auto old = fs::file_time_type::clock::now() - std::chrono::hours(1);
  for (const auto& [name, content] : files_in(directory_)) fs::last_write_time(directory_ / name, old);
  std::ofstream(directory_ / "samples.json") << "changed by hand";
  ASSERT_EQ(0, run_with(options()));
  for (const auto& [name, content] : files_in(directory_)) {
    if (name == "samples.json")
      EXPECT_GT(fs::last_write_time(directory_ / name), old);
    else
      EXPECT_EQ(old, fs::last_write_time(directory_ / name)) << name;
  }
}

TEST_F(Outputs, OfAFileWithAMistakeAreNone) {
  fs::create_directories(directory_);
  std::ofstream(directory_ / "bad.yaml") << "namespace: t\nops:\n  - op: f(Tensor x) -> Tensor\n";
  Options o = options();
  o.ops.push_back((directory_ / "bad.yaml").string());
  o.out = (directory_ / "out").string();
  EXPECT_EQ(1, run_with(o));
  EXPECT_THAT(errors_, testing::HasSubstr("bad.yaml:3:9: error: "));
  EXPECT_FALSE(fs::exists(directory_ / "out"));
}

TEST_F(Outputs, LeaveNothingHalfWritten) {
  fs::create_directories(directory_ / "samples.json" / "in the way");  // a folder where a file should go
  EXPECT_EQ(1, run_with(options()));
  EXPECT_THAT(errors_, testing::HasSubstr("samples.json"));
  for (const auto& [name, content] : files_in(directory_)) EXPECT_THAT(name, testing::Not(testing::EndsWith(".tmp")));
}

TEST_F(Outputs, CheckAndListWriteNothing) {
  Options o = options();
  o.check = true;
  EXPECT_EQ(0, run_with(o));
  EXPECT_EQ("", out_);
  o.check = false;
  o.list = true;
  EXPECT_EQ(0, run_with(o));
  EXPECT_THAT(out_, testing::HasSubstr("demo::cube(Tensor x) -> Tensor\n"));
  EXPECT_FALSE(fs::exists(directory_));
}

TEST_F(Outputs, ExplainShowsWhatWasDerived) {
  Options o = options();
  o.explain = "cube";
  EXPECT_EQ(0, run_with(o));
  EXPECT_THAT(out_, testing::HasSubstr("vjp x: derived"));
  o.explain = "demo::cub";
  EXPECT_EQ(1, run_with(o));
  EXPECT_THAT(errors_, testing::HasSubstr("did you mean 'demo::cube'?"));
}

TEST_F(Outputs, OnlyThoseAskedFor) {
  Options o = options();
  o.emit = {"pyi"};
  ASSERT_EQ(0, run_with(o));
  EXPECT_THAT(files_in(directory_), testing::ElementsAre(testing::Key("demo.pyi")));
  o.emit = {"records"};
  ASSERT_EQ(0, run_with(o));
  EXPECT_THAT(files_in(directory_).at("demo_records.c"), testing::Not(testing::HasSubstr("_formula0")))
      << "records without their native formulas stand alone";
  o.emit = {"recods"};
  EXPECT_EQ(2, run_with(o));
  EXPECT_THAT(errors_, testing::HasSubstr("did you mean 'records'?"));
}

TEST_F(Outputs, TheDepfileNamesEveryInput) {
  Options o = options();
  o.depfile = (directory_ / "d file.d").string();
  ASSERT_EQ(0, run_with(o)) << errors_;
  const std::string rule = read_text(o.depfile);
  EXPECT_THAT(rule, testing::HasSubstr("demo_records.c:"));
  EXPECT_THAT(rule, testing::HasSubstr("data/golden.yaml"));
  EXPECT_THAT(rule, testing::HasSubstr("data/base.yaml"));
}

TEST_F(Outputs, AStampIsNewAfterEachRun) {
  Options o = options();
  o.stamp = (directory_ / "stamp").string();
  o.depfile = (directory_ / "deps.d").string();
  ASSERT_EQ(0, run_with(o)) << errors_;
  EXPECT_THAT(read_text(o.depfile), testing::StartsWith(o.stamp + ":"));
  const auto old = fs::file_time_type::clock::now() - std::chrono::hours(1);
  for (const char* name : {"stamp", "demo_records.c"}) fs::last_write_time(directory_ / name, old);
  ASSERT_EQ(0, run_with(o)) << errors_;
  EXPECT_GT(fs::last_write_time(directory_ / "stamp"), old);
  EXPECT_EQ(old, fs::last_write_time(directory_ / "demo_records.c"));
}

TEST_F(Outputs, AreListedWithoutBeingWritten) {
  Options o = options();
  o.list_outputs = true;
  ASSERT_EQ(0, run_with(o)) << errors_;
  EXPECT_FALSE(fs::exists(directory_));
  o.list_outputs = false;
  const std::string listed = out_;
  ASSERT_EQ(0, run_with(o)) << errors_;
  std::string made;
  for (const auto& [name, content] : files_in(directory_)) made += (directory_ / name).string() + "\n";
  EXPECT_EQ(made, listed);
}

TEST_F(Outputs, ExplainSaysWhatGoesThroughTheDecomposition) {
  fs::create_directories(directory_);
  std::ofstream(directory_ / "parts.yaml")
      << "namespace: parts\nops:\n  - op: f(Tensor x) -> Tensor\n    doc: F.\n    dtypes: floating\n    shape: "
         "same(x)\n"
         "    vjp: decompose\n    jvp: decompose\n    decompose: x * 2\n    samples: [{x: [2]}]\n";
  Options o = options();
  o.ops = {(directory_ / "parts.yaml").string()};
  o.explain = "f";
  ASSERT_EQ(0, run_with(o)) << errors_;
  EXPECT_THAT(out_, testing::HasSubstr("  vjp: decompose, through the formula above\n  jvp: decompose"));
}

TEST_F(Outputs, AMissingFileIsAMistake) {
  Options o = options();
  o.ops = {"nowhere.yaml"};
  EXPECT_EQ(1, run_with(o));
  EXPECT_EQ("nowhere.yaml:1:1: error: cannot read this file; give the path of a registry file\n", errors_);
}

}  // namespace
}  // namespace backplane::codegen

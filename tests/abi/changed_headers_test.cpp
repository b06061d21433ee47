// The law of the contract's own checks: they find every change of a struct of the headers that is not an append. Each
// struct has a member taken out, one put into its middle, and one given another type.
//
// What a struct declares is committed too (released/declarations_MAJOR_MINOR.txt): another parameter of a slot moves
// nothing. BACKPLANE_WRITE_LAYOUT=1 writes the file of the minor in the making.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "abi/declarations.hpp"
#include "backplane/abi/base.h"

namespace backplane::abi_test {
namespace {

namespace fs = std::filesystem;

const fs::path kAbi = fs::path(BACKPLANE_SOURCE_DIR) / "dispatcher/abi";
const fs::path kHeaders = "backplane/abi";

std::string content(const fs::path& path) {
  std::ifstream in(path);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

std::vector<fs::path> headers() {
  std::vector<fs::path> found;
  for (const auto& file : fs::directory_iterator(kAbi / kHeaders)) found.push_back(file.path().filename());
  std::sort(found.begin(), found.end());
  return found;
}

std::map<std::string, Declared> all_declared() {
  std::map<std::string, Declared> all;
  for (const fs::path& header : headers()) all.merge(declared(content(kAbi / kHeaders / header)));
  return all;
}

fs::path committed(int minor) {
  return kAbi / "released" / ("declarations_" + std::to_string(BP_ABI_MAJOR) + "_" + std::to_string(minor) + ".txt");
}

TEST(Declarations, EqualTheCommittedOnesOfTheirMinor) {
  const std::string now = text_of(all_declared());
  if (std::getenv("BACKPLANE_WRITE_LAYOUT")) std::ofstream(committed(BP_ABI_MINOR)) << now;
  EXPECT_EQ(content(committed(BP_ABI_MINOR)), now)
      << "an append goes into " << committed(BP_ABI_MINOR) << ": run this test with BACKPLANE_WRITE_LAYOUT=1";
}

TEST(Declarations, AreAppendsToThoseOfEveryEarlierMinor) {
  constexpr int kFirst = 2;  // with such a file
  for (int minor = kFirst; minor <= BP_ABI_MINOR; ++minor)
    EXPECT_THAT(changed_lines(content(committed(minor)), text_of(all_declared())), testing::IsEmpty());
}

TEST(Declarations, OfAnotherParameterDiffer) {
  const std::string header = "struct bp_x {\n  bp_header header; /* its; size */\n  void(BP_CALL* f)(int32_t a);\n};\n";
  std::string other = header;
  other.replace(other.find("int32_t"), 7, "float  ");
  EXPECT_EQ(text_of(declared(header)), "bp_x: bp_header header\nbp_x: void(BP_CALL* f)(int32_t a)\n");
  EXPECT_THAT(changed_lines(text_of(declared(header)), text_of(declared(other))), testing::SizeIs(1));
  EXPECT_THAT(changed_lines(text_of(declared(other)), text_of(declared(other)) + "bp_x: int a\n"), testing::IsEmpty());
}

// A copy of the headers, in which one is written anew; the layout file is compiled against it, as it is in every build.
class Copy {
 public:
  Copy() {
    std::string name = (fs::temp_directory_path() / "backplane_abi_XXXXXX").string();
    folder_ = mkdtemp(name.data());
    fs::copy(kAbi, folder_, fs::copy_options::recursive);
  }
  ~Copy() { fs::remove_all(folder_); }
  bool compiles_with(const fs::path& header, const std::string& text) {
    std::ofstream(folder_ / kHeaders / header) << text;
    const std::string at = folder_.string();
    const int status = std::system((std::string(BACKPLANE_CC) + " -std=c11 -fsyntax-only -I" + at + " " + at +
                                    "/layout.c >" + at + "/said.txt 2>&1")
                                       .c_str());
    std::ofstream(folder_ / kHeaders / header) << content(kAbi / kHeaders / header);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }

 private:
  fs::path folder_;
};

TEST(ChangedHeaders, TheCopyItselfCompiles) {
  Copy copy;
  EXPECT_TRUE(copy.compiles_with("base.h", content(kAbi / kHeaders / "base.h")));
}

// The replacements of the member in the middle of a struct.
std::map<std::string, std::string> changes_of(const std::string& member) {
  static const std::regex name(R"(\(BP_CALL\* (\w+)\)|(\w+)(\[[^\]]*\])?;$)");
  std::smatch found;
  if (!std::regex_search(member, found, name)) return {};
  const std::string word = found[1].matched ? found[1] : found[2];
  return {{"taken out", ""},
          {"put before", "uint64_t bp_inserted[2]; " + member},
          {"of another type", "uint64_t " + word + "[9];"}};
}

class ChangedHeaders : public testing::TestWithParam<fs::path> {};

TEST_P(ChangedHeaders, AreFoundWhereverTheyChange) {
  Copy copy;
  const std::string header = content(kAbi / kHeaders / GetParam()), plain = without_comments(header);
  for (const auto& [name, type] : declared(header)) {
    ASSERT_FALSE(type.members.empty()) << name;
    const size_t middle = type.members.size() / 2, at = type.offsets[middle], length = type.lengths[middle];
    const std::string member = plain.substr(at, length);
    const auto changes = changes_of(on_one_line(member));
    EXPECT_EQ(changes.size(), 3u) << name << ": " << member;
    for (const auto& [what, text] : changes)
      EXPECT_FALSE(copy.compiles_with(GetParam(), std::string(header).replace(at, length, text)))
          << name << ": \"" << on_one_line(member) << "\" " << what;
  }
}

INSTANTIATE_TEST_SUITE_P(All, ChangedHeaders, testing::ValuesIn(headers()),
                         [](const auto& info) { return info.param.stem().string(); });

}  // namespace
}  // namespace backplane::abi_test

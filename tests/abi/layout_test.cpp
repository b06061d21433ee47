// Laws of the contract's layout: it equals the committed file of its minor, is an append to those of earlier minors,
// has no padding that nobody named, and nothing in the headers escapes the list.
//
// BACKPLANE_WRITE_LAYOUT=1 writes the file of the minor in the making instead of comparing, where that is an append.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "abi/layout_text.hpp"
#include "backplane/abi/extensions.h"

namespace backplane::abi_test::layout_test {
namespace {

namespace fs = std::filesystem;

const fs::path kAbi = fs::path(BACKPLANE_SOURCE_DIR) / "dispatcher/abi";

std::string content(const fs::path& path) {
  std::ifstream in(path);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

std::string layout_now() {
  size_t count = 0;
  const bp_layout_row* rows = bp_layout(&count);
  return text_of(rows, count);
}

fs::path file_of(int major, int minor) {
  return kAbi / "released" / ("layout_" + std::to_string(major) + "_" + std::to_string(minor) + ".txt");
}

TEST(Layout, EqualsTheCommittedFileOfItsMinor) {
  const fs::path path = file_of(BP_ABI_MAJOR, BP_ABI_MINOR);
  if (std::getenv("BACKPLANE_WRITE_LAYOUT")) {
    ASSERT_THAT(faults(parse(content(path)), parse(layout_now())), testing::IsEmpty());
    std::ofstream(path) << layout_now();
  }
  EXPECT_EQ(content(path), layout_now()) << "an append goes into " << path
                                         << ": run this test with BACKPLANE_WRITE_LAYOUT=1";
}

TEST(Layout, IsAnAppendToEveryEarlierMinor) {
  for (int minor = 1; minor <= BP_ABI_MINOR; ++minor) {
    const std::string before = content(file_of(BP_ABI_MAJOR, minor));
    ASSERT_FALSE(before.empty()) << "no layout file for minor " << minor;
    EXPECT_THAT(faults(parse(before), parse(layout_now())), testing::IsEmpty()) << "against minor " << minor;
  }
}

// Compilers would be free to place unnamed padding differently; and a member missing from the list would show as a gap.
TEST(Layout, NamesEveryByte) {
  for (const auto& [name, type] : parse(layout_now()).structs) {
    uint64_t end = 0;
    for (const std::string& member : type.members) {
      uint64_t offset = 0, size = 0;
      ASSERT_EQ(std::sscanf(member.c_str(), "%*[^,], %lu, %lu", &offset, &size), 2) << member;
      EXPECT_EQ(offset, end) << name << ": " << member;
      end = offset + size;
    }
    EXPECT_EQ(type.size, end) << name;
  }
}

TEST(Layout, StructsThatCarryTheirSizeAreMultiplesOfEight) {
  for (const auto& [name, type] : parse(layout_now()).structs)
    if (!type.fixed) {
      EXPECT_EQ(type.size % 8, 0u) << name;
      EXPECT_LE(type.size, BP_MAX_STRUCT_SIZE) << name;
    }
}

TEST(Layout, ListsEverythingThatTheHeadersDeclare) {
  const Layout layout = parse(layout_now());
  const std::regex comment(R"(/\*[^*]*\*+(?:[^/*][^*]*\*+)*/)"), type(R"(struct (bp_\w+) \{)"),
      value(R"(\b((?:BP_|kDL)\w+) = )");
  for (const auto& header : fs::directory_iterator(kAbi / "backplane/abi")) {
    const std::string text = std::regex_replace(content(header), comment, "");
    for (std::sregex_iterator found(text.begin(), text.end(), type), end; found != end; ++found)
      EXPECT_TRUE(layout.structs.contains((*found)[1])) << (*found)[1] << " is missing from layout_structs.h";
    for (std::sregex_iterator found(text.begin(), text.end(), value), end; found != end; ++found)
      EXPECT_TRUE((*found)[1] == "BP_DTYPE_COUNT" || layout.values.contains((*found)[1]))
          << (*found)[1] << " is missing from layout_values.h";
  }
}

// Constants that lists make. The headers show only the list.
TEST(Layout, ListsEveryDtypeAndType) {
  const Layout layout = parse(layout_now());
#define BP_LISTED(constant, ...) EXPECT_TRUE(layout.values.contains("BP_" #constant)) << #constant;
  BP_DTYPES(BP_LISTED)
#undef BP_LISTED
#define BP_LISTED(constant, ...) EXPECT_TRUE(layout.values.contains("BP_TYPE_" #constant)) << #constant;
  BP_TYPES(BP_LISTED)
#undef BP_LISTED
}

constexpr const char* kSmall =
    "OPEN(table, 16)\nMEMBER(table, a, 0, 8)\nMEMBER(table, b, 8, 8)\n"
    "FIXED(value, 8)\nMEMBER(value, i, 0, 8)\nVALUE(ONE, 1u)\n";

std::vector<std::string> faults_after(const char* later) { return faults(parse(kSmall), parse(later)); }

TEST(AppendCheck, AcceptsTheSameAndAppends) {
  EXPECT_THAT(faults_after(kSmall), testing::IsEmpty());
  EXPECT_THAT(faults_after("OPEN(table, 24)\nMEMBER(table, a, 0, 8)\nMEMBER(table, b, 8, 8)\nMEMBER(table, c, 16, 8)\n"
                           "FIXED(value, 8)\nMEMBER(value, i, 0, 8)\nOPEN(other, 8)\nVALUE(ONE, 1u)\nVALUE(TWO, 2u)\n"),
              testing::IsEmpty());
}

TEST(AppendCheck, RefusesWhateverElse) {
  const std::map<std::string, std::string> changes = {
      {"inserted", "OPEN(table, 24)\nMEMBER(table, a, 0, 8)\nMEMBER(table, c, 8, 8)\nMEMBER(table, b, 16, 8)\n"},
      {"swapped", "OPEN(table, 16)\nMEMBER(table, b, 0, 8)\nMEMBER(table, a, 8, 8)\n"},
      {"removed", "OPEN(table, 8)\nMEMBER(table, a, 0, 8)\n"},
      {"resized", "OPEN(table, 16)\nMEMBER(table, a, 0, 4)\nMEMBER(table, b, 8, 8)\n"},
      {"renamed", "OPEN(table, 16)\nMEMBER(table, a, 0, 8)\nMEMBER(table, z, 8, 8)\n"},
      {"kind", "FIXED(table, 16)\nMEMBER(table, a, 0, 8)\nMEMBER(table, b, 8, 8)\n"},
  };
  const std::string rest = "FIXED(value, 8)\nMEMBER(value, i, 0, 8)\nVALUE(ONE, 1u)\n";
  for (const auto& [what, later] : changes) EXPECT_FALSE(faults_after((later + rest).c_str()).empty()) << what;
  const std::string table = "OPEN(table, 16)\nMEMBER(table, a, 0, 8)\nMEMBER(table, b, 8, 8)\n";
  EXPECT_FALSE(
      faults_after(
          (table + "FIXED(value, 16)\nMEMBER(value, i, 0, 8)\nMEMBER(value, j, 8, 8)\nVALUE(ONE, 1u)\n").c_str())
          .empty());
  EXPECT_FALSE(faults_after((table + "FIXED(value, 8)\nMEMBER(value, i, 0, 8)\nVALUE(ONE, 2u)\n").c_str()).empty());
  EXPECT_FALSE(faults_after((table + "FIXED(value, 8)\nMEMBER(value, i, 0, 8)\n").c_str()).empty());
}

}  // namespace
}  // namespace backplane::abi_test::layout_test

// The format's page and the lists of the contract say the same words: each dtype, type, shape word, class, builtin and
// key stands in docs/reference/ops-yaml.md, with as many parameters as it takes, and the page has no others.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <regex>
#include <set>

#include "backplane/abi/vocabulary.h"
#include "check/types.hpp"
#include "codegen_fixture.hpp"
#include "schema/vocabulary.hpp"

namespace backplane::codegen {
namespace {

using Words = std::set<std::string>;

const std::string& page() {
  static const std::string text = read_text(test_path("../../docs/reference/ops-yaml.md"));
  return text;
}

std::string section(const std::string& from, const std::string& to) {
  const size_t begin = page().find(from), end = page().find(to, begin);
  EXPECT_TRUE(begin != std::string::npos && end != std::string::npos) << from;
  return page().substr(begin, end - begin);
}

std::vector<std::smatch> matches(const std::string& text, const std::regex& pattern) {
  return {std::sregex_iterator(text.begin(), text.end(), pattern), std::sregex_iterator()};
}

// "name" -> the largest number of arguments with which the text shows it as `name(a, b)`.
std::map<std::string, size_t> calls_in(const std::string& text) {
  std::map<std::string, size_t> calls;
  for (const std::smatch& found : matches(text, std::regex(R"(`([a-z_.0-9]+)\(([^`]*)\)`)"))) {
    const std::string args = found[2];
    size_t& count = calls[found[1]];
    count = std::max(count, args.empty() ? 0 : 1 + static_cast<size_t>(std::count(args.begin(), args.end(), ',')));
  }
  return calls;
}

TEST(Vocabulary, ShapeWordsAreThoseOfThePage) {
  std::string table = section("| word | result |", "| anything else |");
  const auto calls = calls_in(table);
  Words known;
  for (const ShapeWordSpec& word : shape_words()) {
    known.emplace(word.name);
    const auto found = calls.find(std::string(word.name));
    ASSERT_NE(found, calls.end()) << word.name << " is missing from the page";
    if (word.params.ends_with('*')) continue;
    EXPECT_EQ(found->second, word.params.size()) << word.name;
  }
  for (const auto& [name, count] : calls) EXPECT_TRUE(known.contains(name)) << name << " is no shape word";
}

TEST(Vocabulary, BuiltinsAreThoseOfThePage) {
  const std::string text = section("### Builtins and what codegen adds", "## Samples");
  const auto calls = calls_in(text);
  Words known;
  const auto expect_builtin = [&](const std::string& name, std::string_view params) {
    known.insert(name);
    ASSERT_TRUE(calls.contains(name)) << name << " is missing from the page";
    EXPECT_TRUE(params.ends_with('*') || calls.at(name) == params.size()) << name << ": " << calls.at(name);
  };
#define BP_BUILTIN(function, name, params, required, result, passes) expect_builtin(name, params);
  BP_BUILTIN_FUNCTIONS(BP_BUILTIN)
#undef BP_BUILTIN
  for (const auto& [name, count] : calls) EXPECT_TRUE(known.contains(name)) << name << " is no builtin";
  Words operators, said;
#define BP_BUILTIN(function, name, ...) operators.emplace(name);
  BP_BUILTIN_OPERATORS(BP_BUILTIN)
#undef BP_BUILTIN
  std::smatch found;
  ASSERT_TRUE(std::regex_search(text, found, std::regex(R"(under the names `([a-z ]+)`)")));
  const std::string names = found[1];
  for (const std::smatch& word : matches(names, std::regex("[a-z]+"))) said.insert(word[0]);
  EXPECT_EQ(said, operators);
}

TEST(Vocabulary, TypesAndClassesAreThoseOfThePage) {
  const std::string types = section("| type | value |", "An op that takes a `Graph`");
  for (const TypeWord& word : type_words())
    EXPECT_NE(types.find("`" + std::string(word.name) + "`"), std::string::npos) << word.name;
  const std::string classes = section("\nClasses: ", "## `shape`");
  for (const DtypeClass& word : dtype_classes())
    EXPECT_NE(classes.find("`" + std::string(word.name) + "`"), std::string::npos) << word.name;
  const std::string keys = section("| key | says |", "Every tensor argument");
  for (const std::string_view key : entry_keys())
    EXPECT_TRUE(key == "op" || keys.find("`" + std::string(key) + "`") != std::string::npos) << key;
}

TEST(Vocabulary, DtypesAndTypesAreDenseAndInOrder) {
  for (int i = 0; i < BP_DTYPE_COUNT; ++i) EXPECT_EQ(find_dtype(kDtypeNames[i]), i);
  for (size_t i = 0; i < type_words().size(); ++i) EXPECT_EQ(type_words()[i].type, i + 1);
#define BP_NUMBER(constant, number, ...) EXPECT_EQ(static_cast<int>(BP_##constant), number);
  BP_DTYPES(BP_NUMBER)
#undef BP_NUMBER
  EXPECT_EQ(BP_MASK_ANY, (bp_dtype_mask{1} << BP_DTYPE_COUNT) - 1);
}

}  // namespace
}  // namespace backplane::codegen

// Texts and names that would break the languages that come out: each is escaped, and then the outputs compile and hold
// it unchanged, or it is refused with its place, and then nothing is written.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "cli/run.hpp"
#include "codegen_fixture.hpp"
#include "emit/emit.hpp"

namespace backplane::codegen::hostile_text_test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class HostileText : public testing::Test {
 protected:
  void SetUp() override {
    directory_ = fs::temp_directory_path() / ("backplane_hostile_" + std::to_string(::getpid()));
    fs::remove_all(directory_);
    fs::create_directories(directory_);
  }
  void TearDown() override { fs::remove_all(directory_); }

  int generate(const std::string& yaml, const std::string& file = "h.yaml", const std::string& symbol = "") {
    std::ofstream(directory_ / file, std::ios::binary) << yaml;
    Options o;
    o.ops = {(directory_ / file).string()};
    o.imports = {test_path("data/base.yaml")};
    o.out = (directory_ / "out").string();
    o.symbol = symbol;
    std::ostringstream out, errors;
    const int status = run(o, out, errors);
    errors_ = errors.str();
    return status;
  }

  // The status of a command in the folder of the outputs; its output is kept.
  int execute(const std::string& command) {
    const fs::path log = directory_ / "log";
    const int status = std::system(
        ("cd '" + (directory_ / "out").string() + "' && " + command + " > '" + log.string() + "' 2>&1").c_str());
    log_ = read_text(log.string());
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  void expect_outputs_are_whole() {
    const std::string flags =
        " -fsyntax-only -Wall -Wextra -Werror -Wno-unused " BACKPLANE_CODEGEN_INCLUDES " -I. -Iinclude ";
    for (const auto& file : fs::recursive_directory_iterator(directory_ / "out")) {
      const std::string path = "'" + file.path().string() + "'", extension = file.path().extension().string();
      std::string command;
      if (extension == ".c") command = BACKPLANE_CODEGEN_C " -std=c11" + flags + path;
      if (extension == ".hpp")  // as the header that it is
        command = "echo '#include \"'" + path + "'\"' | " BACKPLANE_CODEGEN_CXX " -std=c++20 -x c++" + flags + "-";
      if (extension == ".pyi")
        command = BACKPLANE_CODEGEN_PYTHON
                  " -c 'import ast, sys; ast.parse(open(sys.argv[1], encoding=\"utf-8\").read())' " +
                  path;
      if (extension == ".json")
        command =
            BACKPLANE_CODEGEN_PYTHON " -c 'import json, sys; json.load(open(sys.argv[1], encoding=\"utf-8\"))' " + path;
      if (command.empty()) continue;
      EXPECT_EQ(execute(command), 0) << command << "\n" << log_.substr(0, 2000);
    }
  }

  fs::path directory_;
  std::string errors_, log_;
};

// In YAML's single quotes, where only a quote is escaped.
std::string quoted_yaml(const std::string& text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? std::string("''") : std::string(1, c);
  return result + "'";
}

std::string op(const std::string& signature, const std::string& more = "", const std::string& is = "conj(x)") {
  return "  - op: " + quoted_yaml(signature) + "\n    doc: One.\n    dtypes: floating\n    shape: broadcast(x)\n" +
         "    decompose: " + is + "\n    vjp: {x: conj(g)}\n    jvp: linear\n" + more + "    samples: [{x: [2]}]\n";
}

const char* const kTexts[] = {"ends in \\",
                              "ends in \\\\",
                              "a backslash and space \\ ",
                              "\"\"\"",
                              "\"",
                              "ends in \"",
                              "ends in \"\"\"",
                              "\\\"\"\"",
                              "''' and '",
                              "*/ int x = 1; /*",
                              "/* open",
                              "// line",
                              "?\?/",
                              "?\?/ ends ?\?/",
                              "\\n is no line",
                              "\\x41 \\u0041 \\N{DASH}",
                              "{braces} %s %d #define X",
                              "`code` ``` fence",
                              "| a | b |",
                              "R\"(raw)\"",
                              "\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80",
                              "</script>",
                              "'; import os; '",
                              "\\",
                              "#",
                              "]]>",
                              "$(x) ${y}",
                              "\\\\\""};

TEST_F(HostileText, InDocsComesThroughUnchanged) {
  std::string yaml = "namespace: hostile\nops:\n";
  int number = 0;
  for (const char* text : kTexts) {
    const std::string words = quoted_yaml(text);
    yaml += op("f" + std::to_string(number++) + "(Tensor x) -> Tensor",
               "    variants: [inplace, out]\n    source: " + words + "\n    example: " + words +
                   "\n    errors: {ValueError: " + words + "}\n");
    yaml.replace(yaml.rfind("One."), 4, words);
  }
  ASSERT_EQ(generate(yaml), 0) << errors_;
  expect_outputs_are_whole();
  // The stubs' docstrings and the samples' docs contain the text of the entry.
  std::ofstream(directory_ / "texts.json") << [] {
    std::string list = "[";
    for (const char* text : kTexts) {
      list += list.size() > 1 ? ", \"" : "\"";
      for (const char* c = text; *c; ++c) list += *c == '"' || *c == '\\' ? std::string("\\") + *c : std::string(1, *c);
      list += "\"";
    }
    return list + "]";
  }();
  EXPECT_EQ(
      execute(
          BACKPLANE_CODEGEN_PYTHON
          " -c 'import ast, json\n"
          "texts = json.load(open(\"../texts.json\", encoding=\"utf-8\"))\n"
          "tree = ast.parse(open(\"hostile.pyi\", encoding=\"utf-8\").read())\n"
          "docs = {f.name: ast.get_docstring(f, clean=False) for f in tree.body if isinstance(f, ast.FunctionDef)}\n"
          "for i, text in enumerate(texts): assert docs[\"f%d\" % i] == text, (text, docs[\"f%d\" % i])'"),
      0)
      << log_;
}

TEST_F(HostileText, InDefaultsAndFormulasComesThroughUnchanged) {
  std::string yaml = "namespace: hostile\nops:\n";
  int number = 0;
  for (const char* text : kTexts) {
    const std::string value = text;
    const char quote = value.find('\'') == std::string::npos ? '\'' : '"';
    if (value.find(quote) != std::string::npos) continue;
    const std::string literal = quote + value + quote;
    yaml += "  - op: " + quoted_yaml("f" + std::to_string(number++) + "(Tensor x, str s=" + literal + ") -> Tensor") +
            "\n    doc: A text.\n    dtypes: floating\n    shape: " +
            quoted_yaml("require(x.shape, s == " + literal + ", " + literal + ")") +
            "\n    decompose: " + quoted_yaml("conj(x) if s == " + literal + " else x") +
            "\n    vjp: {x: conj(g)}\n    jvp: linear\n    samples: [{x: [2]}]\n";
  }
  ASSERT_EQ(generate(yaml), 0) << errors_;
  expect_outputs_are_whole();
}

TEST_F(HostileText, InTheNameOfTheFileStaysInItsComment) {
  const std::string yaml = in_file(op("f(Tensor x) -> Tensor"));
  for (const char* file : {"a*", "ends in \\", "\"quoted\".yaml", "a ??", "%s.yaml"}) {
    ASSERT_EQ(generate(yaml, file), 0) << errors_;
    expect_outputs_are_whole();
  }
  for (const char* file : {"two\nlines.yaml", "return\r.yaml", "bytes\xff.yaml", "bell\x07.yaml"}) {
    fs::remove_all(directory_ / "out");
    EXPECT_EQ(generate(yaml, file), 2);
    EXPECT_FALSE(fs::exists(directory_ / "out"));
  }
}

// Where the file is wrong, and that nothing was written.
void expect_refused(int status, const std::string& errors, const fs::path& out, const std::string& place,
                    const std::string& reason) {
  EXPECT_EQ(status, 1);
  EXPECT_THAT(errors, HasSubstr("h.yaml:" + place + ": error: "));
  EXPECT_THAT(errors, HasSubstr(reason));
  EXPECT_FALSE(fs::exists(out));
}

TEST_F(HostileText, ThatDoesNotShowIsRefusedWithItsPlace) {
  const std::string before = "namespace: t\nops:\n  - op: f(Tensor x) -> Tensor\n    doc: a";
  const std::string after =
      "b\n    dtypes: floating\n    shape: broadcast(x)\n    decompose: conj(x)\n    vjp: {x: conj(g)}\n    jvp: "
      "linear\n    samples: [{x: [2]}]\n";
  const std::string hidden[] = {std::string(1, '\0'),
                                "\x01",
                                "\x07",
                                "\x1b[2J",
                                "\x7f",
                                "\xff",
                                "\xc3",
                                "\xc0\x80",
                                "\xed\xa0\x80",
                                "\xf5\x80\x80\x80",
                                "\xe2\x80\xa8",
                                "\xe2\x80\xae",
                                "\xc2\x85",
                                "\xe2\x81\xa6",
                                "\xf0\x82\x82\xac"};
  for (const std::string& text : hidden)
    expect_refused(generate(before + text + after), errors_, directory_ / "out", "4:11", "does not show");
  // By an escape, where the file's own bytes are harmless.
  for (const char* escape : {"\\0", "\\x07", "\\e", "\\r", "\\x7f", "\\u2028", "\\u202e", "\\N"}) {
    std::string yaml = before.substr(0, before.size() - 1) + "\"a" + escape + "\"" + after.substr(1);
    expect_refused(generate(yaml), errors_, directory_ / "out", "4:10", "does not show");
  }
}

TEST_F(HostileText, AsANamespaceIsRefused) {
  const std::string rest = std::string("\nops:\n") + op("f(Tensor x) -> Tensor");
  for (const char* ns :
       {"class",         "std",    "bp",   "backplane", "namespace", "int",   "co_await", "and_eq", "_Bool",
        "static_assert", "lambda", "None", "True",      "def",       "linux", "NULL",     "_x",     "__x",
        "a__b",          "a b",    "a-b",  "1a",        "..",        "a/b",   "\"\"",     "int64_t"})
    expect_refused(generate(std::string("namespace: ") + ns + rest), errors_, directory_ / "out", "1:12", "namespace");
}

TEST_F(HostileText, AsASymbolIsRefused) {
  const std::string yaml = in_file(op("f(Tensor x) -> Tensor"));
  for (const char* symbol :
       {"../..", "..", "a/b", "/tmp/x", "a b", "class", "1a", "a\nb", "a;b", "std", "-x", "\xff"}) {
    EXPECT_EQ(generate(yaml, "h.yaml", symbol), 2) << symbol;
    EXPECT_THAT(errors_, HasSubstr("--symbol"));
    EXPECT_FALSE(fs::exists(directory_ / "out"));
  }
}

TEST_F(HostileText, AsANameOfTheLanguagesIsMadeAnother) {
  std::string ops;
  for (const char* name : {"class", "static_assert", "co_yield", "lambda", "None", "linux", "errno", "int64_t", "op",
                           "args", "std", "index", "README", "char8_t", "restrict", "self"})
    ops += op(std::string(name) + "(Tensor x) -> Tensor");
  for (const char* name : {"class", "static_assert", "co_yield", "lambda", "linux", "errno", "int64_t", "bp_value",
                           "op", "args", "outs", "std", "backplane", "restrict", "value", "values"})
    ops += op(std::string("with_") + name + "(Tensor x, Size " + name + "=1, Scalar other=2) -> Tensor",
              "    variants: [inplace, out]\n", std::string("conj(x) if ") + name + " == other else x");
  ASSERT_EQ(generate(in_file(ops)), 0) << errors_;
  expect_outputs_are_whole();
  EXPECT_THAT(read_text((directory_ / "out/docs/ops/index.md").string()), HasSubstr("# t::index"));
  EXPECT_THAT(read_text((directory_ / "out/docs/ops/list-of-ops.md").string()), HasSubstr("[index](index.md)"));
}

TEST_F(HostileText, ThatWouldBeOneNameIsRefused) {
  const std::pair<std::string, const char*> clashes[] = {
      {op("a.b(Tensor x) -> Tensor") + op("a_b(Tensor x) -> Tensor"), "'a_b'"},
      {op("a(Tensor x) -> Tensor", "    variants: [inplace]\n") + op("a_(Tensor x) -> Tensor"), "'a_'"},
      {op("a(Tensor x) -> Tensor", "    variants: [out]\n") + op("a_out(Tensor x) -> Tensor"), "'a_out'"},
      {op("class(Tensor x) -> Tensor") + op("class_(Tensor x) -> Tensor"), "'class_'"},
      {op("a(Tensor x) -> Tensor", "    variants: [inplace]\n    aliases: [c_]\n") +
           op("c(Tensor x) -> Tensor", "    variants: [inplace]\n"),
       "'c_'"},
      {op("a(Tensor x, Size class=1, Size class_=2) -> Tensor"), "'class_'"},
      {op("kernels(Tensor x) -> Tensor"), "'kernels'"},
      {op("a(Tensor x, Size self=1) -> Tensor"), "self"},
  };
  for (const auto& [ops, name] : clashes) {
    EXPECT_EQ(generate(in_file(ops)), 1) << ops;
    EXPECT_THAT(errors_, HasSubstr(name));
    EXPECT_FALSE(fs::exists(directory_ / "out"));
  }
}

}  // namespace
}  // namespace backplane::codegen::hostile_text_test

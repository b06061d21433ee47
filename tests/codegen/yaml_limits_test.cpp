// Files that are not a registry, too big, too deep, or that explode when expanded are refused, quickly and with a
// place.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "codegen_fixture.hpp"
#include "schema/yaml_tree.hpp"

namespace backplane::codegen {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

std::string report_of(const std::string& text) { return check_file(text, true).report(); }

TEST(YamlLimits, AliasesThatExplodeAreRefused) {
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 12; ++i) {
    const std::string before = "*a" + std::to_string(i - 1);
    bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + before;
    for (int k = 0; k < 9; ++k) bomb += ", " + before;
    bomb += "]\n";
  }
  EXPECT_THAT(report_of(bomb), HasSubstr("aliases expand to more than 1000000 nodes"));
}

TEST(YamlLimits, AnAliasWithinItselfIsRefused) {
  EXPECT_THAT(report_of("ops: &a [*a]\n"), HasSubstr("this alias contains itself"));
}

TEST(YamlLimits, ModestAliasesMeanWhatTheyPointTo) {
  const Checked checked = check_file(
      "namespace: t\nops:\n  - op: f(Tensor x) -> Tensor\n    doc: F.\n    primitive: unary\n    dtypes: bool\n    "
      "shape: same(x)\n    samples: &s [{x: [2]}]\n"
      "  - op: h(Tensor x) -> Tensor\n    doc: H.\n    primitive: unary\n    dtypes: bool\n    shape: same(x)\n    "
      "samples: *s\n");
  EXPECT_EQ("", checked.report());
  ASSERT_EQ(2u, checked.registry.ops.size());
  EXPECT_EQ(1u, checked.registry.ops[1].entry->samples.size());
}

TEST(YamlLimits, DeepNestingIsRefused) {
  EXPECT_THAT(report_of("ops: " + std::string(100, '[') + std::string(100, ']') + "\n"),
              HasSubstr("nested deeper than 64 levels"));
}

TEST(YamlLimits, HugeFilesAreRefusedUnread) {
  EXPECT_THAT(report_of("# " + std::string(kMaxFileBytes, 'x')), HasSubstr("at most 4194304 are read"));
}

TEST(YamlLimits, DeepFormulasAreRefused) {
  const auto repeated = [](const std::string& text) {
    std::string all;
    for (int i = 0; i < 10000; ++i) all += text;
    return all;
  };
  const auto report = [](const std::string& formula) {
    return report_of(
        in_file("  - op: f(Tensor x) -> Tensor\n    doc: F.\n    dtypes: bool\n    shape: same(x)\n    samples: [{x: "
                "[2]}]\n    decompose: \"" +
                formula + "\"\n"));
  };
  const auto refused = testing::AnyOf(HasSubstr("nests deeper than 200 levels"),
                                      HasSubstr("a chain of more than 500 steps"), HasSubstr("more than 200 bindings"));
  EXPECT_THAT(report(repeated("(") + "x" + repeated(")")), refused);
  EXPECT_THAT(report(repeated("-") + "1"), refused);
  EXPECT_THAT(report("1" + repeated(" + 1")), refused);
  EXPECT_THAT(report("1" + repeated(" ** 1")), refused);
  EXPECT_THAT(report("x" + repeated(".shape")), refused);
  EXPECT_THAT(report("x" + repeated("[0]")), refused);
  EXPECT_THAT(report(repeated("not ") + "true"), refused);
  EXPECT_THAT(report("true" + repeated(" and true")), refused);
  EXPECT_THAT(report(repeated("1 if true else ") + "2"), refused);
  EXPECT_THAT(report("let " + repeated("a = 1; ") + "a"), refused);
  EXPECT_THAT(report(repeated("add(x, ") + "x"), refused);
  EXPECT_THAT(report(repeated("add(y=") + "x"), refused);
  EXPECT_THAT(report(repeated("[") + "x"), refused);
  for (const char* piece : {"-", "["})
    EXPECT_NE("", report_of(in_file("  - op: \"f(Size n=" + repeated(piece) + "1) -> Tensor\"\n")));
}

TEST(YamlLimits, WhatIsNoYamlIsReportedAtItsPlace) {
  EXPECT_THAT(report_of("namespace: t\nops: [\n"), StartsWith("t.yaml:3:"));
  EXPECT_THAT(report_of(""), HasSubstr("the file is empty"));
  EXPECT_THAT(report_of("- a\n- b\n"), HasSubstr("the file must be a map"));
  EXPECT_THAT(report_of("namespace: 1x\nops: []\n"), StartsWith("t.yaml:1:12: error: the file needs a namespace"));
  EXPECT_THAT(report_of("namespace: t\n"), HasSubstr("the file needs 'ops'"));
  EXPECT_THAT(report_of("namespace: t\nops: []\nopps: []\n"), StartsWith("t.yaml:3:1: error: unknown key 'opps'"));
}

TEST(YamlLimits, BytesOfAnySortNeverCrash) {
  std::string noise;
  uint32_t state = 7;
  for (int round = 0; round < 300; ++round) {
    noise.clear();
    for (int i = 0; i < 200; ++i) {
      state = state * 1664525u + 1013904223u;
      noise += "[]{}:,-*&'\"|>%@`#!? \nop: namesac(Tensor x) -> \t\0"[state >> 8 & 0x2f];
    }
    report_of(noise);
    report_of(in_file("  - op: " + noise + "\n"));
    report_of(in_file("  - op: f(Tensor x) -> Tensor\n    decompose: " + noise + "\n"));
  }
}

TEST(YamlLimits, CommasInsideParenthesesNeedNoQuotesInFlowMaps) {
  const Checked checked = check_file(
      in_file("  - op: f(Tensor x, Tensor y) -> Tensor\n    doc: F.\n    primitive: binary\n    dtypes: floating\n    "
              "shape: broadcast(x, y)\n"
              "    vjp: {x: multiply(g, add(y, 1)), y: multiply(g, x)}\n    jvp: {x: add(t, 0), y: {none: because}}\n"
              "    samples: [{x: {shape: [2], gen: uniform(-1, 1)}, y: [2]}]\n"));
  EXPECT_EQ("", checked.report());
  ASSERT_EQ(1u, checked.registry.ops.size());
  EXPECT_EQ("multiply(g, add(y, 1))", checked.registry.ops[0].entry->vjp[0].text.value);
  EXPECT_EQ("uniform(-1, 1)", checked.registry.ops[0].entry->samples[0].values[0].second.tensors[0]->gen);
}

}  // namespace
}  // namespace backplane::codegen

// Sizes that depend on values, views with formulas, and samples that state values and results: the refusals, and
// their places.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "codegen_fixture.hpp"

namespace backplane::codegen::padded_test {
namespace {

std::string entry(const std::string& shape, const std::string& lines, const std::string& result = "Tensor") {
  return "  - op: f(Tensor x, Index which=0) -> " + result +
         "\n    doc: F.\n    host: true\n    dtypes: floating\n    batch: loop\n    vjp: zero\n    jvp: zero\n    "
         "shape: " +
         shape + "\n" + lines;
}
const std::string kSamples = "    samples: [{x: [2]}, {x: [2], which: 1}]\n";

std::string report(const std::string& entries) { return check_file(in_file(entries)).report(); }

TEST(Padded, TheLargestSizeIsNamed) {
  EXPECT_THAT(
      report(entry("dynamic(x.shape[0])", kSamples)),
      testing::AllOf(testing::HasSubstr("t.yaml:10:12: error: "), testing::HasSubstr("write dynamic(max=x.shape[0])")));
  EXPECT_THAT(report(entry("dynamic(most=x.shape[0])", kSamples)), testing::HasSubstr("write dynamic(max=x.shape[0])"));
  EXPECT_THAT(report(entry("dynamic(max=x.shape)", kSamples)), testing::HasSubstr("t.yaml:10:26: error: "));
}

TEST(Padded, TheResultIsWrittenIntoNoGivenTensor) {
  EXPECT_THAT(report(entry("dynamic(max=x.shape[0])", kSamples + "    variants: [out]\n")),
              testing::HasSubstr("remove 'variants'"));
}

TEST(Padded, TheCountHasANameOfItsOwn) {
  EXPECT_THAT(report(entry("dynamic(max=x.shape[0])", kSamples, "(Tensor values, Tensor count)")),
              testing::HasSubstr("has a result 'count' of its own"));
}

TEST(Padded, BothFormsAreEntries) {
  Diagnostics diagnostics;
  const auto file =
      read_registry_text("t.yaml", in_file(entry("dynamic(max=x.shape[0])", kSamples)), false, diagnostics);
  ASSERT_EQ(2u, file->entries.size());
  EXPECT_EQ("t::f_padded", file->entries[0].full_name);
  EXPECT_EQ("f_padded(Tensor x, Index which=0) -> (Tensor out, Tensor count)", file->entries[0].signature.text.value);
  EXPECT_EQ("t::f", file->entries[1].full_name);
  EXPECT_TRUE(file->entries[1].composite);
}

TEST(StatedSamples, ListsOfOneDepthHaveOneLength) {
  const auto of = [](const std::string& values) {
    return report(entry("x.shape", "    samples: [{x: {values: " + values + "}}, {x: [2], which: 1}]\n"));
  };
  EXPECT_THAT(of("[[1, 2], [3]]"), testing::AllOf(testing::StartsWith("t.yaml:11:37: error: "),
                                                  testing::HasSubstr("have one length at each depth")));
  EXPECT_THAT(of("[[1, 2], 3]"), testing::HasSubstr("have one length at each depth"));
  EXPECT_THAT(of("[1, [2, 3]]"), testing::HasSubstr("have one length at each depth"));
  EXPECT_THAT(of("[1, two]"), testing::HasSubstr("'two' is not a number"));
  EXPECT_EQ("", of("[[1, 2.5e3], [-inf, nan]]"));
}

TEST(StatedSamples, ResultsNeedTheValuesOfEveryTensor) {
  const auto of = [](const std::string& sample) {
    return report(entry("x.shape", "    samples: [" + sample + ", {x: [2], which: 1}]\n"));
  };
  EXPECT_THAT(of("{x: [2], expect: [1, 2]}"), testing::HasSubstr("'x' states none"));
  EXPECT_THAT(of("{x: {values: [1]}, expect: [1], error: ShapeError}"), testing::HasSubstr("not both"));
  EXPECT_EQ("", of("{x: {values: [1, 2]}, expect: [1, 2]}"));
}

TEST(ViewFormulas, ASliceListsItsAxes) {
  const std::string head =
      "  - op: f(Tensor x, Index?[] starts) -> Tensor\n    doc: F.\n    dtypes: any\n    alias: x\n    shape: ";
  const std::string samples = "\n    samples: [{x: [2], starts: [0]}]\n";
  EXPECT_THAT(report(head + "view.slice(x, [-1], starts, [none], [2])" + samples),
              testing::AllOf(testing::HasSubstr("t.yaml:7:32: error: "), testing::HasSubstr("one per axis")));
  EXPECT_THAT(report(head + "view.slice(x, [-1], [0])" + samples), testing::HasSubstr("takes 5 arguments, not 3"));
  EXPECT_THAT(report(head + "view.slice(x, [-1], [0], [none], [2])" + samples + "    vjp: zero\n"),
              testing::HasSubstr("has its rules from 'bp::slice'"));
}

}  // namespace
}  // namespace backplane::codegen::padded_test

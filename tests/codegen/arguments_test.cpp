// `args`: the meanings of arguments, of entries and of files, and the texts that show them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "codegen_fixture.hpp"
#include "emit/emit.hpp"

namespace backplane::codegen::arguments_test {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

std::string entry(const std::string& lines) {
  return "  - op: f(Tensor x, *, Axes? axis=none, str mode='same') -> Tensor\n    doc: F.\n    dtypes: bool\n    "
         "shape: "
         "same(x)\n    batch: loop\n    decompose: x if present(axis) else x\n    samples: [{x: [2]}]\n    choices: "
         "{mode: [same, full]}\n" +
         lines;
}

std::string file(const std::string& args, const std::string& lines) {
  return "namespace: t\n" + args + "ops:\n" + entry(lines);
}

std::string text_of(const std::string& args, const std::string& lines) {
  const Checked checked = check_file(file(args, lines));
  return checked.report().empty() ? docstring(checked.registry.ops[0]) : checked.report();
}

TEST(Arguments, HaveTheMeaningOfTheirEntry) {
  EXPECT_THAT(text_of("args: {x: Anything.}\n", "    args: {x: The signal.}\n"),
              HasSubstr("F.\n\nx: The signal.\nmode: "));
}

TEST(Arguments, HaveTheMeaningOfTheFileForTheirTypeAndName) {
  const std::string text = text_of("args: {x: Anything., axis: One axis., 'Axes? axis': All axes if absent.}\n", "");
  EXPECT_THAT(text, HasSubstr("\nx: Anything.\naxis: All axes if absent.\nmode: same or full.\n\nResult:"));
}

TEST(Arguments, OfUnknownNamesAreReported) {
  EXPECT_EQ(
      text_of("", "    args: {axes: The axes.}\n"),
      "t.yaml:11:12: error: 'args' names 'axes', which is not an argument of 'f'; did you mean 'axis'?; arguments "
      "are x, axis, mode\n");
  EXPECT_THAT(text_of("args: {'a-b': No name.}\n", ""), HasSubstr("t.yaml:2:9: error: 'a-b' names no argument"));
}

TEST(Arguments, HaveTextsOfOneLine) {
  EXPECT_THAT(text_of("", "    args:\n      x: |\n        The signal.\n        It is long.\n"),
              HasSubstr("the meaning of 'x' must be a text of one line"));
}

TEST(Docstring, StatesResultsDerivativesBatchingErrorsAndTheExample) {
  const std::string text =
      text_of("", "    errors: {ValueError: mode is unknown}\n    example: |\n      >>> f(1)\n      1\n");
  EXPECT_THAT(text, HasSubstr("Result:\n    out: the shape of x; dtype: the dtype of x.\n"));
  EXPECT_THAT(text, HasSubstr("Gradient:\n    None: no argument is differentiable.\n"));
  EXPECT_THAT(text, HasSubstr("Batching: through the decomposition.\n\nErrors:\n    ValueError: mode is unknown."));
  EXPECT_THAT(text, EndsWith("\n\nExample:\n    >>> f(1)\n    1"));
  EXPECT_THAT(text_of("", ""), Not(HasSubstr("Example")));
}

}  // namespace
}  // namespace backplane::codegen::arguments_test

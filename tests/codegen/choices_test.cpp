// `choices` of str arguments: the checks when codegen runs and when the op is called, and the places that show them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <sstream>

#include "cli/run.hpp"
#include "codegen_fixture.hpp"

namespace backplane::codegen::choices_test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

std::string entry(const std::string& lines, const std::string& type = "str mode='same'",
                  const std::string& shape = "x.shape + [1]") {
  return "  - op: f(Tensor x, *, " + type +
         ") -> Tensor\n    doc: F.\n    dtypes: bool\n    samples: [{x: [2]}, {x: [2], mode: odd, error: "
         "ValueError}]\n    "
         "batch: loop\n    shape: " +
         shape + "\n" + lines;
}
const char* kChoices = "    choices: {mode: [same, full]}\n";
const char* kFormula = "    decompose: \"x * 2 if mode == 'full' else x\"\n";

std::string root_of(const std::string& text, uint16_t rule) {
  const Checked checked = check_file(in_file(text));
  if (!checked.report().empty()) return checked.report();
  const CompiledOp& op = checked.registry.ops[0];
  const CompiledFormula* formula = op.find(rule);
  return formula ? render(op, formula->roots[0]) : "";
}

const char* kRefusal = "require_value(mode, or(eq(mode, 'same'), eq(mode, 'full')), 'mode to be same or full')";

TEST(Choices, AreCheckedBeforeAnythingIsComputed) {
  const std::string known = "or(eq(mode, 'same'), eq(mode, 'full'))";
  EXPECT_EQ("(concat(x.shape, [1]) if " + known + " else " + kRefusal + ")",
            root_of(entry(std::string(kChoices) + kFormula), BP_RULE_SHAPE));
  EXPECT_EQ("((bp::multiply(x, 2) if eq(mode, 'full') else x) if " + known + " else " + kRefusal + ")",
            root_of(entry(std::string(kChoices) + kFormula), BP_RULE_DECOMPOSE));
}

TEST(Choices, KeepAShapeWord) {
  const std::string text = entry(std::string(kChoices) + kFormula, "str mode='same'", "same(x)");
  EXPECT_EQ("", root_of(text, BP_RULE_SHAPE));
  EXPECT_THAT(root_of(text, BP_RULE_DECOMPOSE), HasSubstr(kRefusal));
}

TEST(Choices, AreTheOnlyTextsThatAreComparedWith) {
  const char* kWords = "error: 'mode' of 'f' is same or full, not 'zzz'";
  const auto report = [](const std::string& formula, const std::string& lets = "") {
    return root_of(entry(std::string(kChoices) + lets + "    decompose: \"" + formula + "\"\n"), BP_RULE_DECOMPOSE);
  };
  EXPECT_THAT(report("x * 2 if mode == 'zzz' else x"), StartsWith(std::string("t.yaml:10:34: ") + kWords));
  EXPECT_THAT(report("x * 2 if 'zzz' != mode else x"), StartsWith(std::string("t.yaml:10:26: ") + kWords));
  EXPECT_THAT(report("let m = mode; x if m == 'full' or m == 'zzz' else x * 2"), HasSubstr(kWords));
  EXPECT_THAT(report("x if wide else x * 2", "    let: {wide: \"mode == 'zzz'\"}\n"), HasSubstr(kWords));
  EXPECT_THAT(report("x * 2 if mode == 'full' else x"), HasSubstr("eq(mode, 'full')"));
}

TEST(Choices, MayBeAbsentWhereTheArgumentMay) {
  EXPECT_THAT(root_of(entry("    choices: {mode: full}\n    decompose: x\n", "str? mode"), BP_RULE_DECOMPOSE),
              HasSubstr("or(not(present(mode)), eq(mode, 'full'))"));
}

TEST(Choices, OfTwoArgumentsAreBothChecked) {
  const std::string root = root_of(
      entry("    choices: {mode: [same], edge: [wrap]}\n    decompose: x\n", "str mode='same', str edge='wrap'"),
      BP_RULE_DECOMPOSE);
  EXPECT_THAT(root, HasSubstr("require_value(mode, eq(mode, 'same'), 'mode to be same')"));
  EXPECT_THAT(root, HasSubstr("require_value(edge, eq(edge, 'wrap'), 'edge to be wrap')"));
}

TEST(Choices, AreShownInStubsAndPages) {
  const auto folder = std::filesystem::path(testing::TempDir()) / "backplane_choices";
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "t.yaml") << in_file(entry(std::string(kChoices) + kFormula));
  Options options;
  options.ops = {(folder / "t.yaml").string()};
  options.imports = {test_path("data/base.yaml")};
  options.out = folder.string();
  std::ostringstream out, errors;
  ASSERT_EQ(0, run(options, out, errors)) << errors.str();
  const std::string stubs = read_text((folder / "t.pyi").string());
  EXPECT_THAT(stubs, HasSubstr("from typing import Literal\n"));
  EXPECT_THAT(stubs, HasSubstr("def f(x: Tensor | Number, *, mode: Literal['same', 'full'] = 'same') -> Tensor:"));
  EXPECT_THAT(stubs, Not(HasSubstr("class TensorMethods"))) << "Tensor has methods of namespace bp alone";
  EXPECT_THAT(read_text((folder / "docs/ops/f.md").string()), HasSubstr("| `mode` | str: same or full |"));
  std::filesystem::remove_all(folder);
}

struct Mistake {
  const char* name;
  std::string entry;
  const char* report;
};
void PrintTo(const Mistake& mistake, std::ostream* out) { *out << mistake.name; }

class ChoicesMistakes : public testing::TestWithParam<Mistake> {};

TEST_P(ChoicesMistakes, AreReportedAtTheirPlace) {
  const std::string report = check_file(in_file(GetParam().entry)).report();
  EXPECT_THAT(report, StartsWith("t.yaml:" + std::string(GetParam().report)));
  EXPECT_EQ(report.find('\n'), report.size() - 1) << report;
}

INSTANTIATE_TEST_SUITE_P(
    All, ChoicesMistakes,
    testing::Values(
        Mistake{"form", entry(std::string(kFormula) + "    choices: [mode]\n"),
                "10:14: error: 'choices' must be a map"},
        Mistake{"argument", entry(std::string(kFormula) + "    choices: {mod: [same]}\n"),
                "10:15: error: 'mod' is not a str argument of 'f'"},
        Mistake{"type", entry(std::string(kFormula) + "    choices: {x: [same]}\n"),
                "10:15: error: 'x' is not a str argument of 'f'"},
        Mistake{"none", entry(std::string(kFormula) + "    choices: {mode: []}\n"),
                "10:21: error: 'mode' has no choices"},
        Mistake{"default", entry(std::string(kFormula) + "    choices: {mode: [full]}\n"),
                "10:15: error: the default of 'mode', 'same', is not among its choices"},
        Mistake{"sample",
                entry(std::string(kChoices) + kFormula) +
                    "  - op: h(Tensor x, str mode) -> Tensor\n    doc: H.\n    dtypes: bool\n    shape: same(x)\n    "
                    "decompose: x\n    choices: {mode: [a, b]}\n    samples: [{x: [2], mode: c}]\n",
                "17:30: error: the sample of 'mode' must be a or b"},
        Mistake{
            "call",
            entry(std::string(kChoices) + kFormula) +
                "  - op: h(Tensor x) -> Tensor\n    doc: H.\n    dtypes: bool\n    shape: same(x)\n    samples: [{x: "
                "[2]}]\n    decompose: f(x, mode='fall')\n",
            "16:26: error: 'mode' of 'f' is same or full, not 'fall'"}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace backplane::codegen::choices_test

// Samples that codegen derives and warns of, `fuzz`, and rules that would never run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "codegen_fixture.hpp"

namespace backplane::codegen {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

std::string wave(const std::string& arguments, const std::string& samples, const std::string& more = "",
                 const std::string& formula = "x * 2") {
  return in_file("  - op: f(Tensor x, *, " + arguments +
                 ") -> Tensor\n    doc: F.\n    dtypes: floating\n    shape: broadcast(x)\n    vjp: {x: g}\n    jvp: "
                 "linear\n    decompose: " +
                 formula + "\n" + more + "    samples: " + samples + "\n");
}

// What each derived sample sets, "speed=1.75".
std::vector<std::string> derived(const Checked& checked) {
  std::vector<std::string> texts;
  for (const Sample& sample : checked.registry.ops.at(0).derived)
    for (const auto& [index, value] : sample.values) {
      const std::string& name = checked.registry.ops[0].entry->signature.args[index].name;
      if (name != sample.varies) continue;
      const Literal& literal = value.literal;
      texts.push_back(name + "=" +
                      (literal.kind == Literal::Kind::kFloat  ? std::to_string(literal.number).substr(0, 5)
                       : literal.kind == Literal::Kind::kBool ? (literal.integer ? "true" : "false")
                                                              : literal.text));
    }
  return texts;
}

TEST(DerivedSamples, SetWhatNoSampleSets) {
  const Checked checked =
      check_file(wave("Scalar speed=1, bool twice=false", "[{x: [0]}, {x: [2]}]", "", "x * speed if twice else x * 2"));
  ASSERT_EQ("", checked.report());
  EXPECT_THAT(derived(checked), testing::ElementsAre("speed=1.750", "twice=true"));
  const std::string warnings = checked.diagnostics.render_warnings();
  EXPECT_THAT(warnings, HasSubstr("t.yaml:3:9: warning: 'f': no sample sets 'speed' to another value than 1"));
  EXPECT_THAT(warnings, HasSubstr("no sample sets 'twice' to another value than false"));
  // Of the sample that computes something.
  EXPECT_EQ(std::vector<int64_t>{2}, checked.registry.ops[0].derived[0].values[0].second.tensors[0]->shape);
}

TEST(DerivedSamples, UseEachWordThatNoSampleUses) {
  const std::string choices = "    choices: {kind: [sin, cos, tan]}\n";
  const Checked checked = check_file(
      wave("str kind='sin'", "[{x: [2]}, {x: [2], kind: tan}]", choices, "\"x * 2 if kind == 'cos' else x\""));
  ASSERT_EQ("", checked.report());
  EXPECT_THAT(derived(checked), testing::ElementsAre("kind=cos"));
  EXPECT_THAT(checked.diagnostics.render_warnings(), HasSubstr("no sample uses kind='cos'"));
}

TEST(DerivedSamples, AreNoneWhereTheSamplesSetAll) {
  const Checked checked = check_file(wave("Scalar speed=1", "[{x: [2]}, {x: [2], speed: 3}]", "", "x * speed"));
  EXPECT_THAT(derived(checked), IsEmpty());
  EXPECT_EQ("", checked.diagnostics.render_warnings());
}

TEST(DerivedSamples, AreOfTheRangeThatIsStated) {
  const std::string fuzz = "    fuzz: {speed: 'uniform(-3, 5)'}\n";
  const Checked checked = check_file(wave("Scalar speed=1", "[{x: [2]}]", fuzz, "x * speed"));
  ASSERT_EQ("", checked.report());
  EXPECT_THAT(derived(checked), testing::ElementsAre("speed=-1.50", "speed=3.500"));
  EXPECT_EQ("", checked.diagnostics.render_warnings());
  for (const auto& [range, says] :
       std::map<std::string, std::string>{{"{speed: 'uniform(3)'}", "write uniform(LOW, HIGH)"},
                                          {"{speed: 'uniform(3, 1)'}", "write uniform(LOW, HIGH)"},
                                          {"{speed: normal}", "write uniform(LOW, HIGH)"},
                                          {"{x: 'uniform(0, 1)'}", "'fuzz' names 'x', which is not a Scalar of 'f'"}})
    EXPECT_THAT(check_file(wave("Scalar speed=1", "[{x: [2]}]", "    fuzz: " + range + "\n", "x * speed")).report(),
                HasSubstr(says));
}

TEST(Samples, HaveElementsSomewhere) {
  EXPECT_THAT(check_file(wave("Scalar speed=1", "[{x: [0]}, {x: [3, 0]}]", "", "x * speed")).report(),
              HasSubstr("no sample of 'f' has an element"));
}

TEST(Derivatives, OfIntegersAreRefused) {
  const auto report = [](const std::string& rules) {
    return check_file(
               in_file("  - op: f(Tensor x) -> Tensor\n    doc: F.\n    dtypes: {accept: floating, out: int8}\n    "
                       "shape: broadcast(x)\n    decompose: x * 2\n    samples: [{x: [2]}]\n" +
                       rules))
        .report();
  };
  const char* kRefusal = "no gradient passes through the results of 'f', which are not floating or complex";
  for (const char* rules : {"    vjp: {x: g}\n", "    jvp: linear\n", "    partial: {x: 1}\n", "    vjp: decompose\n"})
    EXPECT_THAT(report(rules), HasSubstr(kRefusal)) << rules;
  EXPECT_EQ("", report(""));
  EXPECT_EQ("", report("    vjp: zero\n    jvp: zero\n"));
}

// An argument hides the short word for a cotangent, a tangent or a piece; the long one is there for that.
TEST(Names, OfArgumentsAreFree) {
  const Checked checked =
      check_file(in_file("  - op: f(Tensor g, Tensor t, Tensor v) -> Tensor\n    doc: F.\n    dtypes: floating\n    "
                         "shape: broadcast(g, t, v)\n"
                         "    vjp: {g: cotangent * t, t: cotangent * g, v: cotangent}\n"
                         "    jvp: {g: tangent * t, t: tangent.t * g, v: like vjp}\n    decompose: g * t + v\n"
                         "    samples: [{g: [2], t: [2], v: [2]}]\n"));
  ASSERT_EQ("", checked.report());
  const CompiledOp& op = checked.registry.ops[0];
  const auto shown = [&](uint16_t rule, uint32_t target) { return render(op, op.find(rule, target)->roots[0]); };
  EXPECT_EQ("FIT g (bp::multiply(g, t))", shown(BP_RULE_VJP, 0));
  EXPECT_EQ("bp::multiply(t.g, t)", shown(BP_RULE_JVP, 0));
  EXPECT_EQ("t.v", shown(BP_RULE_JVP, 2));
  const uint32_t product = op.program.nodes()[op.find(BP_RULE_VJP, 0)->roots[0]].inputs[0];
  EXPECT_EQ(BP_NODE_COTANGENT, op.program.nodes()[op.program.nodes()[product].inputs[0]].kind);
}

TEST(Types, OfOtherLanguagesAreNamedHere) {
  const auto report = [](const std::string& type) {
    return check_file(in_file("  - op: f(" + type + " a) -> Tensor\n")).report();
  };
  EXPECT_THAT(report("float"), HasSubstr("unknown type 'float'; write Scalar, a number"));
  EXPECT_THAT(report("int"), HasSubstr("write Size for a count, Index for a position"));
  EXPECT_THAT(report("string"), HasSubstr("write str"));
}

}  // namespace
}  // namespace backplane::codegen

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

// What each derived sample sets, "speed=1.700".
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
  EXPECT_THAT(derived(checked), testing::ElementsAre("speed=1.700", "twice=true"));
  const std::string warnings = checked.diagnostics.render_warnings();
  EXPECT_THAT(warnings, HasSubstr("t.yaml:3:9: warning: 'f': no sample sets 'speed' to another value than 1"));
  EXPECT_THAT(warnings, HasSubstr("no sample sets 'twice' to another value than false"));
  // Of the sample that computes something.
  EXPECT_EQ(std::vector<int64_t>{2}, checked.registry.ops[0].derived[0].values[0].second.tensors[0]->shape);
}

std::vector<std::string> varied(const Checked& checked) {
  std::vector<std::string> texts;
  for (const Sample& sample : checked.registry.ops.at(0).derived)
    for (const auto& [index, value] : sample.values) {
      if (checked.registry.ops[0].entry->signature.args[index].name != sample.varies) continue;
      std::string text = sample.varies + "=";
      if (value.kind == SampleValue::Kind::kTensor)
        for (const int64_t size : value.tensors[0]->shape) text += std::to_string(size) + " ";
      else if (value.literal.kind == Literal::Kind::kInts)
        for (const int64_t one : value.literal.ints) text += std::to_string(one) + " ";
      else
        text += std::to_string(value.literal.integer);
      texts.push_back(text);
    }
  return texts;
}

TEST(DerivedSamples, TryAnotherAxisAndOneFromTheOtherEnd) {
  const auto axes = [](const std::string& samples) {
    const Checked checked = check_file(wave("Axis axis=-1", samples, "", "x * (axis + 1)"));
    EXPECT_EQ("", checked.report());
    return varied(checked);
  };
  EXPECT_THAT(axes("[{x: [2, 3]}]"), testing::ElementsAre("axis=0", "axis=1"));
  EXPECT_THAT(axes("[{x: [2, 3, 4], axis: 0}, {x: [2, 3], axis: 1}]"), testing::ElementsAre("axis=-3"));
  EXPECT_THAT(axes("[{x: [2, 3], axis: 0}, {x: [2, 3]}]"), IsEmpty());
  EXPECT_THAT(check_file(wave("Axis axis=-1", "[{x: [3]}]", "", "x * (axis + 1)")).diagnostics.render_warnings(),
              HasSubstr("no sample sets 'axis' to another value than -1"));
}

TEST(DerivedSamples, SetSizesAxesAndTensorsThatNoSampleSets) {
  const Checked size = check_file(wave("Size n=1", "[{x: [2]}]", "", "x * n"));
  EXPECT_THAT(varied(size), testing::ElementsAre("n=2"));
  EXPECT_THAT(size.diagnostics.render_warnings(), HasSubstr("no sample sets 'n' to another value than 1"));
  const Checked axes = check_file(wave("Axes? axes=none", "[{x: [2, 3]}]", "", "x * (1 if axes is none else 2)"));
  EXPECT_THAT(varied(axes), testing::ElementsAre("axes=1 "));
  const Checked tensor = check_file(wave("Tensor? b=none", "[{x: [2, 3]}]", "", "x * default(b, x)"));
  EXPECT_THAT(varied(tensor), testing::ElementsAre("b=2 3 "));
  EXPECT_THAT(tensor.diagnostics.render_warnings(), HasSubstr("no sample sets 'b' to another value than none"));
}

TEST(DerivedSamples, BroadcastWhereAllTensorsHaveOneShape) {
  const auto shapes = [](const std::string& samples) {
    const Checked checked =
        check_file(in_file("  - op: f(Tensor x, Tensor y) -> Tensor\n    doc: F.\n    dtypes: floating\n    shape: "
                           "broadcast(x, y)\n    vjp: {x: g, y: g}\n    jvp: linear\n    decompose: x + y\n    "
                           "samples: " +
                           samples + "\n"));
    EXPECT_EQ("", checked.report());
    return varied(checked);
  };
  EXPECT_THAT(shapes("[{x: [2, 3], y: [2, 3]}]"), testing::ElementsAre("x=1 3 ", "y=1 3 "));
  EXPECT_THAT(shapes("[{x: [2, 3], y: [3]}]"), IsEmpty());
}

TEST(DerivedSamples, DoNotStandForWhatIsRight) {
  const auto warnings = [](const std::string& samples) {
    return check_file(in_file("  - op: f(Tensor x) -> Tensor\n    doc: F.\n    dtypes: floating\n    shape: same(x)\n"
                              "    host: true\n    vjp: {none: R}\n    jvp: {none: R}\n    batch: loop\n    samples: " +
                              samples + "\n"))
        .diagnostics.render_warnings();
  };
  EXPECT_THAT(warnings("[{x: [2]}]"), HasSubstr("nothing but its kernel states what 'f' computes"));
  EXPECT_EQ("", warnings("[{x: {values: [1, 2]}, expect: [2, 4]}]"));
}

TEST(DerivedSamples, UseAFractionWhereAllNumbersAreIntegers) {
  const Checked checked = check_file(wave("Scalar speed=1", "[{x: [2]}, {x: [2], speed: 3}]", "", "x * speed"));
  EXPECT_THAT(derived(checked), testing::ElementsAre("speed=1.700"));
  EXPECT_EQ("", checked.diagnostics.render_warnings());
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
  const Checked checked = check_file(wave("Scalar speed=1", "[{x: [2]}, {x: [2], speed: 0.5}]", "", "x * speed"));
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

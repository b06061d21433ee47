// Scalar functions: what a formula over elements may say, the mistakes that it may hold, each at its place, and headers
// of another registry's ops that call those of bp.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "cli/run.hpp"
#include "codegen_fixture.hpp"

namespace backplane::codegen::scalar_test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

// Arithmetic with scalars, as a registry of bp has it, whose entries begin at line 3.
std::string op(const std::string& signature, const std::string& dtypes, const std::string& shape,
               const std::string& scalar) {
  return "  - op: " + signature + " -> Tensor\n    doc: F.\n    primitive: unary\n    dtypes: " + dtypes +
         "\n    shape: " + shape + "\n    vjp: zero\n    jvp: zero\n    samples: [{x: [2]}]\n" + scalar;
}
std::string unary(const std::string& scalar, const std::string& dtypes = "floating") {
  return op("f(Tensor x, *, Scalar a=1)", dtypes, "broadcast(x)", scalar);
}

struct Mistake {
  const char* name;
  std::string entry;
  const char* place;
  const char* words;
};
void PrintTo(const Mistake& mistake, std::ostream* out) { *out << mistake.name; }

const Mistake kMistakes[] = {
    {"unknown_name", unary("    scalar: x + z\n"), "11:17", "unknown name 'z'; did you mean 'x'?; names here are x, a"},
    {"unknown_op", unary("    scalar: x + sqrrt(x)\n"), "11:17", "unknown op 'sqrrt'"},
    {"unknown_class", unary("    scalar: {float: x}\n"), "11:14", "unknown dtype class 'float'"},
    {"class_missing", unary("    scalar: {integer: x}\n", "numeric"), "11:14",
     "'scalar' says nothing about float32, which 'f' accepts"},
    {"class_too_many", unary("    scalar: {floating: x, integer: x}\n"), "11:27", "accepts none of these dtypes"},
    {"wrong_dtype", unary("    scalar: cast(x, int32)\n", "[float32]"), "11:13",
     "found int32 where float32 is expected"},
    {"fraction_of_integer", unary("    scalar: x + 0.5\n", "[int32]"), "11:15",
     "found a number where int32 is expected"},
    {"two_dtypes", unary("    scalar: x + cast(x, float64)\n", "[float32]"), "11:15",
     "found float64 where float32 is expected"},
    {"bool_arithmetic", unary("    scalar: x + x\n", "bool"), "11:15", "'add' does not compute in bool"},
    {"number_as_bool", unary("    scalar: x if a else 0\n"), "11:15", "a choice is by a bool, found float32"},
    {"no_intrinsic", unary("    scalar: intrinsic(x)\n"), "11:13", "no dialect has an intrinsic for 'f' of float32"},
    {"half", unary("    scalar: cast(x, float16)\n"), "11:13", "a half float is stored, not computed with"},
    {"builtin_arity", unary("    scalar: where(x > 0, x)\n"), "11:13", "'where' takes 3 values by position, found 2"},
    {"shape_asked", unary("    scalar: x * x.ndim\n"), "11:19", "an element has no 'ndim'"},
    {"not_elementwise", op("f(Tensor x)", "floating", "scalar()", "    batch: loop\n    scalar: x\n"), "12:13",
     "is not elementwise: its shape is not broadcast"},
    {"itself", unary("    scalar: f(x)\n", "[float32]"), "11:13", "leads back to itself"},
    {"refused_without_reason", unary("    scalar: {none: }\n"), "11:13", "the refusal has no reason"},
    {"empty", unary("    scalar: ''\n"), "11:14", "the formula is empty"},
};

class ScalarMistakes : public testing::TestWithParam<Mistake> {};

TEST_P(ScalarMistakes, AreReportedAtTheirPlace) {
  const Mistake& mistake = GetParam();
  const std::string report = check_file(in_file(mistake.entry)).report();
  EXPECT_THAT(report, StartsWith(std::string("t.yaml:") + mistake.place + ": error: "));
  EXPECT_THAT(report, HasSubstr(mistake.words));
}

INSTANTIATE_TEST_SUITE_P(Scalar, ScalarMistakes, testing::ValuesIn(kMistakes),
                         [](const auto& info) { return info.param.name; });

const ScalarFunction* find(const Checked& checked, const std::string& name) {
  for (const auto& function : checked.registry.scalars)
    if (function->name == name) return function.get();
  return nullptr;
}

TEST(Scalar, FollowsFromADecompositionThatIsOverElements) {
  const Checked checked = check_file(
      in_file("  - op: f(Tensor x) -> Tensor\n    doc: F.\n    dtypes: {accept: floating, out: bool}\n    shape: "
              "broadcast(x)\n    vjp: zero\n    jvp: zero\n    decompose: add(x, 1) > x\n    samples: [{x: [2]}]\n"),
      true);
  // Without `add` here, no function is made, and only the decomposition is reported.
  EXPECT_EQ(find(checked, "t_f_float32"), nullptr);
  EXPECT_THAT(checked.report(), HasSubstr("unknown op 'add'"));
}

TEST(Scalar, ARefusalLeavesTheEntryWithoutAFunction) {
  const Checked checked = check_file(in_file(unary("    scalar: {none: it depends on the weather}\n")));
  EXPECT_EQ(checked.report(), "");
  EXPECT_EQ(find(checked, "t_f_float32"), nullptr);
}

TEST(Scalar, DefinitionsThatDoubleAtEachLevelEndInAnError) {
  std::string text = "namespace: t\ndefine:\n  d0(x): x + x\n";
  for (int i = 1; i < 40; ++i)
    text += "  d" + std::to_string(i) + "(x): d" + std::to_string(i - 1) + "(x) + d" + std::to_string(i - 1) + "(x)\n";
  text += "ops:\n" + unary("    scalar: d39(x)\n", "[float32]");
  EXPECT_THAT(check_file(text).report(), HasSubstr("too large; split the op"));
}

// The registry of another project, whose functions call each other and functions of an imported registry.
class ScalarHeaders : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) / ("scalar_headers_" + std::to_string(::getpid()));
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    const auto write = [&](const char* name, const std::string& text) { std::ofstream(folder_ / name) << text; };
    write("base.yaml",
          "namespace: bp\nops:\n" + op("twice(Tensor x)", "numeric", "broadcast(x)",
                                       "    scalar: {complex: 'complex(2 * real(x), 2 * imag(x))', real: x * 2}\n"));
    write("own.yaml", "namespace: own\nops:\n" + op("four(Tensor x, *, Scalar a=1)", "real", "broadcast(x)",
                                                    "    scalar: twice(twice(x)) + a\n"));
    generate("base.yaml", {}, true);
    generate("own.yaml", {(folder_ / "base.yaml").string()}, false);
  }

  void TearDown() override { fs::remove_all(folder_); }

  void generate(const std::string& file, const std::vector<std::string>& imports, bool base) {
    Options options;
    options.ops = {(folder_ / file).string()};
    options.imports = imports;
    options.default_import = false;
    options.base = base;
    options.out = (folder_ / "out").string();
    options.emit = {"scalar"};
    std::ostringstream out, errors;
    ASSERT_EQ(run(options, out, errors), 0) << errors.str();
  }

  std::string header(const char* name) const { return read_text((folder_ / "out/include" / name).string()); }

  fs::path folder_;
};

TEST_F(ScalarHeaders, AnOutOfTreeOpCallsThoseOfTheRegistry) {
  std::ofstream(folder_ / "main.cpp") << "#include \"own/scalar.hpp\"\n"
                                         "int main() {\n"
                                         "  if (own_four_float32(1.5f, 1.0f) != 7.0f) return 1;\n"
                                         "  if (own::scalar::four::of(int8_t{40}, int8_t{0}) != -96) return 2;\n"
                                         "  return bp_twice_complex64({1, 2}).im == 4 ? 0 : 3;\n}\n";
  const std::string program = (folder_ / "main").string();
  ASSERT_EQ(std::system((std::string(BACKPLANE_CODEGEN_CXX) +
                         " -std=c++17 -Wall -Wextra -Werror -fsanitize=undefined " + "-fno-sanitize-recover -I" +
                         (folder_ / "out/include").string() + " -o " + program + " " + program + ".cpp")
                            .c_str()),
            0);
  EXPECT_EQ(std::system(program.c_str()), 0);
}

TEST_F(ScalarHeaders, EachDialectIncludesItsOwnHeaderOfTheRegistry) {
  for (const char* extension : {"hpp", "cuh", "glsl", "cl"}) {
    const std::string name = std::string("own/scalar.") + extension;
    EXPECT_THAT(header(name.c_str()), HasSubstr(std::string("#include \"backplane/scalar.") + extension + "\""));
    EXPECT_THAT(header(name.c_str()), HasSubstr("own_four_float32("));
  }
}

// WGSL has no preprocessor: what all functions call is in the registry's file alone, and so said.
TEST_F(ScalarHeaders, TheHeaderInWgslNamesTheFilesThatItNeeds) {
  EXPECT_THAT(header("own/scalar.wgsl"), HasSubstr("put the text of backplane/scalar.wgsl into the same module"));
  EXPECT_THAT(header("own/scalar.wgsl"), HasSubstr("fn own_four_float32(x_0: f32, a_1: f32) -> f32 {"));
  EXPECT_THAT(header("own/scalar.wgsl"), HasSubstr("fn own_four_int64(x_0: vec2<u32>, a_1: vec2<u32>) -> vec2<u32> {"));
  EXPECT_THAT(header("own/scalar.wgsl"), Not(HasSubstr("fn bp_keep(")));
  EXPECT_THAT(header("own/scalar.wgsl"), Not(HasSubstr("float64")));
  EXPECT_THAT(header("backplane/scalar.wgsl"), HasSubstr("fn bp_keep("));
}

TEST_F(ScalarHeaders, OnlyTheDialectsThatAreAskedForAreWritten) {
  fs::remove_all(folder_ / "out");
  Options options;
  options.ops = {(folder_ / "base.yaml").string()};
  options.base = true;
  options.out = (folder_ / "out").string();
  options.emit = {"scalar"};
  options.dialects = {"glsl"};
  std::ostringstream out, errors;
  ASSERT_EQ(run(options, out, errors), 0) << errors.str();
  EXPECT_TRUE(fs::exists(folder_ / "out/include/backplane/scalar.glsl"));
  EXPECT_FALSE(fs::exists(folder_ / "out/include/backplane/scalar.hpp"));
  options.dialects = {"hlsl"};
  EXPECT_EQ(run(options, out, errors), 2);
  EXPECT_THAT(errors.str(), HasSubstr("unknown dialect 'hlsl'; did you mean 'glsl'?"));
}

}  // namespace
}  // namespace backplane::codegen::scalar_test

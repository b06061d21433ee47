// Faults and regions of entries: as stated, as they follow from decompositions, and the report of each mistake.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "codegen_fixture.hpp"
#include "emit/emit.hpp"

namespace backplane::codegen {
namespace {

using ::testing::HasSubstr;

// An elementwise op of two tensors, by its decomposition.
std::string binary(const std::string& name, const std::string& decompose, const std::string& more = "") {
  return "  - op: " + name + "(Tensor x, Tensor y) -> Tensor\n    doc: D.\n" + more +
         "    dtypes: numeric\n    shape: broadcast(x, y)\n    vjp: decompose\n    jvp: decompose\n    decompose: " +
         decompose + "\n    samples: [{x: [2], y: [2]}]\n";
}
// One that is a primitive with these faults.
std::string primitive(const std::string& name, const std::string& faults) {
  return "  - op: " + name +
         "(Tensor x, Tensor y) -> Tensor\n    doc: D.\n    primitive: binary\n    dtypes: numeric\n    shape: "
         "broadcast(x, y)\n    vjp: zero\n    jvp: zero\n    faults: " +
         faults + "\n    samples: [{x: [2], y: [2]}]\n";
}
std::string reduction(const std::string& region, const std::string& shape = "reduce(x, axis, keepdims)") {
  return "  - op: f(Tensor x, Axes? axis=none, *, bool keepdims=false) -> Tensor\n    doc: D.\n    primitive: reduce\n"
         "    region: " +
         region + "\n    dtypes: numeric\n    shape: " + shape +
         "\n    vjp: zero\n    jvp: zero\n    batch: loop\n    samples: [{x: [2]}]\n";
}

uint64_t faults_of(const Checked& checked, const std::string& name) {
  EXPECT_EQ(checked.report(), "");
  for (const CompiledOp& op : checked.registry.ops)
    if (op.entry->name() == name) return op.faults;
  ADD_FAILURE() << "no op " << name;
  return 0;
}
Checked check_entries(const std::string& entries) { return check_file(in_file(entries)); }

TEST(Faults, AnEntryStatesThemOrHasThoseOfItsDecomposition) {
  const Checked checked = check_entries(binary("uses_both", "power(div(x, y), y)") + primitive("div", "[division]") +
                                        primitive("power", "exponent") + binary("uses_none", "x + y") +
                                        binary("denies", "div(x, y)", "    faults: none\n") +
                                        binary("uses_user", "uses_both(x, y) + denies(x, y)"));
  EXPECT_EQ(faults_of(checked, "div"), uint64_t{BP_FAULT_DIVISION});
  EXPECT_EQ(faults_of(checked, "uses_both"), uint64_t{BP_FAULT_DIVISION | BP_FAULT_EXPONENT});
  EXPECT_EQ(faults_of(checked, "uses_none"), uint64_t{BP_FAULT_NONE});
  EXPECT_EQ(faults_of(checked, "denies"), uint64_t{BP_FAULT_NONE});
  EXPECT_EQ(faults_of(checked, "uses_user"), uint64_t{BP_FAULT_DIVISION | BP_FAULT_EXPONENT});
}

TEST(Faults, ANumberOfTheFormulaThatIsAllowedIsNoFault) {
  const Checked checked = check_entries(primitive("div", "division") + primitive("power", "exponent") +
                                        primitive("at", "index") + binary("half", "div(x, 2) + y") +
                                        binary("by_nothing", "div(x, 0) + y") + binary("cube", "power(x, 3) + y") +
                                        binary("inverse", "power(x, -1) + y") + binary("second", "at(x, 1) + y"));
  EXPECT_EQ(faults_of(checked, "half"), uint64_t{BP_FAULT_NONE});
  EXPECT_EQ(faults_of(checked, "by_nothing"), uint64_t{BP_FAULT_DIVISION});
  EXPECT_EQ(faults_of(checked, "cube"), uint64_t{BP_FAULT_NONE});
  EXPECT_EQ(faults_of(checked, "inverse"), uint64_t{BP_FAULT_EXPONENT});
  EXPECT_EQ(faults_of(checked, "second"), uint64_t{BP_FAULT_INDEX});
}

TEST(Faults, ASampleThatRaisesDataErrorNeedsOne) {
  std::string entry = primitive("div", "none");
  entry.replace(entry.rfind("[{x: [2], y: [2]}]"), 18, "[{x: [2], y: [2], error: DataError}, {x: [2], y: [2]}]");
  EXPECT_THAT(check_entries(entry).report(), HasSubstr("the sample raises DataError, but 'div' has no faults"));
}

TEST(Faults, RecordsAndScalarFunctionsHaveThem) {
  std::string entry = primitive("div", "[division, domain]\n    scalar: x + y");
  entry.replace(entry.find("numeric"), 7, "real");
  const Checked checked = check_entries(entry);
  ASSERT_EQ(checked.report(), "");
  OutputSet out;
  const EmitContext context{checked.registry, "t", "t"};
  emit_records(context, out);
  EXPECT_THAT(out.files().at("t_records.c"), HasSubstr("0, 0u, 20u, 0, 0, 0,\n#endif"));
  emit_scalar(context, out);
  EXPECT_THAT(out.files().at("include/t/scalar.hpp"),
              HasSubstr("struct div {\n  static constexpr unsigned kFaults = 20;\n"));
}

TEST(Regions, AreWords) {
  const std::pair<const char*, uint16_t> joins[] = {{"sum", BP_JOIN_SUM}, {"prod", BP_JOIN_PROD}, {"max", BP_JOIN_MAX},
                                                    {"min", BP_JOIN_MIN}, {"any", BP_JOIN_ANY},   {"all", BP_JOIN_ALL}};
  for (const auto& [word, join] : joins) {
    const Checked checked = check_entries(reduction("reduce(" + std::string(word) + ")"));
    ASSERT_EQ(checked.report(), "") << word;
    EXPECT_EQ(checked.registry.ops[0].entry->region, BP_REGION_REDUCE) << word;
    EXPECT_EQ(checked.registry.ops[0].entry->join, join) << word;
  }
  const Checked left_out = check_entries(binary("plain", "x + y"));
  ASSERT_EQ(left_out.report(), "");
  EXPECT_EQ(left_out.registry.ops[0].entry->region, BP_REGION_DERIVED);
}

TEST(Regions, MistakesAreReportedAtTheirPlace) {
  const std::pair<std::string, const char*> mistakes[] = {
      {reduction("reduce(mean)"), "t.yaml:6:13: error: 'region' is 'reduce(mean)'"},
      {reduction("cast"), "'f' has the region cast, so it must be elementwise, with one Tensor, the first argument"},
      {reduction("view"), "so it must be a view of its first argument"},
      {reduction("elementwise"), "so it must be elementwise"},
      {reduction("product"), "so it must have the shape matmul(x, y) of its first two arguments"},
      {reduction("reduce(sum)", "same(x)"), "so it must have the shape reduce(x, axes) of its first two arguments"},
      {primitive("f", "indices"), "t.yaml:10:13: error: 'faults' is 'indices'; the words are none, index, division"},
      {primitive("f", "[none, index]"), "'faults' says none and names some"},
  };
  for (const auto& [entry, words] : mistakes) EXPECT_THAT(check_entries(entry).report(), HasSubstr(words));
}

}  // namespace
}  // namespace backplane::codegen

// Copying and verifying op records: a valid record is copied whole, an invalid one is refused.
#include "record/op_record.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "record/evaluator.hpp"
#include "record/multiply_record.hpp"
#include "record/toy_record.hpp"

namespace backplane::core {
namespace {

using testing::HasSubstr;

std::string refusal(ToyRecord& toy) {
  return error_of([&] { toy.record(); });
}

TEST(CopyRecord, KeepsWhatItWasGivenAndNoPointerOfTheCaller) {
  auto toy = std::make_unique<ToyRecord>(multiply());
  const auto op = toy->record();
  toy.reset();  // under asan a pointer that was kept shows here
  EXPECT_EQ(op->name, "t::multiply.test");
  ASSERT_EQ(op->args.size(), 4u);
  EXPECT_STREQ(op->args[1].name, "y");
  EXPECT_EQ(op->args[2].default_value.u.f, 1.0);
  EXPECT_TRUE(op->args[3].flags & BP_ARG_HAS_DEFAULT);
  EXPECT_EQ(op->n_required, 2u);
  EXPECT_EQ(op->tensor_args, 3u);
  EXPECT_TRUE(op->simple_tensors);
  EXPECT_STREQ(op->def.program->names[0], "t::mul");
  EXPECT_STREQ(op->def.program->consts[0].u.s, "text");
  EXPECT_STREQ(op->formulas[1].text, "mul(g, x)");
  EXPECT_EQ(op->find_formula(BP_RULE_VJP, 1), &op->formulas[1]);
  EXPECT_EQ(op->find_formula(BP_RULE_VJP, 2), nullptr);
  EXPECT_EQ(op->find_formula(BP_RULE_DECOMPOSE), &op->formulas[2]);
  EXPECT_EQ(op->find_formula(BP_RULE_JVP), nullptr);
  EXPECT_STREQ(op->info.name, "t::multiply.test");
}

TEST(CopyRecord, KnowsWhatEachFormulaReads) {
  const auto op = multiply().record();
  const FreeNames& for_x = free_names(*op, op->formulas[0]);
  EXPECT_EQ(for_x.args, 2u);
  EXPECT_EQ(for_x.arg_metadata, 1u);  // what FIT looks at
  EXPECT_EQ(for_x.outs, 0u);
  EXPECT_EQ(free_names(*op, op->formulas[2]).args, 3u);
}

TEST(CopyRecord, MetadataOfAnArgumentIsNotItsData) {
  ToyRecord toy("t::op");
  toy.tensors({"x", "y"});
  toy.arg("zs", BP_TYPE_TENSOR, BP_ARG_LIST);
  toy.result("out", "same", {0});
  const uint32_t x = toy.node(BP_NODE_ARG, {}, 0);
  const uint32_t y = toy.node(BP_NODE_ARG, {}, 1);
  const uint32_t zs = toy.node(BP_NODE_ARG, {}, 2);
  const uint32_t g = toy.node(BP_NODE_COTANGENT);
  const uint32_t out = toy.node(BP_NODE_OUT);
  const uint32_t z = toy.node(BP_NODE_VAR, {}, 0);
  const uint32_t shapes = toy.node(BP_NODE_MAP, {zs, toy.node(BP_NODE_NDIM, {z})}, 0);
  const uint32_t chosen = toy.node(BP_NODE_IF, {toy.builtin("present", {x}), y, g});
  const uint32_t root =
      toy.call("t::f", {chosen, toy.node(BP_NODE_SHAPE, {x}), toy.node(BP_NODE_DTYPE, {out}), shapes});
  toy.formula(BP_RULE_VJP, {0}, {root});
  const auto op = toy.record();
  const FreeNames& names = free_names(*op, op->formulas[0]);
  EXPECT_EQ(names.args, 0b010u);
  EXPECT_EQ(names.arg_metadata, 0b101u);
  EXPECT_EQ(names.outs, 0u);
  EXPECT_EQ(names.out_metadata, 1u);
}

TEST(CopyRecord, ReadsAnOlderAndANewerWritersStruct) {
  ToyRecord toy = multiply();
  toy.formulas.clear();
  std::vector<char> larger(sizeof(bp_op_def) + 64, '\xff');
  std::memcpy(larger.data(), &toy.def(), sizeof(bp_op_def));
  auto& newer = *reinterpret_cast<bp_op_def*>(larger.data());
  newer.header.struct_size = static_cast<uint32_t>(larger.size());
  EXPECT_EQ(copy_record(newer)->args.size(), 4u);

  bp_op_def older = toy.def();
  older.header.struct_size = offsetof(bp_op_def, program);
  older.program = reinterpret_cast<const bp_program*>(8);  // beyond what its writer knew: not read
  older.tags = reinterpret_cast<const char*>(8);
  const auto op = copy_record(older);
  EXPECT_EQ(op->def.program->n_nodes, 0u);
  EXPECT_EQ(op->def.tags, nullptr);
}

TEST(CopyRecord, RefusesImpossibleSizes) {
  ToyRecord toy = multiply();
  for (uint32_t size : {0u, 8u, 100u, 152u, 193u, 5000u, 4294967288u}) {
    bp_op_def def = toy.def();
    def.header.struct_size = size;
    EXPECT_THAT(error_of([&] { copy_record(def); }), HasSubstr("struct_size")) << size;
  }
}

TEST(CopyRecord, StepsThroughArraysByTheirStride) {
  struct Wide {
    bp_arg_def arg;
    char more[24];
  };
  ToyRecord toy = multiply();
  bp_op_def def = toy.def();
  std::vector<Wide> wide;
  for (const bp_arg_def& arg : toy.args) wide.push_back({arg, {}});
  def.args = {wide.data(), 4, sizeof(Wide)};
  EXPECT_STREQ(copy_record(def)->args[3].name, "axes");
  def.args.stride = 8;
  EXPECT_THAT(error_of([&] { copy_record(def); }), HasSubstr("stride"));
}

TEST(CopyRecord, RefusesBadNames) {
  for (const char* name : {"", "add", "::add", "t::", "t::add.", "t::a.b.c", "1t::add", "t::a b", "t:add", "t::a::b"})
    EXPECT_NE(error_of([&] { ToyRecord(name).tensors({"x"}).record(); }), "") << name;
  const std::string endless(100000, 'a');
  EXPECT_THAT(error_of([&] { ToyRecord("t::" + endless).tensors({"x"}).record(); }), HasSubstr("does not end"));
  for (const char* name : {"t::add", "_t::_add2.x_1"})
    EXPECT_EQ(error_of([&] { ToyRecord(name).tensors({"x"}).record(); }), "") << name;
}

TEST(CopyRecord, RefusesBadArguments) {
  const auto with = [](uint16_t type, uint16_t flags, bp_value value) {
    ToyRecord toy("t::op");
    toy.arg("x", type, flags, value);
    return refusal(toy);
  };
  EXPECT_THAT(with(99, 0, {}), HasSubstr("unknown type"));
  EXPECT_THAT(with(BP_TYPE_SIZE, BP_ARG_HAS_DEFAULT, float_value(1)), HasSubstr("default"));
  EXPECT_THAT(with(BP_TYPE_SIZE, BP_ARG_HAS_DEFAULT, int_value(-1)), HasSubstr("default"));
  EXPECT_THAT(with(BP_TYPE_SIZE, BP_ARG_HAS_DEFAULT, {}), HasSubstr("default"));
  EXPECT_THAT(with(BP_TYPE_DTYPE, BP_ARG_HAS_DEFAULT, dtype_of(77)), HasSubstr("unknown dtype"));
  EXPECT_THAT(with(BP_TYPE_SHAPE, BP_ARG_LIST, {}), HasSubstr("list of lists"));
  bp_value endless = ints_value({});
  endless.count = 4000000000u;
  EXPECT_THAT(with(BP_TYPE_SHAPE, BP_ARG_HAS_DEFAULT, endless), HasSubstr("at most"));
  bp_value nowhere = ints_value({});
  nowhere.count = 2;
  nowhere.u.ints = nullptr;
  EXPECT_THAT(with(BP_TYPE_SHAPE, BP_ARG_HAS_DEFAULT, nowhere), HasSubstr("NULL"));
  EXPECT_EQ(with(BP_TYPE_STR, BP_ARG_HAS_DEFAULT, string_value("mean")), "");
  EXPECT_EQ(with(BP_TYPE_TENSOR, BP_ARG_HAS_DEFAULT, int_value(2)), "");

  ToyRecord twice("t::op");
  twice.tensors({"x", "x"});
  EXPECT_THAT(refusal(twice), HasSubstr("two arguments are named 'x'"));
  ToyRecord nameless("t::op");
  nameless.arg(nullptr);
  EXPECT_THAT(refusal(nameless), HasSubstr("NULL"));
  ToyRecord many("t::op");
  std::deque<std::string> names;
  for (int i = 0; i < 65; ++i) many.arg(names.emplace_back("a" + std::to_string(i)).c_str(), BP_TYPE_BOOL);
  EXPECT_THAT(refusal(many), HasSubstr("at most 64"));
  many.args.pop_back();
  EXPECT_EQ(refusal(many), "");
  ToyRecord order("t::op");
  order.arg("k", BP_TYPE_SIZE, BP_ARG_HAS_DEFAULT, int_value(1));
  order.arg("n", BP_TYPE_SIZE);
  EXPECT_THAT(refusal(order), HasSubstr("no default"));
}

TEST(CopyRecord, ADefaultNumberForATensorIsAnImmediate) {
  ToyRecord toy("t::op");
  toy.arg("x", BP_TYPE_TENSOR, BP_ARG_HAS_DEFAULT, int_value(2));
  EXPECT_TRUE(toy.record()->args[0].default_value.flags & BP_VALUE_NUMBER);
}

TEST(CopyRecord, RefusesBadRules) {
  ToyRecord unknown = multiply();
  unknown.result("out", "nonsense", {0, 1});
  EXPECT_THAT(refusal(unknown), HasSubstr("no shape rule 'nonsense'"));
  ToyRecord wrong = multiply();
  wrong.result("out", "reduce", {2});
  EXPECT_THAT(refusal(wrong), HasSubstr("cannot read argument 2"));
  ToyRecord none = multiply();
  none.result("out", "matmul", {0});
  EXPECT_THAT(refusal(none), HasSubstr("reads 1 arguments"));
  ToyRecord beyond = multiply();
  beyond.result("out", "broadcast", {0, 9});
  EXPECT_THAT(refusal(beyond), HasSubstr("argument 9"));
  ToyRecord dynamic = multiply();
  dynamic.result("out", "dynamic", {});
  EXPECT_THAT(refusal(dynamic), HasSubstr("dynamic"));
  ToyRecord view = multiply();
  view.result("out", "view.real", {0});
  EXPECT_THAT(refusal(view), HasSubstr("alias"));
  ToyRecord dtype = multiply();
  dtype.result("out", "same", {0}, {BP_RESULT_DTYPE_FIXED, 0, 99, 0, 0});
  EXPECT_THAT(refusal(dtype), HasSubstr("unknown dtype"));
  ToyRecord from = multiply();
  from.result("out", "same", {0}, {BP_RESULT_DTYPE_FROM_ARG, 0, 0, 0, 0});
  EXPECT_THAT(refusal(from), HasSubstr("not a Dtype"));
}

TEST(CopyRecord, RefusesBadNodes) {
  const auto with = [](uint16_t kind, std::vector<uint32_t> inputs, int64_t imm) {
    ToyRecord toy = multiply();
    toy.node(kind, std::move(inputs), imm);
    return refusal(toy);
  };
  EXPECT_THAT(with(0, {}, 0), HasSubstr("unknown kind"));
  EXPECT_THAT(with(21, {}, 0), HasSubstr("unknown kind"));
  EXPECT_THAT(with(BP_NODE_ARG, {}, 4), HasSubstr("immediate"));
  EXPECT_THAT(with(BP_NODE_ARG, {}, -1), HasSubstr("immediate"));
  EXPECT_THAT(with(BP_NODE_CONST, {}, 1), HasSubstr("immediate"));
  EXPECT_THAT(with(BP_NODE_OUT, {}, 1), HasSubstr("immediate"));
  EXPECT_THAT(with(BP_NODE_VAR, {}, 64), HasSubstr("immediate"));
  EXPECT_THAT(with(BP_NODE_SHAPE, {}, 0), HasSubstr("inputs"));
  EXPECT_THAT(with(BP_NODE_IF, {0, 0}, 0), HasSubstr("inputs"));
  EXPECT_THAT(with(BP_NODE_SHAPE, {99}, 0), HasSubstr("not an earlier one"));
  EXPECT_THAT(with(BP_NODE_CALL, {}, 99), HasSubstr("immediate"));
  EXPECT_THAT(with(BP_NODE_FIT, {0}, 2), HasSubstr("FIT"));
  ToyRecord itself = multiply();
  itself.node(BP_NODE_SHAPE, {static_cast<uint32_t>(itself.nodes.size())});
  EXPECT_THAT(refusal(itself), HasSubstr("not an earlier one"));
  ToyRecord unknown = multiply();
  unknown.builtin("frobnicate", {0});
  EXPECT_THAT(refusal(unknown), HasSubstr("no builtin 'frobnicate'"));
  ToyRecord arity = multiply();
  arity.builtin("add", {0});
  EXPECT_THAT(refusal(arity), HasSubstr("takes 2 to 2"));
  ToyRecord many = multiply();
  for (int i = 0; i < 4096; ++i) many.node(BP_NODE_ARG);
  EXPECT_THAT(refusal(many), HasSubstr("at most 4096"));
}

TEST(CopyRecord, RefusesBadFormulas) {
  const auto with = [](uint16_t rule, std::vector<uint32_t> targets, std::vector<uint32_t> roots, uint16_t flags = 0) {
    ToyRecord toy = multiply();
    toy.formula(rule, std::move(targets), std::move(roots), flags);
    return refusal(toy);
  };
  EXPECT_THAT(with(0, {}, {}), HasSubstr("unknown rule"));
  EXPECT_THAT(with(BP_RULE_VJP, {9}, {0}), HasSubstr("argument 9"));
  EXPECT_THAT(with(BP_RULE_VJP, {0}, {99}), HasSubstr("root"));
  EXPECT_THAT(with(BP_RULE_VJP, {0}, {}), HasSubstr("roots"));
  EXPECT_THAT(with(BP_RULE_VJP, {0}, {}, BP_FORMULA_REFUSED), HasSubstr("without a reason"));
  EXPECT_EQ(with(BP_RULE_VJP, {0}, {}, BP_FORMULA_ZERO), "");
  EXPECT_THAT(with(BP_RULE_DECOMPOSE, {}, {2}), HasSubstr("cannot read"));  // a cotangent
  EXPECT_THAT(with(BP_RULE_SHAPE, {}, {3}), HasSubstr("cannot read"));      // a call
  EXPECT_THAT(with(BP_RULE_VJP, {0, 1}, {0}, BP_FORMULA_TUPLE), HasSubstr("must be the call"));
}

// That a batch rule follows from the shape is a claim: the rule reads the arguments that the word names.
TEST(CopyRecord, RefusesABatchRuleThatDoesNotFollow) {
  const auto with = [](uint16_t flags, const char* extra, uint16_t type, uint16_t arg_flags = 0) {
    ToyRecord toy("t::op");
    toy.tensors({"x", "y"});
    toy.result("out", "broadcast", {0, 1});
    if (extra) toy.arg(extra, type, arg_flags);
    toy.formula(BP_RULE_BATCH, {}, {}, flags);
    return refusal(toy);
  };
  for (int also : {0, int{BP_FORMULA_LOOP}, int{BP_FORMULA_ZERO}}) {
    const auto flags = static_cast<uint16_t>(BP_FORMULA_DERIVED | also);
    EXPECT_EQ(with(flags, nullptr, 0), "");
    EXPECT_EQ(with(flags, "scale", BP_TYPE_SCALAR), "");
    EXPECT_THAT(with(flags, "z", BP_TYPE_TENSOR), HasSubstr("follows from its shape"));
    EXPECT_THAT(with(flags, "axis", BP_TYPE_AXIS), HasSubstr("follows from its shape"));
    EXPECT_THAT(with(flags, "sizes", BP_TYPE_SHAPE), HasSubstr("follows from its shape"));
    EXPECT_THAT(with(flags, "ns", BP_TYPE_SCALAR, BP_ARG_LIST), HasSubstr("follows from its shape"));
  }
  ToyRecord all("t::op");  // reduces over all axes, of which no argument tells
  all.arg("x");
  all.result("out", "reduce", {0, BP_NO_ARG});
  all.formula(BP_RULE_BATCH, {}, {}, BP_FORMULA_DERIVED);
  EXPECT_THAT(refusal(all), HasSubstr("follows from its shape"));
}

TEST(CopyRecord, RefusesVariablesOutOfPlace) {
  ToyRecord loose = multiply();
  loose.formula(BP_RULE_DECOMPOSE, {}, {loose.node(BP_NODE_VAR)});
  EXPECT_THAT(refusal(loose), HasSubstr("outside its map"));
  ToyRecord again("t::op");
  again.arg("xs", BP_TYPE_TENSOR, BP_ARG_LIST);
  again.result("out", "stack", {0});
  const uint32_t xs = again.node(BP_NODE_ARG);
  const uint32_t inner = again.node(BP_NODE_MAP, {xs, again.node(BP_NODE_VAR)});
  again.formula(BP_RULE_DECOMPOSE, {}, {again.node(BP_NODE_MAP, {xs, inner})});
  EXPECT_THAT(refusal(again), HasSubstr("again within its own body"));
}

// ---- regions ----

// t::op(x, axes), or (x, y), with the shape word and flags.
ToyRecord with_shape(const char* word, std::vector<uint32_t> args, uint64_t flags) {
  ToyRecord toy("t::op");
  toy.arg("x");
  const std::string_view name = word;
  if (name == "matmul")
    toy.arg("y");
  else if (name == "reduce" || name == "view.permute")
    toy.arg("axes", BP_TYPE_AXES);
  else if (name != "broadcast")
    toy.arg("shape", BP_TYPE_SHAPE);
  toy.result("out", word, std::move(args));
  toy.flags = flags;
  if (flags & BP_OP_VIEW) toy.alias = 0;
  return toy;
}

TEST(CopyRecord, DerivesARegionThatIsNotStated) {
  const auto derived = [](ToyRecord toy) { return toy.record()->def.region; };
  EXPECT_EQ(derived(with_shape("broadcast", {0}, BP_OP_ELEMENTWISE)), BP_REGION_ELEMENTWISE);
  EXPECT_EQ(derived(with_shape("view.reshape", {0, 1}, BP_OP_VIEW)), BP_REGION_VIEW);
  EXPECT_EQ(derived(with_shape("view.expand", {0, 1}, BP_OP_VIEW)), BP_REGION_VIEW);
  EXPECT_EQ(derived(with_shape("view.permute", {0, 1}, BP_OP_VIEW)), BP_REGION_NONE) << "another order";
  EXPECT_EQ(derived(with_shape("reduce", {0, 1}, BP_OP_REDUCTION)), BP_REGION_NONE) << "what joins is not known";
}

TEST(CopyRecord, VerifiesARegionThatIsStated) {
  struct Stated {
    const char* word;
    std::vector<uint32_t> args;
    uint64_t flags;
    uint16_t region, join;
    const char* words;  // "": it is taken
  };
  const Stated all[] = {
      {"broadcast", {0}, BP_OP_ELEMENTWISE, BP_REGION_CAST, BP_JOIN_NONE, ""},
      {"broadcast", {0}, 0, BP_REGION_CAST, BP_JOIN_NONE, "a region `cast` reads one tensor, elementwise"},
      {"view.reshape", {0, 1}, BP_OP_VIEW, BP_REGION_VIEW, BP_JOIN_NONE, ""},
      {"broadcast", {0}, 0, BP_REGION_VIEW, BP_JOIN_NONE, "a region `view` is a view of the first argument"},
      {"reduce", {0, 1}, BP_OP_REDUCTION, BP_REGION_ELEMENTWISE, BP_JOIN_NONE, "is an elementwise op"},
      {"reduce", {0, 1}, BP_OP_REDUCTION, BP_REGION_REDUCE, BP_JOIN_ALL, ""},
      {"reduce", {0, 1}, BP_OP_REDUCTION, BP_REGION_REDUCE, BP_JOIN_NONE, "says what joins elements; found 0"},
      {"reduce", {0, 1}, BP_OP_REDUCTION, BP_REGION_REDUCE, BP_JOIN_ALL + 1, "says what joins elements; found 7"},
      {"broadcast", {0}, 0, BP_REGION_REDUCE, BP_JOIN_SUM, "has the shape reduce(x, axes)"},
      {"broadcast", {0}, BP_OP_ELEMENTWISE, BP_REGION_DERIVED, BP_JOIN_SUM, "but its region is not a reduction"},
      {"matmul", {0, 1}, 0, BP_REGION_PRODUCT, BP_JOIN_NONE, ""},
      {"broadcast", {0}, 0, BP_REGION_PRODUCT, BP_JOIN_NONE, "has the shape matmul"},
  };
  for (const Stated& each : all) {
    ToyRecord toy = with_shape(each.word, each.args, each.flags);
    bp_op_def def = toy.def();
    def.region = each.region;
    def.join = each.join;
    EXPECT_THAT(error_of([&] { EXPECT_EQ(copy_record(def)->def.region, each.region); }), HasSubstr(each.words))
        << each.word << " " << each.region;
    if (*each.words == 0) {
      EXPECT_EQ(error_of([&] { copy_record(def); }), "") << each.word << " " << each.region;
    }
  }
  ToyRecord toy = with_shape("broadcast", {0}, BP_OP_ELEMENTWISE);
  bp_op_def later = toy.def();
  later.region = BP_REGION_PRODUCT + 1;
  EXPECT_EQ(copy_record(later)->def.region, BP_REGION_NONE) << "of a later minor: nobody may fuse it";
}

TEST(CopyRecord, AnOlderRecordStatesNoFaults) {
  ToyRecord toy = with_shape("broadcast", {0}, BP_OP_ELEMENTWISE);
  bp_op_def older = toy.def();
  older.faults = BP_FAULT_NONE;
  EXPECT_EQ(copy_record(older)->def.faults, uint64_t{BP_FAULT_NONE});
  older.header.struct_size = offsetof(bp_op_def, faults);
  EXPECT_EQ(copy_record(older)->def.faults, uint64_t{BP_FAULTS_UNSTATED});
  EXPECT_EQ(copy_record(older)->def.region, BP_REGION_ELEMENTWISE);
}

}  // namespace
}  // namespace backplane::core

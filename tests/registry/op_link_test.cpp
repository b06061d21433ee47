// Binding the formulas of a record to the ops that they call.
#include "registry/op_link.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "record/caller.hpp"
#include "record/multiply_record.hpp"

namespace backplane::core {
namespace {

using ::testing::HasSubstr;

class Link : public ::testing::Test {
 protected:
  void SetUp() override {
    caller.record = [](uint32_t op) -> const OpRecord* { return op == 7 ? callee_ : nullptr; };
  }
  void TearDown() override { caller = saved_; }
  Caller saved_ = caller;
  static inline const OpRecord* callee_ = nullptr;
};

TEST_F(Link, ResolvesEachNameOnce) {
  const auto op = multiply().record();
  EXPECT_FALSE(op->linked);
  EXPECT_THAT(error_of([&] { link(*op, [](std::string_view) { return uint32_t{BP_NO_OP}; }); }),
              HasSubstr("calls 't::mul', which is not a registered op"));
  EXPECT_FALSE(op->linked);
  link(*op, [](std::string_view name) { return name == "t::mul" ? 3u : name == "t::cast" ? 5u : 6u; });
  EXPECT_TRUE(op->linked);
  EXPECT_EQ(op->calls[0], 3u);
  EXPECT_EQ(op->fit_ops[1], 5u);
  EXPECT_EQ(op->calls[2], BP_NO_OP);  // a builtin
}

TEST_F(Link, ChecksCallsAgainstTheirSignatures) {
  ToyRecord two("t::two");
  two.tensors({"x", "y"}).result("a", "same", {0}).result("b", "same", {0});
  const auto callee = two.record();
  callee_ = callee.get();
  const auto find = [](std::string_view) { return 7u; };
  const auto linked = [&](auto build) {
    ToyRecord toy("t::op");
    toy.tensors({"x"});
    const uint32_t x = toy.node(BP_NODE_ARG);
    toy.formula(BP_RULE_DECOMPOSE, {}, {build(toy, x)});
    const auto op = toy.record();
    return error_of([&] { link(*op, find); });
  };
  EXPECT_EQ(linked([](ToyRecord& t, uint32_t x) { return t.node(BP_NODE_SELECT, {t.call("t::two", {x, x})}, 1); }), "");
  EXPECT_THAT(linked([](ToyRecord& t, uint32_t x) { return t.call("t::two", {x, x}); }), HasSubstr("as one value"));
  EXPECT_THAT(linked([](ToyRecord& t, uint32_t x) {
                return t.node(BP_NODE_SELECT, {t.call("t::two", {t.call("t::two", {x, x}), x})});
              }),
              HasSubstr("as one value"));
  EXPECT_THAT(linked([](ToyRecord& t, uint32_t x) { return t.node(BP_NODE_SELECT, {t.call("t::two", {x})}); }),
              HasSubstr("with 1 arguments"));
}

}  // namespace
}  // namespace backplane::core

// Laws of calls that donate operands: the result equals the result of a plain call. It lies in an operand's memory
// where nobody else can see the change, and in new memory everywhere else.
#include <gtest/gtest.h>

#include <array>

#include "backplane/autograd.hpp"
#include "call/dispatch.hpp"
#include "call/reuse.hpp"
#include "memory/process/epoch.hpp"
#include "null_backend.hpp"
#include "record/host_table.hpp"
#include "registry/registry.hpp"

namespace backplane::testing {
namespace {

// More elements than fit inside a storage, and fewer.
const std::vector<std::vector<double>> kOperands = {{1, 2, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}};

Tensor vector_of(const std::vector<double>& numbers) {
  const int64_t shape[] = {static_cast<int64_t>(numbers.size())};
  return from_host(numbers.data(), shape, {}, BP_FLOAT64, null_backend());
}

Tensor donating(const char* op, std::initializer_list<bp_value> args, uint64_t donated) {
  bp_value out{};
  core::CallGuard guard;
  core::call_donating(core::checked_entry(find_op(op)), args.begin(), static_cast<int32_t>(args.size()), &out,
                      ~uint64_t{0}, donated);
  return Tensor::adopt(out.u.t);
}

TEST(Reuse, TheResultTakesTheMemoryOfASpentOperand) {
  for (const auto& numbers : kOperands) {
    Tensor x = vector_of(numbers), y = vector_of(numbers);
    const std::vector<double> expected = values(multiply(exp(x), y));
    Tensor e = exp(x);
    const Tensor result = donating("bp::multiply", {value(e), value(y)}, 1);
    EXPECT_EQ(result.get(), e.get());
    EXPECT_EQ(values(result), expected);
    EXPECT_EQ(values(y), numbers);
    const Tensor again = donating("bp::exp", {value(x)}, 1);
    EXPECT_EQ(again.get(), x.get());
    EXPECT_EQ(values(again), values(exp(y)));
  }
}

TEST(Reuse, OnlyWhatIsNamedIsDonated) {
  Tensor x = tensor({1, 2}, {2}), y = tensor({3, 4}, {2});
  const Tensor second = donating("bp::add", {value(x), value(y)}, 2);
  EXPECT_EQ(second.get(), y.get());
  EXPECT_EQ(values(x), (std::vector<double>{1, 2}));
  const Tensor none = donating("bp::add", {value(x), value(second)}, 0);
  EXPECT_NE(none.get(), x.get());
  EXPECT_NE(none.get(), second.get());
}

TEST(Reuse, AnOperandThatIsGivenTwiceMayBeDonated) {
  Tensor x = tensor({1, 2, 3}, {3});
  EXPECT_EQ(values(donating("bp::multiply", {value(x), value(x)}, 1)), (std::vector<double>{1, 4, 9}));
}

// Each makes the operand visible to somebody else, or unfit for the result.
TEST(Reuse, NothingThatAnybodyElseSeesIsOverwritten) {
  const std::vector<double> before{1, 2, 3};
  const auto kept = [&](const char* why, const Tensor& x, std::initializer_list<bp_value> args, const char* op) {
    const Tensor result = donating(op, args, ~uint64_t{0});
    EXPECT_NE(result.get(), x.get()) << why;
    EXPECT_EQ(values(x), before) << why;
  };
  Tensor x = tensor({1, 2, 3}, {3});
  const Tensor other = x;
  kept("another reference", x, {value(x)}, "bp::exp");

  Tensor base = tensor({1, 2, 3}, {3});
  const int64_t shape[] = {3, 1};
  const Tensor view = op("reshape", {value(base), value(Shape(shape))});
  donating("bp::exp", {value(view)}, 1);
  EXPECT_EQ(values(base), before) << "a view";
  kept("a base", base, {value(base)}, "bp::exp");

  Tensor leaf = tensor({1, 2, 3}, {3});
  set_requires_grad(leaf, true);
  kept("recorded", leaf, {value(leaf)}, "bp::exp");

  double mine[] = {1, 2, 3};
  const int64_t three[] = {3};
  const Tensor wrapped = wrap_host(mine, three, {}, BP_FLOAT64, nullptr, nullptr, false);
  kept("the caller's memory", wrapped, {value(wrapped)}, "bp::exp");

  Tensor row = tensor({1, 2, 3}, {3});
  const Tensor column = tensor({1, 2, 3}, {3, 1});
  kept("another shape", row, {value(row), value(column)}, "bp::add");
}

TEST(Reuse, NumbersAmongTheOperandsDoNotMatter) {
  Tensor x = tensor({1, 2, 3}, {3});
  bp_value two = value(int64_t{2});
  two.flags |= BP_VALUE_NUMBER;
  const Tensor sum = donating("bp::add", {two, value(x)}, 2);
  EXPECT_EQ(sum.get(), x.get());
  EXPECT_EQ(values(sum), (std::vector<double>{3, 4, 5}));
}

TEST(Reuse, AFailureLeavesTheOperandToItsOwner) {
  Tensor x = tensor({1, 2, 3}, {3});
  const Tensor wrong = tensor({1, 2}, {2});
  EXPECT_THROW(donating("bp::add", {value(x), value(wrong)}, 1), Error);
  EXPECT_EQ(values(x), (std::vector<double>{1, 2, 3}));
}

TEST(Reuse, TheHostTableHasIt) {
  bp_frame frame{};
  frame.keys = ~uint64_t{0};
  Tensor x = tensor({1, 2, 3}, {3});
  bp_value arg = value(x), out{};
  ASSERT_EQ(core::host_table.call_op_donating(&frame, find_op("bp::exp"), &arg, 1, &out, 1), BP_OK) << last_error();
  EXPECT_EQ(out.u.t, x.get());
  release(out.u.t);
}

}  // namespace
}  // namespace backplane::testing

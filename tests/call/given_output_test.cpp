// Laws of elementwise calls into an output that the caller gave, on every path: the output
// afterwards equals the result of the plain call, for any memory shared with the operands.
#include <gtest/gtest.h>

#include "backplane/autograd.hpp"
#include "backplane/registration.hpp"
#include "call/dispatch.hpp"
#include "host_backend.hpp"
#include "memory/tensors/tensor_impl.hpp"
#include "null_backend.hpp"
#include "record/toy_record.hpp"

namespace backplane::testing {
namespace {

using Ints = std::vector<int64_t>;

bp_status into(const char* name, const Tensor& out, std::initializer_list<bp_value> args) {
  bp_value slot = value(out);
  slot.flags = BP_VALUE_GIVEN;
  const bp_status status = call_packed(find_op(name), args.begin(), static_cast<int32_t>(args.size()), &slot, 1);
  EXPECT_EQ(slot.u.t, out.get()) << name;
  return status;
}

uint64_t writes_to(const Tensor& t) { return t.get()->storage->version.load(); }

Tensor slice(const Tensor& t, int64_t from, int64_t to, int64_t step = 1) {
  const Ints axes{0}, starts{from}, ends{to}, steps{step};
  return op("slice", {value(t), value(Shape(axes)), value(Shape(starts)), value(Shape(ends)), value(Shape(steps))});
}

// Three elements of `memory`, which may overlap.
TEST(GivenOutput, HoldsThePlainResultWhateverMemoryItShares) {
  for (int64_t a = 0; a < 4; ++a)
    for (int64_t b = 0; b < 4; ++b)
      for (int64_t out = 0; out < 4; ++out) {
        const Tensor memory = tensor({1, 2, 4, 8, 16, 32}, {6});
        const Tensor x = slice(memory, a, a + 3), y = slice(memory, b, b + 3), target = slice(memory, out, out + 3);
        const std::vector<double> sum = values(add(x, y));
        const uint64_t before = writes_to(memory);
        ASSERT_EQ(into("bp::add", target, {value(x), value(y)}), BP_OK) << last_error();
        EXPECT_EQ(values(target), sum) << a << ", " << b << " into " << out;
        EXPECT_GT(writes_to(memory), before);
      }
}

TEST(GivenOutput, MayBeAnOperandOfTheCall) {
  const Tensor x = tensor({1, 2, 3}, {3}), y = tensor({5, 6, 7}, {3});
  ASSERT_EQ(into("bp::add", x, {value(x), value(y)}), BP_OK) << last_error();
  EXPECT_EQ(values(x), (std::vector<double>{6, 8, 10}));
  ASSERT_EQ(into("bp::multiply", y, {value(x), value(y)}), BP_OK) << last_error();
  EXPECT_EQ(values(y), (std::vector<double>{30, 48, 70}));
  ASSERT_EQ(into("bp::multiply", y, {value(y), value(y)}), BP_OK) << last_error();
  EXPECT_EQ(values(y), (std::vector<double>{900, 2304, 4900}));
  bp_value two = value(2.0);
  two.flags |= BP_VALUE_NUMBER;
  ASSERT_EQ(into("bp::multiply", x, {value(x), two}), BP_OK) << last_error();
  EXPECT_EQ(values(x), (std::vector<double>{12, 16, 20}));
}

TEST(GivenOutput, MayHaveGaps) {
  const Tensor memory = tensor({1, 1, 1, 1, 1, 1}, {6}), target = slice(memory, 0, 6, 2), x = tensor({1, 2, 3}, {3});
  ASSERT_EQ(into("bp::add", target, {value(x), value(x)}), BP_OK) << last_error();
  EXPECT_EQ(values(memory), (std::vector<double>{2, 1, 4, 1, 6, 1}));
}

TEST(GivenOutput, OfAnotherFormIsRefusedAndKeepsItsElements) {
  const Tensor x = tensor({1, 2, 3}, {3});
  const Tensor shorter = tensor({7, 8}, {2}), column = tensor({7, 8, 9}, {3, 1});
  for (const Tensor& wrong : {shorter, column}) {
    const std::vector<double> before = values(wrong);
    EXPECT_EQ(into("bp::add", wrong, {value(x), value(x)}), BP_ERROR_SHAPE);
    EXPECT_EQ(values(wrong), before);
  }
  double mine[] = {1, 2, 3};
  const int64_t three[] = {3};
  const Tensor foreign = wrap_host(mine, three, {}, BP_FLOAT64, nullptr, nullptr, true);
  EXPECT_EQ(into("bp::add", foreign, {value(x), value(x)}), BP_ERROR_VALUE);
  EXPECT_EQ(mine[0], 1);
}

TEST(GivenOutput, IsTheCallersWhenTheKernelFails) {
  const Tensor x = tensor({1, 2, 3}, {3}), out = tensor({7, 8, 9}, {3});
  Registration registration{"test"};
  core::ToyRecord toy("toy::failing_sum");
  toy.arg("a");
  toy.arg("b");
  toy.flags = BP_OP_ELEMENTWISE | BP_OP_OUT;
  bp_kernel_def row = kernel_row(
      "toy::failing_sum", "null",
      [](const bp_frame*, const bp_value*, int32_t, bp_value*, int32_t) -> bp_status { return BP_ERROR_VALUE; });
  row.dtypes = BP_DTYPE_BIT(BP_FLOAT64);
  registration.define(toy.def(), {&row, 1});
  const uint32_t references = core::impl(out.get())->refs.load();
  EXPECT_EQ(into("toy::failing_sum", out, {value(x), value(x)}), BP_ERROR_VALUE);
  EXPECT_EQ(core::impl(out.get())->refs.load(), references);
  EXPECT_EQ(values(out), (std::vector<double>{7, 8, 9}));
}

TEST(GivenOutput, ThatIsRecordedTakesTheHistoryOfTheResult) {
  Tensor x = tensor({1, 2, 3}, {3});
  set_requires_grad(x, true);
  const Tensor y = multiply(x, x), plain = tensor({10, 20, 30}, {3});
  ASSERT_EQ(into("bp::add", plain, {value(plain), value(y)}), BP_OK) << last_error();
  ASSERT_EQ(into("bp::multiply", plain, {value(plain), value(plain)}), BP_OK) << last_error();
  const Tensor total = sum(plain), none;
  backward({&total, 1}, {&none, 1}, {});
  EXPECT_EQ(values(grad_of(x)), (std::vector<double>{2 * 11 * 2, 2 * 24 * 4, 2 * 39 * 6}));
}

}  // namespace
}  // namespace backplane::testing

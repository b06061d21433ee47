// Calls with several results have a fast path. It gives the results of the slow path, frees them if the kernel fails,
// and declines calls in which a result is given or not wanted.
#include <gtest/gtest.h>

#include "backplane/registration.hpp"
#include "call/dispatch.hpp"
#include "host_backend.hpp"
#include "null_backend.hpp"
#include "record/toy_record.hpp"

namespace backplane::core {
namespace {

using testing::tensor;
using testing::values;

double* elements(const bp_tensor& t) {
  return reinterpret_cast<double*>(static_cast<char*>(t.dl.data) + t.dl.byte_offset);
}

// (x) -> (2 x, -x); refuses an x whose first element is 13.
bp_status twice_and_negated(const bp_frame* frame, const bp_value* args, int32_t, bp_value* outs, int32_t n_outs) {
  const bp_tensor& x = *args[0].u.t;
  if (n_outs != 2 || !(x.flags & BP_TENSOR_CONTIGUOUS)) return BP_ERROR_INTERNAL;
  const auto count = static_cast<int64_t>(x.nbytes / sizeof(double));
  if (count > 0 && elements(x)[0] == 13) {
    frame->host->set_error(BP_ERROR_VALUE, "thirteen");
    return BP_ERROR_VALUE;
  }
  for (int64_t i = 0; i < count; ++i) {
    elements(*outs[0].u.t)[i] = 2 * elements(x)[i];
    elements(*outs[1].u.t)[i] = -elements(x)[i];
  }
  return BP_OK;
}

class SeveralResults : public ::testing::Test {
 protected:
  void SetUp() override {
    testing::null_backend();
    ToyRecord toy("t::both");
    toy.arg("x");
    toy.result("twice", "same", {0}).result("negated", "same", {0});
    bp_kernel_def row = testing::kernel_row("t::both", "null", twice_and_negated);
    row.dtypes = BP_DTYPE_BIT(BP_FLOAT64);
    op = registration.define(toy.def(), {&row, 1});
  }
  bool attempt(const bp_value& x, bp_value* outs) {
    const OpEntry& entry = *op_entry(op);
    return entry.edges.attempt && entry.edges.attempt(entry, &x, outs, ~uint64_t{0});
  }

  OpHandle op = BP_NO_OP;
  Registration registration{"test"};
};

TEST_F(SeveralResults, OfOneTensorAreMadeOnTheFastPath) {
  const Tensor x = tensor({1, 2, 3}, {3});
  bp_value outs[2] = {};
  ASSERT_TRUE(attempt(value(x), outs));
  const Tensor twice = Tensor::adopt(outs[0].u.t), negated = Tensor::adopt(outs[1].u.t);
  EXPECT_EQ(outs[0].flags | outs[1].flags, 0);
  EXPECT_EQ(values(twice), (std::vector<double>{2, 4, 6}));
  EXPECT_EQ(values(negated), (std::vector<double>{-1, -2, -3}));
}

TEST_F(SeveralResults, AreTheSlowPathsWhereOneIsGivenOrNotWanted) {
  const Tensor x = tensor({1, 2, 3}, {3}), given = tensor({0, 0, 0}, {3});
  for (const int kept : {0, 1}) {
    bp_value outs[2] = {};
    outs[1 - kept].flags = BP_VALUE_NOT_WANTED;
    EXPECT_FALSE(attempt(value(x), outs));
    const bp_value arg = value(x);
    ASSERT_EQ(call_packed(op, &arg, 1, outs, 2), BP_OK) << last_error();
    EXPECT_EQ(values(Tensor::adopt(outs[kept].u.t))[2], kept == 0 ? 6 : -3);
  }
  bp_value outs[2] = {};
  outs[1] = value(given);
  outs[1].flags = BP_VALUE_GIVEN;
  EXPECT_FALSE(attempt(value(x), outs));
  const bp_value arg = value(x);
  ASSERT_EQ(call_packed(op, &arg, 1, outs, 2), BP_OK) << last_error();
  EXPECT_EQ(values(Tensor::adopt(outs[0].u.t)), (std::vector<double>{2, 4, 6}));
  EXPECT_EQ(values(given), (std::vector<double>{-1, -2, -3}));
}

TEST_F(SeveralResults, OfAFailedKernelAreFreed) {
  const Tensor x = tensor({13, 2, 3}, {3});
  const int64_t before = testing::live_blocks();
  bp_value outs[2] = {};
  const bp_value arg = value(x);
  EXPECT_EQ(call_packed(op, &arg, 1, outs, 2), BP_ERROR_VALUE);
  EXPECT_NE(std::string(last_error()).find("thirteen"), std::string::npos) << last_error();
  EXPECT_EQ(outs[0].u.p, nullptr);
  EXPECT_EQ(outs[1].u.p, nullptr);
  EXPECT_EQ(testing::live_blocks(), before);
}

}  // namespace
}  // namespace backplane::core

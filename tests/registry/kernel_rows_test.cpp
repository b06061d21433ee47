// Rows of kernels that are refused because no call could reach or run them, and kernels that leave no result.
#include <gtest/gtest.h>

#include "backplane/registration.hpp"
#include "host_backend.hpp"
#include "null_backend.hpp"
#include "record/toy_record.hpp"

namespace backplane::core {
namespace {

using testing::kernel_row;
using testing::tensor;

#define EXPECT_MENTIONS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

bp_status BP_CALL clears_its_slot(const bp_frame*, const bp_value*, int32_t, bp_value* outs, int32_t) {
  outs[0] = bp_value{};
  return BP_OK;
}

TEST(KernelRows, LeaveATensorInEverySlot) {
  ToyRecord toy("toy::bare");
  toy.arg("x");
  const Tensor x = tensor({1, 2}, {2});
  for (const uint32_t flags : {uint32_t{0}, uint32_t{BP_KERNEL_CALLS_OPS}}) {
    Registration registration("test");
    bp_kernel_def kernel = kernel_row("toy::bare", "null", clears_its_slot);
    kernel.flags = flags;
    const OpHandle op = registration.define(toy.def(), {&kernel, 1});
    const std::string said = error_of([&] { backplane::call(op, {value(x)}); });
    EXPECT_NE(said.find("toy::bare"), std::string::npos) << said;
    EXPECT_NE(said.find("its kernel left nothing as result 0"), std::string::npos) << said;
    Tensor given = tensor({0, 0}, {2});
    const bp_value arg = value(x);
    bp_value out = value(given);
    out.flags = BP_VALUE_GIVEN;
    EXPECT_EQ(call_packed(op, &arg, 1, &out, 1), BP_ERROR_TYPE);
    EXPECT_EQ(out.u.t, given.get());
  }
}

TEST(KernelRows, AreRefusedWhereTheyCannotBeCalled) {
  ToyRecord toy("toy::walked");
  toy.arg("x");
  const auto refusal = [&](const bp_kernel_def& kernel) {
    Registration registration("test");
    return error_of([&] { registration.define(toy.def(), {&kernel, 1}); });
  };
  for (const uint32_t flag : {uint32_t{BP_KERNEL_LOOP}, uint32_t{BP_KERNEL_INPLACE}}) {
    bp_kernel_def kernel = kernel_row("toy::walked", "null", clears_its_slot);
    kernel.flags = BP_KERNEL_OWN_RESULTS | flag;
    const std::string said = refusal(kernel);
    EXPECT_NE(said.find("BP_KERNEL_OWN_RESULTS, with which no result stands ready"), std::string::npos) << said;
  }
  const bp_kernel_def of_view = kernel_row("bp::permute_dims", "null", clears_its_slot);
  const std::string said = refusal(of_view);
  EXPECT_NE(said.find("bp::permute_dims is a view, which the core makes"), std::string::npos) << said;
}

TEST(KernelRows, AreRefusedOfACompositeWhichNoKernelServes) {
  ToyRecord toy("toy::parts");
  toy.arg("x");
  bp_op_def composite = toy.def();
  composite.flags |= BP_OP_COMPOSITE;
  Registration registration("test");
  const bp_kernel_def kernel = kernel_row("toy::parts", "null", clears_its_slot);
  try {
    registration.define(composite, {&kernel, 1});
    FAIL() << "expected an error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), BP_ERROR_VALUE);
    EXPECT_MENTIONS(std::string(error.what()), "toy::parts is composite");
  }
}

}  // namespace
}  // namespace backplane::core

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

bool g_releases = false;  // what stood there, which the core cannot know

bp_status BP_CALL clears_its_slot(const bp_frame* frame, const bp_value*, int32_t, bp_value* outs, int32_t) {
  if (g_releases) frame->host->release(outs[0].u.t);
  outs[0] = bp_value{};
  return BP_OK;
}

TEST(KernelRows, LeaveATensorInEverySlot) {
  ToyRecord toy("toy::bare");
  toy.arg("x");
  const Tensor x = tensor({1, 2}, {2});
  // Off the fast path, which trusts its rows: each of its instructions counts.
  Registration registration("test");
  bp_kernel_def kernel = kernel_row("toy::bare", "null", clears_its_slot);
  kernel.flags = BP_KERNEL_CALLS_OPS;
  const OpHandle op = registration.define(toy.def(), {&kernel, 1});
  g_releases = true;
  const std::string said = error_of([&] { backplane::call(op, {value(x)}); });
  g_releases = false;
  EXPECT_MENTIONS(said, "toy::bare");
  EXPECT_MENTIONS(said, "its kernel left nothing as result 0");
  Tensor given = tensor({0, 0}, {2});
  const bp_value arg = value(x);
  bp_value out = value(given);
  out.flags = BP_VALUE_GIVEN;
  EXPECT_EQ(call_packed(op, &arg, 1, &out, 1), BP_ERROR_TYPE);
  EXPECT_EQ(out.u.t, given.get());
}

// Of an op of that name.
std::string refusal(const char* name, const char* row_of, uint32_t flags) {
  ToyRecord toy(name);
  toy.arg("x");
  bp_kernel_def kernel = kernel_row(row_of, "null", clears_its_slot);
  kernel.flags = flags;
  Registration registration("test");
  return error_of([&] { registration.define(toy.def(), {&kernel, 1}); });
}

TEST(KernelRows, AreRefusedWhereTheyCannotBeCalled) {
  const std::string walked = refusal("toy::walked", "toy::walked", BP_KERNEL_OWN_RESULTS | BP_KERNEL_LOOP);
  EXPECT_MENTIONS(walked, "BP_KERNEL_OWN_RESULTS, with which the kernel makes its results, beside BP_KERNEL_LOOP");
  const std::string written = refusal("toy::written", "toy::written", BP_KERNEL_OWN_RESULTS | BP_KERNEL_INPLACE);
  EXPECT_MENTIONS(written, "BP_KERNEL_OWN_RESULTS, with which the kernel makes its results, beside BP_KERNEL_INPLACE");
  EXPECT_MENTIONS(refusal("toy::viewed", "bp::permute_dims", 0), "bp::permute_dims is a view, which the core makes");
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

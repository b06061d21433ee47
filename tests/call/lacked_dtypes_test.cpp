// A dtype that a device lacks: arithmetic in it is refused before a kernel runs, on operands and on results; moving it
// is not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "call/formulas/run_formula.hpp"
#include "host_backend.hpp"
#include "memory/devices/device.hpp"
#include "null_backend.hpp"
#include "record/builtins.hpp"
#include "record/host_table.hpp"

namespace backplane::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

int ran = 0;

bp_status count(const bp_frame*, const bp_value*, int32_t, bp_value*, int32_t) {
  ++ran;
  return BP_OK;
}

// Of a device without float64, whose rows take every dtype.
bp_device device_without_float64() {
  static const bp_device id = [] {
    null_backend();
    auto* record = new bp_plugin_record;
    record->name = "single";
    record->index = core::kCountedPlugins;
    bp_backend_def backend = host_backend("single");
    backend.properties = [](void*, int32_t, bp_device_properties* out) -> bp_status {
      out->lacks = BP_DTYPE_BIT(BP_FLOAT64);
      return BP_OK;
    };
    EXPECT_EQ(core::host_table.register_backend(record, &backend), BP_OK);
    for (const char* op : {"bp::exp", "bp::copy", "bp::cast", "bp::concat", "bp::sum"}) {
      bp_kernel_def row = kernel_row(op, "single", count);
      row.flags = BP_KERNEL_STRIDED;
      EXPECT_EQ(core::host_table.register_kernel(record, &row), BP_OK) << core::host_table.get_error();
    }
    return parse_device("single");
  }();
  return id;
}

Tensor of(bp_dtype dtype) {
  const int64_t shape[] = {100};
  return empty(shape, dtype, device_without_float64());
}

std::string refusal(const std::function<void()>& body) {
  const int before = ran;
  try {
    body();
  } catch (const Error& error) {
    EXPECT_EQ(ran, before) << "a kernel ran before the refusal";
    return error.what();
  }
  EXPECT_EQ(ran, before + 1);
  return "";
}

bp_value dtype_arg(bp_dtype dtype) {
  bp_value v{};
  v.tag = BP_TAG_DTYPE;
  v.u.i = dtype;
  return v;
}

TEST(LackedDtypes, ArithmeticIsRefusedAndMovingIsNot) {
  const Tensor wide = of(BP_FLOAT64), narrow = of(BP_FLOAT32);
  EXPECT_EQ(refusal([&] { op("exp", {value(narrow)}); }), "");
  EXPECT_THAT(refusal([&] { op("exp", {value(wide)}); }),
              AllOf(HasSubstr("bp::exp"), HasSubstr("does not compute in float64")));
  EXPECT_EQ(refusal([&] { op("copy", {value(wide)}); }), "");
}

TEST(LackedDtypes, ALackedResultIsRefusedBeforeTheKernel) {
  const Tensor narrow = of(BP_FLOAT32);
  EXPECT_EQ(refusal([&] { op("cast", {value(narrow), dtype_arg(BP_INT32)}); }), "");
  EXPECT_THAT(refusal([&] {
                op("cast", {value(narrow), dtype_arg(BP_FLOAT64)});
              }),
              HasSubstr("does not compute in float64"));
  EXPECT_THAT(refusal([&] { op("sum", {value(narrow), {}, dtype_arg(BP_FLOAT64)}); }), HasSubstr("float64"));
}

TEST(LackedDtypes, AFormulaAsksTheDeviceThatItRunsOn) {
  const auto computes = [](bp_dtype dtype) {
    core::ValueArena arena;
    const bp_value in[] = {dtype_arg(dtype)};
    return core::builtin::device_computes({"bp::linspace", "device_computes", in, arena}).u.i;
  };
  const core::NumbersOn whole(null_backend());
  EXPECT_EQ(computes(BP_FLOAT64), 1);
  const core::NumbersOn device(device_without_float64());
  EXPECT_EQ(computes(BP_FLOAT64), 0);
  EXPECT_EQ(computes(BP_FLOAT32), 1);
}

}  // namespace
}  // namespace backplane::testing

// Laws of calls into plugins: another plugin's kernel is used and withdrawn by the stated order; a kernel of an older
// revision is used while its missing arguments are at their defaults; failures arrive with their message and op, at
// once or deferred; two backends do not mix.
#include "loader/plugin_files.hpp"

namespace backplane::loader_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

Failure failure_of_call(const std::string& device, const std::string& op, std::initializer_list<bp_value> more = {}) {
  return failure_of([&] {
    const Tensor x = tensor_on(device, std::vector<float>(4, 1.0f));
    std::vector<bp_value> args{value(x)};
    args.insert(args.end(), more);
    bp_value out{};
    const bp_status status = call_packed(find_op(op), args.data(), static_cast<int32_t>(args.size()), &out, 1);
    if (status != BP_OK) throw_last_error(status);
    values_of(Tensor::adopt(out.u.t));
  });
}

TEST(Calls, TheKernelOfHigherPriorityWinsWhileItsPluginIsThere) {
  const Loaded first("first");
  EXPECT_EQ(call_on("first", "first::scale", {1, 2}), (std::vector<float>{2, 4}));
  {
    const Loaded extra("extra");
    EXPECT_EQ(call_on("first", "first::scale", {1, 2}), (std::vector<float>{3, 6}));
    EXPECT_THAT(explain(find_op("first::scale")), AllOf(HasSubstr("\"extra\""), HasSubstr("\"first\"")));
  }
  EXPECT_EQ(call_on("first", "first::scale", {1, 2}), (std::vector<float>{2, 4}));
}

TEST(Calls, AKernelOfAnOlderRevisionTakesDefaultsOnly) {
  const Loaded first("first");
  const Loaded revised("revised");
  EXPECT_EQ(call_on("first", "revised::scale", {1, 2}), (std::vector<float>{5, 10}));
  EXPECT_EQ(failure_of_call("first", "revised::scale", {value(int64_t{1})}).code, BP_OK);
  const Failure failure = failure_of_call("first", "revised::scale", {value(int64_t{7})});
  EXPECT_EQ(failure.code, BP_ERROR_NOT_IMPLEMENTED);
  EXPECT_THAT(failure.text, AllOf(HasSubstr("revised::scale"), HasSubstr("\"scale\"")));
}

TEST(Calls, AKernelForARevisionToComeIsRefused) {
  const Failure failure = failure_of([] { load_plugin(plugin_file("revised_newer")); });
  EXPECT_EQ(failure.code, BP_ERROR_VERSION);
  EXPECT_THAT(failure.text, HasSubstr("revision"));
  EXPECT_FALSE(has_op("revised_newer::scale"));
}

TEST(Calls, AFailureInABodyOfParallelForReachesTheCaller) {
  const Loaded first("first");
  const Loaded bodies("bodies");
  for (int i = 0; i < 20; ++i) {
    const Failure failure = failure_of_call("first", "bodies::in_body");
    EXPECT_EQ(failure.code, BP_ERROR_DATA);
    EXPECT_THAT(failure.text, AllOf(HasSubstr("bodies::in_body"), HasSubstr("element 700 is out of range")));
  }
  EXPECT_EQ(call_on("first", "first::scale", {1}), (std::vector<float>{2}));
}

TEST(Calls, ASilentFailureDoesNotCarryAnEarlierMessage) {
  const Loaded first("first");
  const Loaded bodies("bodies");
  failure_of_call("first", "bodies::in_body");
  const Failure failure = failure_of_call("first", "bodies::silent");
  EXPECT_EQ(failure.code, BP_ERROR_DEVICE);
  EXPECT_THAT(failure.text, AllOf(HasSubstr("bodies::silent"), testing::Not(HasSubstr("element 700"))));
}

TEST(Calls, ADeferredErrorNamesItsOpAndLeavesTheDeviceUsable) {
  const Loaded second("second");
  EXPECT_EQ(call_on("second", "second::scale", {1, -2}), (std::vector<float>{-1, 2}));
  const Failure failure = failure_of_call("second", "second::poison");
  EXPECT_EQ(failure.code, BP_ERROR_DATA);
  EXPECT_THAT(failure.text, AllOf(HasSubstr("second::poison"), HasSubstr("the well is poisoned")));
  EXPECT_EQ(call_on("second", "second::scale", {1, -2}), (std::vector<float>{-1, 2}));
}

TEST(Calls, TwoForeignBackendsStandSideBySide) {
  const Loaded first("first");
  const Loaded second("second");
  EXPECT_EQ(call_on("first", "first::scale", {1}), (std::vector<float>{2}));
  EXPECT_EQ(call_on("second", "second::scale", {1}), (std::vector<float>{-1}));
  EXPECT_NE(parse_device("first").backend, parse_device("second").backend);
  const Failure failure = failure_of_call("second", "first::scale");
  EXPECT_EQ(failure.code, BP_ERROR_NOT_IMPLEMENTED);
  EXPECT_THAT(failure.text,
              AllOf(HasSubstr("first::scale"), HasSubstr("second"), HasSubstr("kernels exist on: first")));
}

TEST(Calls, APluginBuiltForAnOlderMinorRuns) {
  const Loaded first("first_older");
  EXPECT_EQ(call_on("first", "first::scale", {1}), (std::vector<float>{2}));
}

}  // namespace
}  // namespace backplane::loader_test

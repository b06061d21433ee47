// Laws of kernels that break the contract: the call fails with the op's name, eagerly and in a graph's plan, and
// whatever else there is goes on working. And of calls beside a registration: they see all of a plugin or nothing.
#include <sys/stat.h>

#include <atomic>
#include <thread>

#include "backplane/graph.hpp"
#include "backplane/transforms.hpp"
#include "loader/plugin_files.hpp"

namespace backplane::loader_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

Tensor called(const std::string& op, const Tensor& x) { return call(find_op(op), {value(x)}); }

class RudeKernels : public testing::Test {
 protected:
  void works_still() { EXPECT_EQ(call_on("first", "first::scale", {1, 2}), (std::vector<float>{2, 4})); }

  Loaded first_{"first"};
  Loaded rude_{"rude"};
};

Failure failure_of_op(const std::string& op) {
  return failure_of([&] { call_on("first", op, {1, 2}); });
}
Failure failure_of_graph(const std::string& op) {
  const Tensor x = tensor_on("first", {1, 2});
  const Function function = [&](std::span<const Tensor> inputs) { return std::vector<Tensor>{called(op, inputs[0])}; };
  const Graph graph = make_graph(function, {&x, 1});
  return failure_of([&] { graph.call({&x, 1}); });
}

TEST_F(RudeKernels, WhatIsNoExceptionIsAnInternalErrorOfTheCall) {
  for (const auto& failure_in : {failure_of_op, failure_of_graph}) {
    const Failure failure = failure_in("rude::throws");
    EXPECT_EQ(failure.code, BP_ERROR_INTERNAL);
    EXPECT_THAT(failure.text, HasSubstr("rude::throws"));
    works_still();
  }
}

TEST_F(RudeKernels, AKernelThatCallsItsOwnOpWithoutEndIsRefused) {
  for (const auto& failure_in : {failure_of_op, failure_of_graph}) {
    const Failure failure = failure_in("rude::recurses");
    EXPECT_EQ(failure.code, BP_ERROR_MEMORY);
    EXPECT_THAT(failure.text, AllOf(HasSubstr("rude::recurses"), HasSubstr("call its own op")));
    works_still();
  }
}

TEST_F(RudeKernels, NothingIsRegisteredFromAKernel) {
  const Failure failure = failure_of_op("rude::registers");
  EXPECT_EQ(failure.code, BP_ERROR_BUSY);
  EXPECT_THAT(failure.text, AllOf(HasSubstr("register_op"), HasSubstr("register_all has returned")));
  EXPECT_FALSE(has_op("rude::late"));
}

TEST_F(RudeKernels, ADeviceIsLostByTheKernelsOfItsOwnPluginAlone) {
  for (const auto& failure_in : {failure_of_op, failure_of_graph}) {
    const Failure failure = failure_in("rude::loses");
    EXPECT_EQ(failure.code, BP_ERROR_DEVICE);
    EXPECT_THAT(failure.text, AllOf(HasSubstr("rude::loses"), HasSubstr("it fell off the bus")));
    works_still();
  }
}

TEST(Declining, ARowThatDeclinesSaysWhyWhereNothingElseTakesTheCall) {
  const Loaded first("first"), declines("declines");
  const float elements[] = {1, 2, 3, 4};
  const int64_t shape[] = {2, 2}, channels[] = {2};
  const bp_device device = parse_device("first");
  const Tensor x = from_host(elements, shape, {}, BP_FLOAT32, device),
               weight = from_host(elements, channels, {}, BP_FLOAT32, device);
  const OpHandle op = find_op("bp::batch_norm");
  const auto text = [&](bp_value given) {
    const bp_value args[] = {value(x), given, absent(), value(1e-5)};
    bp_value outs[3] = {};
    EXPECT_NE(call_packed(op, args, 4, outs, 3), BP_OK);
    return std::string(last_error());
  };
  EXPECT_THAT(text(value(weight)), HasSubstr("the call was taken"));
  EXPECT_THAT(text(absent()), HasSubstr("the call was taken"));
  EXPECT_THAT(text(value(int64_t{2})), testing::Not(HasSubstr("the call was taken")));
  EXPECT_THAT(text(value(x)), testing::Not(HasSubstr("the call was taken")));
}

TEST(Registering, CallsBesideItSeeAllOfAPluginOrNothing) {
  const Loaded first("first");
  const Tensor x = tensor_on("first", {1, 2});
  for (int round = 0; round < 3; ++round) {
    std::atomic<bool> over{false};
    std::string failed;
    std::thread beside([&] {
      while (!over) {
        const Failure failure = failure_of([&] {
          if (const OpHandle op = find_op("slow::scale"); op != BP_NO_OP) {
            EXPECT_EQ(values_of(call(op, {value(x)})), (std::vector<float>{4, 8}));
          }
        });
        // An op may leave with its plugin after it was found: this is not a torn state.
        if (failure.code != BP_OK && failure.text.find("was unloaded") == std::string::npos) failed = failure.text;
        const Failure on_device = failure_of([&] {
          const Tensor y = tensor_on("slow", {1, 2});
          EXPECT_EQ(values_of(call(find_op("slow::scale"), {value(y)})), (std::vector<float>{4, 8}));
        });
        if (on_device.text.find("no kernel") != std::string::npos) failed = on_device.text;
      }
    });
    load_plugin(plugin_file("slow"));
    over = true;
    beside.join();
    EXPECT_EQ(failed, "");
    unload_plugin("slow");
  }
}

TEST(Files, WhatIsNoRegularFileIsPassedOver) {
  const Folder folder;
  ASSERT_EQ(mkfifo((folder.path() + "/pipe.so").c_str(), 0600), 0);
  ASSERT_EQ(mkfifo((folder.path() + "/pipe.backplane.json").c_str(), 0600), 0);
  add_plugin_path(folder.path());
  EXPECT_THAT(failure_of([&] { load_plugin(folder.path() + "/pipe.so"); }).text, HasSubstr("is not a file"));
  EXPECT_THAT(lint_plugin(folder.path() + "/pipe.so").front().text, testing::Not(testing::IsEmpty()));
}

TEST(Files, FlagsOfATableThatMustBeUnderstoodAreRefused) {
  const Failure failure = failure_of([] { load_plugin(plugin_file("all_flags")); });
  EXPECT_EQ(failure.code, BP_ERROR_VERSION);
  EXPECT_THAT(failure.text, HasSubstr("bit 1 of its flags"));
}

}  // namespace
}  // namespace backplane::loader_test

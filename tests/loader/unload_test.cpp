// Laws of unloading: nothing that is in use goes away, whatever goes away comes back, and calls that run meanwhile end
// with a result or a clear error.
#include <atomic>
#include <thread>

#include "backplane/autograd.hpp"
#include "loader/host_traits.hpp"
#include "loader/plugin_files.hpp"
#include "loader/records.hpp"
#include "memory/process/epoch.hpp"
#include "memory/process/plugin_record.hpp"

namespace backplane::loader_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(Unload, TakesEverythingBack) {
  load_plugin(plugin_file("first"));
  const OpHandle op = find_op("first::scale");
  unload_plugin("first");
  EXPECT_EQ(Loaded::state_of("first"), loader::kHostSanitizer.empty() ? "closed" : "parked");
  EXPECT_FALSE(has_op("first::scale"));
  EXPECT_NE(failure_of([] { parse_device("first"); }).code, BP_OK);
  bp_value out{}, arg{};
  EXPECT_EQ(call_packed(op, &arg, 1, &out, 1), BP_ERROR_NOT_IMPLEMENTED);
  EXPECT_THAT(last_error(), AllOf(HasSubstr("first::scale"), HasSubstr("plugin \"first\"")));
}

TEST(Unload, WhatWasUnloadedLoadsAgainUnderItsHandle) {
  load_plugin(plugin_file("first"));
  const OpHandle op = find_op("first::scale");
  for (int round = 0; round < 5; ++round) {
    EXPECT_EQ(call_on("first", "first::scale", {1, -2}), (std::vector<float>{2, -4}));
    unload_plugin("first");
    load_plugin(plugin_file("first"));
    EXPECT_EQ(find_op("first::scale"), op);
  }
  unload_plugin("first");
}

TEST(Unload, CallsStop) {
  unsetenv("BACKPLANE_TEST_FIRST_STOPPED");
  { const Loaded first("first"); }
  EXPECT_STREQ(std::getenv("BACKPLANE_TEST_FIRST_STOPPED"), "1");
}

TEST(Unload, ParksWhatIsNotUnloadable) {
  for (int round = 0; round < 3; ++round) {
    const Loaded first("first_parked");
    EXPECT_EQ(call_on("first", "first::scale", {3}), (std::vector<float>{6}));
    unload_plugin("first");
    EXPECT_EQ(Loaded::state_of("first"), "parked");
  }
}

TEST(Unload, IsRefusedForWhatIsNotLoaded) {
  EXPECT_THAT(failure_of([] { unload_plugin("nobody"); }).text, HasSubstr("no plugin \"nobody\""));
  EXPECT_NE(failure_of([] { unload_plugin("backplane"); }).code, BP_OK);
  { const Loaded first("first"); }
  EXPECT_THAT(failure_of([] { unload_plugin("first"); }).text, HasSubstr("is not loaded"));
}

TEST(Unload, IsRefusedWhileTensorsLive) {
  const Loaded first("first");
  {
    const Tensor tensor = tensor_on("first", {1, 2, 3});
    const Failure failure = failure_of([] { unload_plugin("first"); });
    EXPECT_EQ(failure.code, BP_ERROR_BUSY);
    EXPECT_THAT(failure.text, AllOf(HasSubstr("plugin \"first\" is in use"), HasSubstr("tensor storages")));
    EXPECT_GE(load_plugin(plugin_file("first")).leases, 1u);
    EXPECT_EQ(values_of(call(find_op("first::scale"), {value(tensor)})), (std::vector<float>{2, 4, 6}));
  }
  EXPECT_EQ(load_plugin(plugin_file("first")).leases, 0u);
}

TEST(Unload, IsRefusedFromAHookOfTheTape) {
  const Loaded first("first");
  const Loaded extra("extra");
  bp_status code = BP_OK;
  {
    const Tensor x = tensor_on("first", {1, 2});
    set_requires_grad(x, true);
    add_hook(x, [&](const Tensor&) {
      code = failure_of([] { unload_plugin("extra"); }).code;
      return Tensor();
    });
    const Tensor roots[] = {x}, cotangents[] = {tensor_on("first", {1, 1})};
    backward(roots, cotangents, {});
  }
  EXPECT_EQ(code, BP_ERROR_BUSY);
  EXPECT_EQ(call_on("first", "extra::scale", {1}), (std::vector<float>{3}));
}

// A lease that appears after the rows were withdrawn: the plugin must work as before.
TEST(Unload, ARefusalAtTheLastMomentRestoresEverything) {
  const Loaded first("first");
  const OpHandle op = find_op("first::scale");
  const bp_device device = parse_device("first");
  std::atomic<bool> inside{false}, release{false};
  Tensor made;
  std::thread caller([&] {
    core::CallGuard guard;  // a call that is running, and will have made a tensor when it ends
    const bp_device id = parse_device("first");
    inside = true;
    while (!release) std::this_thread::yield();
    const int64_t size = 1;
    try {
      made = empty(Shape(&size, 1), BP_FLOAT32, id);
    } catch (const Error&) {
      made = Tensor();
    }
  });
  while (!inside) std::this_thread::yield();
  // The lease itself is taken by hand: the withdrawn backend refuses the call above.
  core::PluginRecord* owner = nullptr;
  std::thread unloader([&] {
    const Failure failure = failure_of([] { unload_plugin("first"); });
    EXPECT_EQ(failure.code, BP_ERROR_BUSY);
    EXPECT_THAT(failure.text, HasSubstr("graphs and their compiled code"));
  });
  while (Loaded::state_of("first") != "unloading") std::this_thread::yield();
  for (core::PluginRecord* record : loader::all_records())
    if (record->name == "first") owner = record;
  core::lease(owner, core::LeaseKind::kGraph);
  release = true;
  caller.join();
  unloader.join();
  core::unlease(owner, core::LeaseKind::kGraph);

  EXPECT_EQ(find_op("first::scale"), op);
  const bp_device after = parse_device("first");
  EXPECT_EQ(after.backend, device.backend);
  EXPECT_EQ(call_on("first", "first::scale", {4}), (std::vector<float>{8}));
  EXPECT_THAT(load_plugin(plugin_file("first")).ops, testing::ElementsAre("first::scale"));
  EXPECT_THAT(load_plugin(plugin_file("first")).backends, testing::ElementsAre("first"));
}

TEST(Unload, IsRefusedFromInsideACall) {
  const Loaded first("first");
  core::CallGuard guard;
  const Failure failure = failure_of([] { unload_plugin("first"); });
  EXPECT_EQ(failure.code, BP_ERROR_BUSY);
  EXPECT_THAT(failure.text, HasSubstr("inside a running call"));
}

// Threads call an op of one plugin on the memory of another while the first comes and goes.
TEST(Unload, DuringCallsGivesResultsOrErrorsAndNothingElse) {
  const Loaded first("first");
  load_plugin(plugin_file("extra"));
  const OpHandle op = find_op("extra::scale");
  std::atomic<bool> stop{false};
  std::atomic<int> results{0}, errors{0}, wrong{0};
  std::vector<std::thread> callers;
  for (int i = 0; i < 3; ++i)
    callers.emplace_back([&] {
      const Tensor x = tensor_on("first", {1, 2});
      while (!stop) {
        const bp_value arg = value(x);
        bp_value out{};
        const bp_status status = call_packed(op, &arg, 1, &out, 1);
        if (status == BP_OK) {
          const Tensor y = Tensor::adopt(out.u.t);
          if (values_of(y) != std::vector<float>{3, 6}) ++wrong;
          ++results;
        } else if (status == BP_ERROR_NOT_IMPLEMENTED) {
          ++errors;
        } else {
          ++wrong;
        }
      }
    });
  for (int round = 0; round < 40 || results == 0 || errors == 0; ++round) {
    unload_plugin("extra");
    std::this_thread::yield();
    load_plugin(plugin_file("extra"));
    std::this_thread::yield();
  }
  stop = true;
  for (std::thread& caller : callers) caller.join();
  unload_plugin("extra");
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace backplane::loader_test

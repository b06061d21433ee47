// Laws of a device that is given up and made new, by the host's reset: mode async, the last of all.
#include <vector>

#include "backplane/device.hpp"
#include "backplane/graph.hpp"
#include "laws/async_laws.hpp"

namespace backplane::conformance {
namespace {

constexpr int kThreads = 4;

void expect_works(bp_device device, const char* what) {
  expect_all(run_op("bp::add", {value(floats({1, 1, 1}, device)), value(1.0)}), 2, what);
}

// A thread that waits for work which does not end. It has to learn of the loss.
struct Waiter {
  explicit Waiter(bp_device device) : stream(device), held(stream, kLongHold) {
    thread = std::thread([this] {
      began = true;
      try {
        stream.synchronize();
        said = "its wait ended without an error";
      } catch (const Error& error) {
        if (error.code() != BP_ERROR_DEVICE_LOST) said = error.what();
      }
      over = true;
    });
  }
  ~Waiter() {
    held.release();
    thread.join();
  }
  static constexpr int kLongHold = 3;  // seconds

  backplane::Stream stream;
  HeldStream held;
  std::atomic<bool> began{false}, over{false};
  std::string said;  // "": as it should be
  std::thread thread;
};

// What threads that had `headstart` to begin their waits say of a reset meanwhile; "": all learnt of it.
std::string reset_beside_waits(bp_device device, std::chrono::milliseconds headstart) {
  std::string failed;
  bool ended = true;
  {
    std::vector<std::unique_ptr<Waiter>> waiters;
    for (int i = 0; i < kThreads; ++i) waiters.push_back(std::make_unique<Waiter>(device));
    for (const auto& one : waiters)
      while (!one->began) std::this_thread::yield();
    std::this_thread::sleep_for(headstart);
    std::thread resetting([&] {
      try {
        reset_device(device);
      } catch (const Error& error) {
        failed = error.what();
      }
    });
    for (const auto& one : waiters)
      while (!one->over && !one->held.timed_out()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    for (const auto& one : waiters) {
      ended = ended && !one->held.timed_out();
      one->held.release();
    }
    resetting.join();
    for (const auto& one : waiters) {
      if (failed.empty()) failed = one->said;
    }
  }
  return ended ? failed : "threads that waited for a stream whose work does not end went on waiting";
}

// On a machine that is busy a thread may begin its wait so late that the reset goes first.
void a_reset_ends_all_waits(bp_device device) {
  std::string said;
  for (const int headstart : {50, 200, 1000}) {
    said = reset_beside_waits(device, std::chrono::milliseconds(headstart));
    if (said.empty()) break;
  }
  BP_CHECK(said.empty(), DATA, "reset while ", kThreads, " threads waited: ", said);
  expect_works(device, "a device that was reset while threads waited for it");
}

// Its plan, its executables and its state between calls are made again.
void compiled_graphs_survive_a_reset(bp_device device) {
  const auto inputs = [device](float x) { return std::vector<Tensor>{floats(std::vector<float>(5000, x), device)}; };
  const Graph graph = make_graph(
      [](std::span<const Tensor> in) {
        const Tensor sorted = run_op("bp::sort", {value(run_op("bp::negative", {value(in[0])}))});
        return std::vector<Tensor>{run_op("bp::add", {value(run_op("bp::sum", {value(sorted)})), value(sorted)})};
      },
      inputs(1));
  for (int round = 1; round <= 3; ++round) {
    const auto x = static_cast<float>(round);
    expect_all(graph.call(inputs(x))[0], -5001 * x, "a compiled graph, before and after resets");
    reset_device(device);
    expect_works(device, "a device that was reset");
  }
}

}  // namespace

void add_loss_laws(const Table& table, Laws& laws) {
  const auto& def = table.def();
  const bool resets = !table.synchronous() && table.extension<bp_extension_reset>(BP_EXTENSION_RESET);
  const bool ends_waits =
      (BP_HAS(&def, bp_backend_def, abort) && def.abort) || (BP_HAS(&def, bp_backend_def, wait_for) && def.wait_for);
  const bool holds_streams = table.extension<bp_extension_callbacks>(BP_EXTENSION_CALLBACKS);
  const auto add = [&](const char* check, const char* needs, bool offered, void (*law)(bp_device)) {
    laws.push_back({"(device) loss", check, {}, needs});
    if (offered) laws.back().holds = [law, device = table.device()] { law(device); };
  };
  add("threads", "streams, the extensions reset and callbacks, and abort or wait_for",
      resets && ends_waits && holds_streams, a_reset_ends_all_waits);
  add("compiled", "streams, and the extension reset", resets, compiled_graphs_survive_a_reset);
}

}  // namespace backplane::conformance

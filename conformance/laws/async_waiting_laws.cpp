// Laws of what may go on while somebody waits for the device: mode async.
//
// One stream is held by a callback. A wait for it stops the thread that waits, and nobody else.
#include "backplane/device.hpp"
#include "laws/async_laws.hpp"

namespace backplane::conformance {
namespace {

constexpr int kPatience = 20;  // seconds, which a machine that is busy needs

// A second stream takes work while another thread waits for the first: its copy holds nothing that others need. Whether
// the device runs it meanwhile is the device's affair: some have one queue for all streams.
void others_work_beside_a_copy(bp_device device, bool to_host_too) {
  const backplane::Stream first(device), second(device);
  const Tensor x = floats(std::vector<float>(1024, 1.0f), device);
  Tensor y;
  {
    const StreamScope scope(first);
    y = run_op("bp::add", {value(x), value(1.0)});
  }
  expect_all(y, 2, "a copy on the stream that wrote its source");
  second.synchronize();
  HeldStream held(first);
  std::atomic<bool> began{false};
  std::thread reader([&] {
    const StreamScope scope(first);
    began = true;
    if (to_host_too) return expect_all(y, 2, "a copy behind a stream that was held");
    expect_all(floats(std::vector<float>(1 << 20, 3.0f), device), 3, "a copy from the host, and back");
  });
  while (!began) std::this_thread::yield();
  auto sum = std::make_shared<Tensor>();
  const bool worked = ends_in(kPatience, [second, x, sum] {
    const StreamScope scope(second);
    // Several times: nothing tells when the reader has come to its wait, and on a busy machine it takes a while.
    for (int round = 0; round < 10; ++round) {
      std::this_thread::sleep_for(std::chrono::milliseconds(30));
      *sum = run_op("bp::add", {value(x), value(2.0)});
      second.query();
    }
  });
  const bool late = held.timed_out();
  held.release();
  reader.join();
  BP_CHECK(worked && !late, DATA, "a second stream did not go on while another thread waited for a copy on the first");
  expect_all(*sum, 3, "a second stream");
}

// What a callback lets go of is freed there, while other threads allocate, copy and wait.
void callbacks_may_drop_tensors(bp_device device) {
  const bool over = ends_in(kPatience, [device] {
    const backplane::Stream first(device), second(device);
    for (int round = 0; round < 32; ++round) {
      const StreamScope scope(first);
      auto kept = std::make_shared<Tensor>(floats(std::vector<float>(4096, 1.0f), device));
      *kept = run_op("bp::add", {value(*kept), value(1.0)});
      first.on_complete([kept = std::move(kept)]() mutable { kept.reset(); });
      expect_all(run_op("bp::add", {value(floats(std::vector<float>(4096, 3.0f), device)), value(1.0)}), 4,
                 "a copy behind a callback that drops a tensor");
    }
    first.synchronize();
  });
  BP_CHECK(over, DATA,
           "a callback that drops the last reference to a tensor, and a copy behind it, wait for each other");
}

}  // namespace

void add_waiting_laws(const Table& table, Laws& laws) {
  const bool offered = !table.synchronous() && table.extension<bp_extension_callbacks>(BP_EXTENSION_CALLBACKS);
  const auto add = [&](const char* check, std::function<void(bp_device)> law) {
    laws.push_back({"(device) waiting", check, {}, "streams, and the extension callbacks"});
    if (offered) laws.back().holds = [law = std::move(law), device = table.device()] { law(device); };
  };
  add("copies to the host", [](bp_device device) { others_work_beside_a_copy(device, true); });
  add("copies from the host", [](bp_device device) { others_work_beside_a_copy(device, false); });
  add("callbacks", callbacks_may_drop_tensors);
}

}  // namespace backplane::conformance

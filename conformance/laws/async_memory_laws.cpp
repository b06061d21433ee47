// Laws of memory that several streams use, one after another: mode async.
//
// A value that comes too early or too late is seen; a device that looks at what the host orders sees the rest.
#include <utility>

#include "backplane/device.hpp"
#include "laws/async_laws.hpp"

namespace backplane::conformance {
namespace {

Tensor zeros(bp_device device) {
  return run_op("bp::full", {value(Shape(&kLateCount, 1)), value(0.0), dtype_value(BP_FLOAT32), value(device)});
}

// Work that takes a while, and reads `x` at its end.
Tensor late_sum(const Tensor& x) { return run_op("bp::add", {value(late(x)), value(x)}); }

// What `first` has freed while it still reads it is new memory on `first`, whose first use is on `second`.
void freed_memory_waits_for_its_readers(bp_device device) {
  const backplane::Stream first(device), second(device);
  const Tensor zero = zeros(device), nine = run_op("bp::add", {value(zero), value(9.0)});
  for (int round = 0; round < 16; ++round) {
    Tensor late, reused;
    {
      const StreamScope scope(first);
      const Tensor x = run_op("bp::add", {value(zero), value(static_cast<double>(round))});
      late = late_sum(x);
    }
    {
      const StreamScope scope(first);
      reused = empty(std::span(&kLateCount, 1), BP_FLOAT32, device);
    }
    {
      const StreamScope scope(second);
      run_op_into("bp::add", {value(nine), value(1.0)}, reused);
    }
    expect_all(late, static_cast<float>(2 * round + kLateSteps),
               "what a stream read of memory that was freed behind it");
    expect_all(reused, 10, "what a second stream wrote into memory that the first had freed");
  }
}

// Tensors pass from stream to stream and are dropped on the way.
void tensors_may_pass_between_streams(bp_device device) {
  const backplane::Stream streams[] = {backplane::Stream(device), backplane::Stream(device), backplane::Stream(device)};
  Tensor x = zeros(device);
  for (int step = 0; step < 60; ++step) {
    const StreamScope scope(streams[step % 3]);
    const Tensor y = run_op("bp::add", {value(x), value(1.0)});
    x = run_op("bp::add", {value(y), value(zeros(device))});
  }
  expect_all(x, 60, "a tensor that 60 steps on three streams have added 1 to");
}

// Kernels that need scratch memory find no free block: the host releases its caches, and waits for the work that uses
// it.
void scratch_is_found_under_pressure(bp_device device) {
  struct Limit {
    explicit Limit(bp_device on) : device(on) {}
    ~Limit() { lift(); }
    void lift() {
      if (std::exchange(set, false)) set_memory_limit(device, std::nullopt);
    }
    const bp_device device;
    bool set = false;
  };
  std::vector<float> falling(kLateCount);
  for (size_t i = 0; i < falling.size(); ++i) falling[i] = static_cast<float>(falling.size() - i);
  const Tensor x = floats(falling, device);
  const backplane::Stream other(device);
  const std::vector<float> expected = read_floats(run_op("bp::sum", {value(run_op("bp::sort", {value(x)}))}));
  Limit limit(device);
  // A device that sorts slowly gets fewer rounds. The first ones are far from each other.
  constexpr int kRounds = 24, kLeast = 4, kStep = 5;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  for (int i = 0; i < kRounds && (i < kLeast || std::chrono::steady_clock::now() < end); ++i) {
    const int round = i * kStep % kRounds;
    Tensor sums[2];
    try {
      set_memory_limit(device, memory_stats(device).allocated + static_cast<uint64_t>(kLateCount) * (2 * round));
      limit.set = true;
    } catch (const Error& error) {
      if (error.code() == BP_ERROR_NOT_IMPLEMENTED) return;
      throw;
    }
    bool refused = false;
    try {
      {
        const StreamScope scope(other);
        sums[0] = run_op("bp::sum", {value(run_op("bp::add", {value(x), value(1.0)}))});
      }
      sums[1] = run_op("bp::sum", {value(run_op("bp::sort", {value(x)}))});
    } catch (const Error& error) {
      if (error.code() != BP_ERROR_MEMORY) throw;
      refused = true;  // there is too little, and a clear word
    }
    limit.lift();
    if (refused) continue;
    BP_CHECK(read_floats(sums[1]) == expected, DATA, "a sort under a memory limit gave another sum");
  }
}

}  // namespace

void add_memory_order_laws(const Table& table, Laws& laws) {
  const auto add = [&](const char* check, void (*law)(bp_device)) {
    laws.push_back({"(device) memory order", check, {}, "streams"});
    if (!table.synchronous()) laws.back().holds = [law, device = table.device()] { law(device); };
  };
  add("freed", freed_memory_waits_for_its_readers);
  add("passed on", tensors_may_pass_between_streams);
  add("scratch", scratch_is_found_under_pressure);
}

}  // namespace backplane::conformance

// A launch: its blocks one after the other, the warps of a block in turns, both in an order of the seed's.
#include <algorithm>
#include <numeric>

#include "warp.hpp"

namespace emulator {
namespace {

constexpr uint64_t kTurn = 4096;                    // instructions of a warp before another may run
constexpr uint64_t kMostSteps = uint64_t{1} << 34;  // of a block: beyond it, it never ends

void run_block(const Launch& launch, uint64_t number, std::mt19937_64& random) {
  Block block{launch, {}, 0, {}, {}, {}};
  block.index = {static_cast<uint32_t>(number % launch.grid.x),
                 static_cast<uint32_t>(number / launch.grid.x % launch.grid.y),
                 static_cast<uint32_t>(number / launch.grid.x / launch.grid.y)};
  const size_t shared = launch.function->shared_bytes + launch.dynamic_shared;
  block.shared.resize(shared), block.shared_written.resize(shared), block.touches.resize(shared);
  std::vector<std::unique_ptr<Warp>> warps;
  for (uint32_t w = 0; w * uint64_t{kLanes} < launch.block.count(); ++w)
    warps.push_back(std::make_unique<Warp>(block, w));
  uint64_t steps = 0;
  std::vector<Warp*> running;
  while (true) {
    running.clear();
    for (const auto& warp : warps)
      if (warp->state() == Warp::State::kRunning) running.push_back(warp.get());
    if (running.empty()) {
      bool waiting = false;
      for (const auto& warp : warps)
        if (warp->state() == Warp::State::kAtBarrier) warp->pass_barrier(), waiting = true;
      if (!waiting) return;
      ++block.time;
      continue;
    }
    running[running.size() == 1 ? 0 : random() % running.size()]->run(kTurn);
    if ((steps += kTurn) > kMostSteps) throw Fault(702, "a block of kernel " + launch.name() + " does not end");
  }
}

}  // namespace

void run_grid(const Launch& launch, std::mt19937_64& random) {
  const uint64_t blocks = launch.grid.count();
  std::vector<uint64_t> order(blocks);
  std::iota(order.begin(), order.end(), uint64_t{0});
  std::shuffle(order.begin(), order.end(), random);
  for (const uint64_t block : order) run_block(launch, block, random);
}

}  // namespace emulator

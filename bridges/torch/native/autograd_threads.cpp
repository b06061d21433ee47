// PyTorch's engine of derivatives has a thread and a queue for each device, which it counts once, at the process's
// first backward pass. Devices that are added later get theirs here.
#include <torch/csrc/autograd/engine.h>

#include <thread>

#include "device_tensors.hpp"

namespace backplane_torch {

namespace {

using Queues = std::vector<std::shared_ptr<torch::autograd::ReadyQueue>>;

// Names members of the engine that are protected; there is never an object of this class.
struct EngineMembers : torch::autograd::Engine {
  static Queues& queues(torch::autograd::Engine& engine) { return engine.*(&EngineMembers::device_ready_queues_); }
  static bool has_started(torch::autograd::Engine& engine) {
    return (engine.*(&EngineMembers::thread_pool_shared_)) != nullptr;
  }
};

}  // namespace

void start_autograd_threads(int count) {
  torch::autograd::Engine& engine = torch::autograd::Engine::get_default_engine();
  Queues& queues = EngineMembers::queues(engine);
  if (!EngineMembers::has_started(engine) || static_cast<int>(queues.size()) >= count) return;  // it will count itself
  Queues longer = queues;
  for (int i = static_cast<int>(queues.size()); i < count; ++i) {
    longer.push_back(std::make_shared<torch::autograd::ReadyQueue>());
    std::thread(&torch::autograd::Engine::thread_init, &engine, i, longer.back(), true).detach();
  }
  // A backward pass on another thread reads the vector without a lock, so its old memory stays.
  auto* kept = new Queues(std::move(longer));
  queues.swap(*kept);
}

}  // namespace backplane_torch

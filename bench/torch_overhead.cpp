// The twin of overhead.cpp on PyTorch's C++ interface: the same cases, names and options. Built by run.py with one
// compiler line against the libraries of the Python package, and run beside ours. One thread.
#include <benchmark/benchmark.h>
#include <torch/library.h>
#include <torch/torch.h>

namespace {

at::Tensor noop_kernel(const at::Tensor& x) { return x; }

TORCH_LIBRARY(bench, library) {
  library.def("noop(Tensor x) -> Tensor");
  library.impl("noop", c10::DispatchKey::CPU, &noop_kernel);
}

at::Tensor filled(float number, bool recording, int64_t count = 1) {
  return torch::full({count}, number, torch::requires_grad(recording));
}

void direct(benchmark::State& state) {
  at::Tensor (*volatile kernel)(const at::Tensor&) = noop_kernel;
  const at::Tensor x = filled(1, false);
  for (auto _ : state) benchmark::DoNotOptimize(kernel(x));
}

void noop(benchmark::State& state) {
  const auto op =
      c10::Dispatcher::singleton().findSchemaOrThrow("bench::noop", "").typed<at::Tensor(const at::Tensor&)>();
  const at::Tensor x = filled(1, false);
  for (auto _ : state) benchmark::DoNotOptimize(op.call(x));
}

void add(benchmark::State& state, bool recording) {
  const at::Tensor x = filled(1, recording);
  const at::Tensor y = filled(2, recording);
  for (auto _ : state) benchmark::DoNotOptimize(x + y);
}

void inplace(benchmark::State& state) {
  at::Tensor x = filled(1, false);
  const at::Tensor y = filled(2, false);
  for (auto _ : state) benchmark::DoNotOptimize(x.add_(y));
}

void view(benchmark::State& state) {
  const at::Tensor x = filled(1, false, 8);
  for (auto _ : state) benchmark::DoNotOptimize(x.reshape({2, 4}));
}

void backward(benchmark::State& state) {
  const at::Tensor a = filled(1, true);
  const at::Tensor b = filled(2, true);
  for (auto _ : state) (a * b).sum().backward();
}

BENCHMARK(direct);
BENCHMARK(noop);
BENCHMARK_CAPTURE(add, plain, false)->Name("add");
BENCHMARK_CAPTURE(add, recording, true)->Name("add_recording");
BENCHMARK(inplace);
BENCHMARK(view);
BENCHMARK(backward);

}  // namespace

int main(int argc, char** argv) {
  at::set_num_threads(1);
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}

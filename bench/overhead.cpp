// What a call costs besides its arithmetic: ours, from C++, on one-element tensors. torch_overhead.cpp is its twin.
//
// usage: bench_overhead PLUGIN.so [Google Benchmark's options]. With BENCH_ITERATIONS=N each case runs exactly N times,
// so that instructions can be counted as a difference of two runs. One thread.
#include <benchmark/benchmark.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "backplane/autograd.hpp"
#include "backplane/device.hpp"
#include "backplane/op.hpp"
#include "backplane/plugins.hpp"
#include "plugins/noop_kernel.h"

// Kept out of line, so that callgrind can count between its first and its last instruction.
#define BENCH_CASE [[gnu::noinline]]

namespace {

using backplane::Tensor;

Tensor filled(float number, bool recording, int64_t count = 1) {
  const std::vector<float> data(static_cast<size_t>(count), number);
  const int64_t shape[] = {count};
  Tensor tensor = backplane::from_host(data.data(), shape, {}, BP_FLOAT32, backplane::parse_device("cpu"));
  if (recording) backplane::set_requires_grad(tensor, true);
  return tensor;
}

// The kernel through a pointer that the compiler cannot see through.
BENCH_CASE void direct(benchmark::State& state) {
  bp_kernel_fn volatile kernel = noop_kernel;
  bp_host host{};
  host.retain = [](bp_tensor* tensor) { backplane::retain(tensor); };
  bp_frame frame{};
  frame.host = &host;
  const Tensor x = filled(1, false);
  for (auto _ : state) {
    const bp_value arg = backplane::value(x);
    bp_value out{};
    if (kernel(&frame, &arg, 1, &out, 1) != BP_OK) state.SkipWithError("the kernel failed");
    backplane::release(out.u.t);
  }
}

BENCH_CASE void noop(benchmark::State& state) {
  const backplane::OpHandle op = backplane::find_op("bench::noop");
  const Tensor x = filled(1, false);
  for (auto _ : state) {
    const bp_value arg = backplane::value(x);
    bp_value out{};
    if (backplane::call_packed(op, &arg, 1, &out, 1) != BP_OK) state.SkipWithError(backplane::last_error());
    backplane::release(out.u.t);
  }
}

BENCH_CASE void add(benchmark::State& state, bool recording) {
  const backplane::OpHandle op = backplane::find_op("bp::add");
  const Tensor x = filled(1, recording);
  const Tensor y = filled(2, recording);
  for (auto _ : state) benchmark::DoNotOptimize(backplane::call(op, {backplane::value(x), backplane::value(y)}));
}

// x += y.
BENCH_CASE void inplace(benchmark::State& state) {
  const backplane::OpHandle op = backplane::find_op("bp::add");
  const Tensor x = filled(1, false);
  const Tensor y = filled(2, false);
  for (auto _ : state) {
    const bp_value args[] = {backplane::value(x), backplane::value(y)};
    if (backplane::call_inplace(op, args, 2) != BP_OK) state.SkipWithError(backplane::last_error());
  }
}

// Recorded, it keeps both its operands.
BENCH_CASE void mul(benchmark::State& state, bool recording) {
  const backplane::OpHandle op = backplane::find_op("bp::multiply");
  const Tensor x = filled(1, recording);
  const Tensor y = filled(2, recording);
  for (auto _ : state) benchmark::DoNotOptimize(backplane::call(op, {backplane::value(x), backplane::value(y)}));
}

// Eight elements as two rows of four.
BENCH_CASE void view(benchmark::State& state) {
  const backplane::OpHandle op = backplane::find_op("bp::reshape");
  const Tensor x = filled(1, false, 8);
  const int64_t shape[] = {2, 4};
  for (auto _ : state)
    benchmark::DoNotOptimize(backplane::call(op, {backplane::value(x), backplane::value(backplane::Shape(shape))}));
}

// (a * b).sum().backward(), the grads accumulating.
BENCH_CASE void backward(benchmark::State& state) {
  const backplane::OpHandle mul = backplane::find_op("bp::multiply");
  const backplane::OpHandle sum = backplane::find_op("bp::sum");
  const Tensor a = filled(1, true);
  const Tensor b = filled(2, true);
  const Tensor none;
  for (auto _ : state) {
    const Tensor product = backplane::call(mul, {backplane::value(a), backplane::value(b)});
    const Tensor total = backplane::call(sum, {backplane::value(product)});
    backplane::backward({&total, 1}, {&none, 1}, {});
  }
}

void add_case(const std::string& name, void (*body)(benchmark::State&)) {
  auto* registered = benchmark::RegisterBenchmark(name.c_str(), body);
  if (const char* count = std::getenv("BENCH_ITERATIONS")) registered->Iterations(std::atoll(count));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: bench_overhead PLUGIN.so [options of Google Benchmark]\n");
    return 2;
  }
  try {
    backplane::parse_device("cpu");
    backplane::load_plugin(argv[1]);
  } catch (const backplane::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  add_case("direct", direct);
  add_case("noop", noop);
  add_case("add", [](benchmark::State& state) { add(state, false); });
  add_case("add_recording", [](benchmark::State& state) { add(state, true); });
  add_case("mul", [](benchmark::State& state) { mul(state, false); });
  add_case("mul_recording", [](benchmark::State& state) { mul(state, true); });
  add_case("inplace", inplace);
  add_case("view", view);
  add_case("backward", backward);
  benchmark::AddCustomContext("bytes_per_node", std::to_string(backplane::bytes_per_node()));
  int rest = argc - 1;
  argv[1] = argv[0];
  benchmark::Initialize(&rest, argv + 1);
  benchmark::RunSpecifiedBenchmarks();
}

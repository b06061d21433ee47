// What graphs cost besides their kernels: the time of each stage from a graph's text to its plan, for graphs of growing
// size, and what a node of a plan takes above its kernel.
//
// usage: bench_graph CPU_PLUGIN.so NODES...    Out: JSON on standard output, seconds and nanoseconds. One thread.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "backplane/device.hpp"
#include "backplane/plugins.hpp"
#include "graph/passes/optimize.hpp"
#include "graph/plans/executable.hpp"
#include "graph/plans/plan_build.hpp"
#include "graph/text/parse.hpp"
#include "graph/text/print.hpp"
#include "graph/verify.hpp"
#include "memory/process/epoch.hpp"

namespace backplane::core::graph {
namespace {

double seconds(const std::function<void()>& body) {
  const auto start = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double best(int times, const std::function<void()>& body) {
  double least = seconds(body);
  for (int i = 1; i < times; ++i) least = std::min(least, seconds(body));
  return least;
}

Tensor filled(std::vector<int64_t> shape) {
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  const std::vector<float> data(static_cast<size_t>(count), 0.5F);
  return from_host(data.data(), shape, {}, BP_FLOAT32, parse_device("cpu"));
}

// A function of one matrix as a program would trace it: formulas that reach back a little, products between them,
// views, sums, and parts that are equal or that nobody reads.
class Writer {
 public:
  explicit Writer(std::vector<int64_t> shape) {
    graph_ = std::make_unique<Graph>();
    graph_->name = "grown";
    for (const int64_t size : shape) dims_.push_back(size);
    values_ = {graph_->add_input("x", type())};
  }
  void call(const char* name, std::vector<Argument> args) {
    CallGuard guard;
    const OpEntry& entry = checked_entry(find_op(name));
    for (size_t i = args.size(); i < entry.record->args.size(); ++i)
      args.push_back(graph_->copy(entry.record->args[i].default_value));
    const Type result = type();
    values_.push_back(graph_->node(graph_->add_node(entry, args, {&result, 1})).first_result);
  }
  Argument recent(size_t back) const {
    return Argument::of(values_[values_.size() - 1 - std::min(back, values_.size() - 1)]);
  }
  Argument number(double x) { return graph_->copy(backplane::number(value(x))); }
  Argument axes(std::vector<int64_t> list) { return graph_->copy(value(Shape(list))); }
  std::shared_ptr<Graph> take() {
    graph_->outputs = {values_.back()};
    return std::move(graph_);
  }

 private:
  Type type() const { return {BP_FLOAT32, parse_device("cpu"), dims_}; }
  std::unique_ptr<Graph> graph_;
  std::vector<Dim> dims_;
  std::vector<ValueId> values_;
};

std::shared_ptr<Graph> grown(size_t nodes) {
  std::mt19937 random(1);
  Writer w({4, 4});
  for (size_t i = 0; i < nodes; ++i) {
    const auto any = [&] { return w.recent(random() % 6); };
    switch (random() % 12) {
      case 0:
        w.call("bp::matmul", {any(), any()});
        break;
      case 1:
        w.call("bp::permute_dims", {any(), w.axes({1, 0})});
        break;
      case 2:
        w.call("bp::multiply", {any(), w.number(1.0)});
        break;
      case 3:
      case 4:
        w.call("bp::tanh", {any()});
        break;
      case 5:
      case 6:
        w.call("bp::multiply", {any(), w.number(0.5)});
        break;
      default:
        w.call(random() % 2 ? "bp::add" : "bp::subtract", {w.recent(0), any()});
    }
  }
  return w.take();
}

void stages(size_t nodes) {
  std::shared_ptr<Graph> graph = grown(nodes);
  std::string text;
  std::shared_ptr<const Graph> better;
  std::printf("{\"nodes\": %zu", nodes);
  const auto stage = [](const char* name, const std::function<void()>& body) {
    std::printf(", \"%s\": %.6g", name, seconds(body));
  };
  stage("print", [&] { text = print(*graph); });
  stage("parse", [&] { graph = parse(text); });
  stage("verify", [&] { verify(*graph); });
  stage("optimize", [&] { better = optimize(*graph); });
  const std::vector<Tensor> inputs = {filled({4, 4})};
  std::shared_ptr<Plan> plan;
  stage("plan", [&] { plan = std::make_shared<Plan>(build_plan(better, {}, inputs, {}, true, {})); });
  plan->run(inputs, {});
  stage("run", [&] { plan->run(inputs, {}); });
  std::printf(", \"kept\": %zu}", better->nodes().size());
}

// A chain of sums of one element, run by a plan without compilers, over the same kernels called one after the other.
double nanoseconds_above_kernel() {
  constexpr int kNodes = 1000;
  Writer w({1});
  for (int i = 0; i < kNodes; ++i) w.call("bp::add", {w.recent(0), w.recent(1)});
  const std::vector<Tensor> inputs = {filled({1})};
  Plan plan(build_plan(w.take(), {}, inputs, {}, false, {}));
  plan.run(inputs, {});
  const PlanData& data = plan.data();
  // Memory of their own, as the plan's lies in its workspace.
  std::vector<bp_value> arguments = data.arguments;
  const Tensor x = filled({1}), y = filled({1}), out = filled({1});
  for (const Step& step : data.steps) {
    arguments[step.args].u.t = x.get();
    arguments[step.args + 1].u.t = y.get();
    arguments[step.outs].u.t = out.get();
  }
  const double kernels = best(200, [&] {
    for (const Step& step : data.steps)
      if (step.fn(&step.frame, &arguments[step.args], step.n_args, &arguments[step.outs], step.n_outs) != BP_OK)
        std::abort();
  });
  return (best(200, [&] { plan.run(inputs, {}); }) - kernels) / kNodes * 1e9;
}

}  // namespace
}  // namespace backplane::core::graph

int main(int argc, char** argv) {
  using namespace backplane::core::graph;
  if (argc < 2) {
    std::fprintf(stderr, "usage: bench_graph CPU_PLUGIN.so NODES...\n");
    return 2;
  }
  try {
    backplane::load_plugin(argv[1]);
    std::printf("{\"above_kernel_ns\": %.4g, \"graphs\": [", nanoseconds_above_kernel());
    for (int i = 2; i < argc; ++i) {
      if (i > 2) std::printf(", ");
      stages(static_cast<size_t>(std::atoll(argv[i])));
    }
    std::printf("]}\n");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_graph: %s\n", error.what());
    return 1;
  }
}

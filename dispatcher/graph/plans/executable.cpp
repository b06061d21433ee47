#include "graph/plans/executable.hpp"

#include <algorithm>

#include "backplane/device.hpp"
#include "backplane/log.hpp"
#include "call/dispatch.hpp"
#include "call/profile.hpp"
#include "graph/graph_body.hpp"
#include "graph/kept_inputs.hpp"
#include "graph/passes/optimize.hpp"
#include "graph/passes/recompute.hpp"
#include "graph/plans/explain.hpp"
#include "graph/plans/made_for.hpp"
#include "graph/plans/plan_build.hpp"
#include "graph/sizes.hpp"
#include "graph/text/print.hpp"
#include "memory/devices/capture.hpp"
#include "memory/tensors/tensor_impl.hpp"
#include "record/dtype_rules.hpp"

namespace backplane::core::graph {
namespace {

constexpr size_t kMaxPlans = 8;  // and graphs for given sizes

void log_plan(const Graph& graph, const std::string& text) {
  if (logs(LogTopic::kPlan)) log_line(LogTopic::kPlan, "graph " + graph.name + ": " + text);
}

std::string shapes_text(std::span<const Tensor> inputs) {
  std::string text;
  for (const Tensor& input : inputs) {
    text += text.empty() ? "[" : ", [";
    for (size_t i = 0; i < input.shape().size(); ++i) text += (i ? ", " : "") + std::to_string(input.shape()[i]);
    text += "]";
  }
  return "(" + text + ")";
}

// Are there keys for which the calls of a run have to be made one by one?
bool intercepted(const Graph& graph, std::span<const Tensor> inputs) {
  const ThreadState& state = thread_state;
  uint64_t keys = state.included_keys & kInnerKeys;
  for (const Tensor& t : inputs) keys |= keys_now(impl(t.get()));
  for (const Constant& c : graph.constants())
    if (c.live) keys |= keys_now(impl(c.tensor.get()));
  if (state.grad_disabled) keys &= ~kTapeKey;
  if (!profile_observes()) keys &= ~kProfileKey;  // the steps of a plan report to a profile themselves
  return (keys & ~state.excluded_keys) != 0 || force_decomposition.load(std::memory_order_relaxed);
}

}  // namespace

Executable::Executable(std::shared_ptr<const Graph> graph, ExecutableOptions options)
    : graph_(std::move(graph)),
      updates_(*graph_),
      options_(std::move(options)),
      sized_by_inputs_(is_sized_by_inputs(*graph_)) {
  // A changed tensor has its old value until the end.
  for (const Update& update : graph_->updates) {
    const Value& target = graph_->value(update.target);
    if (target.kind == Value::Kind::kInput && target.index < options_.donated.size())
      options_.donated[target.index] = false;
  }
  if (!sized_by_inputs_) functions_ = functions_of(graph_);
  plannable_ = options_.plans && graph_->symbols().empty();
}

Executable::~Executable() = default;

void Executable::check_inputs(std::span<const Tensor> inputs) const {
  BP_CHECK(inputs.size() == graph_->inputs().size(), TYPE, "graph ", graph_->name, ": takes ", graph_->inputs().size(),
           " tensors, found ", inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Input& input = graph_->inputs()[i];
    const Value& v = graph_->value(input.value);
    const bp_tensor& t = *inputs[i].held();
    if (t.dtype != v.dtype || t.backend != v.device.backend || t.ordinal != v.device.ordinal) [[unlikely]]
      detail::fail(t.dtype != v.dtype ? BP_ERROR_DTYPE : BP_ERROR_VALUE, "graph ", graph_->name, ": input ", i, " \"",
                   input.name, "\": found ", kDtypeNames[t.dtype], " on ", device_name(inputs[i].device()),
                   ", expected ", kDtypeNames[v.dtype], " on ", device_name(v.device),
                   ". Fix: cast it, or move it with to(device)");
  }
}

std::vector<int64_t> Executable::bind(std::span<const Tensor> inputs) const {
  std::vector<Shape> shapes;
  for (const Tensor& t : inputs) shapes.push_back(t.shape());
  std::vector<int64_t> symbols = graph_->bind(shapes);
  graph_->check(symbols);
  return symbols;
}

namespace {

// The latest of `known`, behind one that is newer than these.
template <class T>
std::shared_ptr<const std::vector<T>> with_newest(T newest, const std::shared_ptr<const std::vector<T>>& known) {
  auto all = std::make_shared<std::vector<T>>();
  all->push_back(std::move(newest));
  if (known)
    all->insert(all->end(), known->begin(),
                known->begin() + static_cast<int64_t>(std::min(known->size(), kMaxPlans - 1)));
  return all;
}

}  // namespace

std::shared_ptr<Executable> Executable::at_symbols(std::vector<int64_t> symbols) {
  const std::shared_ptr<const Specializations> known = specialized_.load(std::memory_order_acquire);
  if (known)
    for (const Specialized& one : *known)
      if (one.symbols == symbols) return one.executable;
  auto made = std::make_shared<Executable>(specialize(*graph_, symbols), options_);
  specialized_.store(with_newest(Specialized{std::move(symbols), made}, known), std::memory_order_release);
  return made;
}

std::shared_ptr<Executable> Executable::at_sizes_of(std::span<const Tensor> inputs) {
  check_inputs(inputs);
  return sized_by_inputs_ ? at_symbols(bind(inputs)) : nullptr;
}

std::shared_ptr<const Executable::Optimized> Executable::optimized() {
  std::shared_ptr<const Optimized> known = optimized_.load(std::memory_order_acquire);
  if (known && is_current(known->made_for)) return known;
  const CapturePause pause;  // what is folded serves other runs too
  auto made = std::make_shared<Optimized>();
  made->graph = optimize(*graph_);
  for (const auto& inner : made->graph->graphs) {
    const auto at = std::ranges::find(graph_->graphs, inner);
    made->functions.push_back(
        at == graph_->graphs.end() ? function_of(inner) : functions_[static_cast<size_t>(at - graph_->graphs.begin())]);
  }
  for (const Constant& constant : made->graph->constants())
    if (const bp_storage* storage = constant.tensor.get()->storage) note_made_for(made->made_for, *storage);
  if (optimized_.compare_exchange_strong(known, made)) return made;
  return known;  // another thread's
}

// Lifetimes between the steps of a plan differ from those between nodes: regions keep their operands until they
// run, and do not store values inside them. If the budget is missed, a smaller one is the target.
std::unique_ptr<PlanData> Executable::build_within_budget(const std::vector<int64_t>& symbols,
                                                          std::span<const Tensor> inputs) {
  const std::shared_ptr<const Optimized> whole_graph = optimized();
  const auto build = [&](const std::shared_ptr<const Graph>& graph) {
    return build_plan(graph, symbols, inputs, options_.donated, options_.compilers, whole_graph->functions);
  };
  std::unique_ptr<PlanData> best = build(whole_graph->graph);
  if (!options_.memory_budget) return best;
  const uint64_t budget = *options_.memory_budget, whole = best->summary.arena;
  for (const uint64_t target : {budget, budget / 2, uint64_t{0}}) {
    if (best->summary.arena <= budget) break;
    const Recomputation made = recompute(whole_graph->graph, target);
    if (made.nodes == 0) continue;
    std::unique_ptr<PlanData> other = build(made.graph);
    other->summary.recomputed = made.nodes;
    if (other->summary.arena < best->summary.arena) best = std::move(other);
  }
  best->summary.budget = budget;
  best->summary.arena_before = whole;
  return best;
}

std::shared_ptr<Plan> Executable::plan_for(std::span<const Tensor> inputs) {
  const std::shared_ptr<const Plans> known = plans_.load(std::memory_order_acquire);
  if (known)
    for (const std::shared_ptr<Plan>& plan : *known)
      if (plan->fits(inputs)) {
        if (logs(LogTopic::kPlan)) log_plan(*graph_, "a kept plan answers for " + shapes_text(inputs));
        return plan;
      }
  auto made = std::make_shared<Plan>(build_within_budget(bind(inputs), inputs));
  if (logs(LogTopic::kPlan))
    log_plan(*graph_, "none of " + std::to_string(known ? known->size() : 0) + " kept plans fits " +
                          shapes_text(inputs) + "; a new plan with " + std::to_string(made->data().summary.arena) +
                          " bytes of memory");
  plans_.store(with_newest(made, known), std::memory_order_release);
  return made;
}

// `updates`: a result may be written over the tensor that it updates.
std::vector<Tensor> Executable::run(std::span<const Tensor> inputs, std::span<const bp_generator_state> draws,
                                    bool updates) {
  check_inputs(inputs);
  BP_CHECK(draws.size() == graph_->draws.size(), VALUE, "graph ", graph_->name, ": takes ", graph_->draws.size(),
           " reservations of random numbers, found ", draws.size());
  if (sized_by_inputs_) return at_symbols(bind(inputs))->run(inputs, draws, updates);
  if (!plannable_ || intercepted(*graph_, inputs)) {
    log_plan(*graph_, plannable_ ? "runs node by node: a transform, the tape or a plugin's key takes its calls"
                                 : "runs node by node: a size depends on values, or plans are off");
    return interpret(*graph_, inputs, bind(inputs), draws, functions_);
  }
  const std::shared_ptr<Plan> plan = plan_for(inputs);
  if (!plan->may_run()) {
    log_plan(*graph_, "runs node by node: a stream is being captured, and a step of the plan cannot be");
    return interpret(*graph_, inputs, bind(inputs), draws, functions_);
  }
  return plan->run(inputs, draws, updates);
}

std::vector<Tensor> Executable::run_and_update(std::span<const Tensor> inputs,
                                               std::span<const bp_generator_state> draws) {
  if (updates_.empty()) return run(inputs, draws);
  check_inputs(inputs);
  if (sized_by_inputs_) return at_symbols(bind(inputs))->run_and_update(inputs, draws);
  updates_.check(inputs);
  return updates_.carry_out(inputs, run(inputs_to_keep(*graph_, inputs), draws, true));
}

std::vector<uint64_t> Executable::draw_counts(std::span<const Tensor> inputs) const {
  check_inputs(inputs);
  const std::vector<int64_t> symbols = bind(inputs);
  std::vector<uint64_t> counts;
  for (const Draw& draw : graph_->draws)
    counts.push_back(static_cast<uint64_t>(graph_->sizes.evaluate(draw.count, symbols)));
  return counts;
}

PlanSummary Executable::summary(std::span<const Tensor> inputs) {
  check_inputs(inputs);
  if (sized_by_inputs_) return at_symbols(bind(inputs))->summary(inputs);
  return plannable_ ? plan_for(inputs)->data().summary : PlanSummary{};
}

std::string Executable::explain_run(std::span<const Tensor> inputs) {
  check_inputs(inputs);
  if (sized_by_inputs_) return at_symbols(bind(inputs))->explain_run(inputs);
  if (!plannable_) return "graph " + graph_->name + ": runs node by node: a size in it depends on values\n";
  return explain(plan_for(inputs)->data());
}

size_t Executable::plan_count() const {
  const std::shared_ptr<const Plans> known = plans_.load(std::memory_order_acquire);
  size_t count = known ? known->size() : 0;
  if (const std::shared_ptr<const Specializations> all = specialized_.load(std::memory_order_acquire))
    for (const Specialized& one : *all) count += one.executable->plan_count();
  return count;
}

}  // namespace backplane::core::graph

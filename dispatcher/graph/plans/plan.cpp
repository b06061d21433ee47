#include "graph/plans/plan.hpp"

#include <algorithm>
#include <vector>

#include "call/call_errors.hpp"
#include "call/dispatch.hpp"
#include "call/formulas/role_calls.hpp"
#include "call/scratch.hpp"
#include "graph/plans/explain.hpp"
#include "graph/plans/made_for.hpp"
#include "graph/plans/workspace.hpp"
#include "memory/devices/device.hpp"
#include "memory/process/epoch.hpp"
#include "registry/registry.hpp"

namespace backplane::core::graph {

namespace {

// One run of a plan in its workspace.
class Run {
 public:
  // `facts`: of the steps, where a profile runs.
  Run(const PlanData& plan, Workspace& workspace, const std::vector<StepFacts>* facts, bool updates)
      : plan_(plan), ws_(workspace), facts_(facts), updates_(updates) {}
  std::vector<Tensor> outputs(std::span<const Tensor> inputs, std::span<const bp_generator_state> draws);

 private:
  void bind_inputs(std::span<const Tensor> inputs, std::span<const bp_generator_state> draws);
  void make(const Made& made);
  void make_for(std::span<const Step> steps);
  bool may_overwrite(const TensorImpl& donor) const;
  bool may_update(const TensorImpl& target) const;
  bp_status kernel(const Step& step);
  bp_status caught_kernel(const Step& step);
  bp_status noted_kernel(const Step& step);
  bp_status kernel_on_stream(const Step& step);
  bool reads_rest_of(const TensorImpl& out);
  void call(const Step& step);
  void all_steps();
  [[noreturn]] void fail(const Step& step, bp_status status);

  const PlanData& plan_;
  Workspace& ws_;
  const std::vector<StepFacts>* const facts_;
  const bool updates_;
  std::span<const Tensor> inputs_;
  std::span<const bp_generator_state> draws_;
};

void Run::bind_inputs(std::span<const Tensor> inputs, std::span<const bp_generator_state> draws) {
  const Graph& graph = *plan_.graph;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const ValueId value = graph.inputs()[i].value;
    ws_.values[value] = inputs[i];
    ws_.bind_any(plan_, value, impl(inputs[i].get()));
  }
  // Somebody may have changed it, and its copy would not show that.
  for (const Constant& c : graph.constants())
    if (c.live) ws_.bind_any(plan_, c.value, impl(c.tensor));
  inputs_ = inputs;
  draws_ = draws;
  for (size_t i = 0; i < plan_.draw_patches.size(); ++i) {
    ws_.draws[i] = draws[plan_.draw_patches[i].draw];
    ws_.draws[i].counter += plan_.draw_patches[i].offset;
  }
}

// Does the caller alone hold its memory, and did he give it once? Another input, or a constant, may be the same tensor.
bool Run::may_overwrite(const TensorImpl& donor) const {
  if (!is_contiguous(donor) || donor.view || donor.storage->read_only) return false;
  if (donor.storage->refs.load(std::memory_order_acquire) != 1) return false;
  if (donor.storage->owner == bp_storage::Owner::kExternal) return false;
  const auto same = [&](const Tensor& t) { return t.get()->storage == donor.storage; };
  const auto& constants = plan_.graph->constants();
  return std::count_if(inputs_.begin(), inputs_.end(), same) == 1 &&
         std::none_of(constants.begin(), constants.end(), [&](const Constant& c) { return same(c.tensor); });
}

// May steps write over it? They read it where it is, and not a copy (bind_any).
bool Run::may_update(const TensorImpl& target) const {
  return updates_ && is_contiguous(target) && !target.storage->read_only &&
         (target.dl.byte_offset & (plan_.operand_alignment - 1)) == 0;
}

// A tensor of its own for what the step is to write; where the caller has donated an input of that form that nobody
// else holds, or updates this one, over its memory.
void Run::make(const Made& made) {
  const Slot& slot = plan_.slots[made.slot];
  const bp_tensor& t = *slot.handle.get();
  Tensor& value = ws_.values[slot.value];
  TensorImpl* donor = made.donor == kNone ? nullptr : impl(ws_.values[made.donor].get());
  if (donor && (made.is_update ? may_update(*donor) : may_overwrite(*donor))) {
    retain(donor->storage);
    donor->storage->version.fetch_add(1, std::memory_order_relaxed);
    value =
        Tensor::adopt(new_tensor_over(donor->storage, t.dtype, t.dl.ndim, t.dl.shape, nullptr, donor->dl.byte_offset));
  } else {
    value = Tensor::adopt(new_tensor(device_at({t.backend, t.ordinal}), t.dtype, t.dl.ndim, t.dl.shape));
  }
  ws_.bind(plan_, slot.value, impl(value.get()));
}

// Does the write leave a part of its storage unchanged? At the start of a run, an arena holds nothing.
bool Run::reads_rest_of(const TensorImpl& out) {
  if (covers_storage(out)) return false;
  const auto has = [&](const std::vector<bp_storage*>& list) {
    return std::find(list.begin(), list.end(), out.storage) != list.end();
  };
  if (!has(ws_.arenas) || has(ws_.arenas_written)) return true;
  ws_.arenas_written.push_back(out.storage);
  return false;
}

bp_status Run::kernel_on_stream(const Step& step) {
  const bp_value *args = &ws_.arguments[step.args], *outs = &ws_.arguments[step.outs];
  std::vector<bp_storage*> reads, writes;
  each_tensor(args, step.n_args, [&](TensorImpl* t) { reads.push_back(t->storage); });
  if (step.region) reads.insert(reads.end(), step.region->constants().begin(), step.region->constants().end());
  each_tensor(outs, step.n_outs, [&](TensorImpl* t) {
    writes.push_back(t->storage);
    if (reads_rest_of(*t)) reads.push_back(t->storage);
  });
  Stream& stream = current_stream(*step.device);
  std::lock_guard lock(step.device->lock);
  if (stream.capture && step.region) stream.capture->keep(step.region->executable());
  if (stream.capture && step.row) stream.capture->keep_plugin(step.row->owner);
  bp_frame frame = step.frame;
  frame.stream = stream.handle;
  ScratchScope scratch;  // ends when the ticket is closed
  const OpenTicket ticket(stream, step.frame.op->name, reads.data(), static_cast<int>(reads.size()), writes.data(),
                          static_cast<int>(writes.size()));
  frame.ticket = ticket;
  if (step.region) step.region->note_use({&stream, frame.ticket});
  bp_value* given = &ws_.arguments[step.outs];
  try {
    return step.region ? step.region->execute(frame, args, step.n_args, given, step.n_outs)
                       : step.fn(&frame, args, step.n_args, given, step.n_outs);
  } catch (...) {
    return status_of_exception();
  }
}

[[gnu::always_inline]] inline bp_status Run::kernel(const Step& step) {
  bp_value* values = ws_.arguments.data();
  if (step.kind == Step::Kind::kRegion)
    return step.region->execute(step.frame, values + step.args, step.n_args, values + step.outs, step.n_outs);
  return step.fn(&step.frame, values + step.args, step.n_args, values + step.outs, step.n_outs);
}

// Any exception of a kernel or a region becomes its status.
[[gnu::always_inline]] inline bp_status Run::caught_kernel(const Step& step) {
  if (!step.device->synchronous()) [[unlikely]]
    return kernel_on_stream(step);
  try {
    return kernel(step);
  } catch (...) {
    return status_of_exception();
  }
}

[[gnu::cold]] bp_status Run::noted_kernel(const Step& step) {
  const StepFacts& facts = (*facts_)[static_cast<size_t>(&step - plan_.steps.data())];
  return run_profiled(facts, *step.device, [&] { return caught_kernel(step); });
}

void Run::call(const Step& step) {
  const Node& node = plan_.graph->node(step.node);
  call_node({*plan_.graph, ws_.values, plan_.symbols, draws_, plan_.functions}, step.node,
            &ws_.values[node.first_result]);
  for (uint32_t i = 0; i < node.n_results; ++i) {
    const ValueId value = node.first_result + i;
    if (plan_.bound[value].empty()) continue;
    const bp_tensor &made = *ws_.values[value].get(),
                    &expected = *plan_.slots[plan_.slots[plan_.bound[value][0]].root].handle.get();
    if (made.dtype != expected.dtype || !same_shape(made, expected)) {
      const std::span<const int64_t> found(made.dl.shape, static_cast<size_t>(made.dl.ndim));
      detail::fail(BP_ERROR_SHAPE, node.op->record->name, ": gave a tensor of shape ", shape_text(found),
                   ", but the graph states another one");
    }
    ws_.bind_any(plan_, value, impl(ws_.values[value].get()));
  }
}

void Run::fail(const Step& step, bp_status status) {
  // A region's compiler is the backend's own.
  status = status_of_kernel(*step.device, step.region ? step.device->backend->owner : step.row->owner, status);
  try {
    if (step.region) throw Error(status, step.region->name() + " on " + name_of(*step.device) + ": " + take_cause());
    throw_status(status, *op_entry(step.frame.op->op), step.row->owner->name.c_str());
  } catch (...) {
    rethrow_with_node(*plan_.graph, step.node);
  }
}

void Run::make_for(std::span<const Step> steps) {
  for (const Step& step : steps)
    for (uint32_t i = 0; i < step.n_made; ++i) make(plan_.made[step.first_made + i]);
}

void Run::all_steps() {
  ScratchScope scratch;
  for (uint32_t s = 0; s < plan_.steps.size(); ++s) {
    const Step& step = plan_.steps[s];
    // Before a tensor is updated, the rest gets its memory: what fails, fails now.
    if (s <= plan_.first_update)
      make_for(std::span(plan_.steps).subspan(s, s == plan_.first_update ? plan_.steps.size() - s : 1));
    if (step.kind != Step::Kind::kCall) [[likely]] {
      if (const bp_status status = facts_ ? noted_kernel(step) : caught_kernel(step)) [[unlikely]]
        fail(step, status);
      scratch.free();
    } else {
      call(step);
    }
    for (uint32_t i = 0; i < step.n_dropped; ++i) ws_.values[plan_.dropped[step.first_dropped + i]] = Tensor();
  }
  counters.kernels.store(counters.kernels.load(std::memory_order_relaxed) + plan_.summary.kernels,
                         std::memory_order_relaxed);
}

std::vector<Tensor> Run::outputs(std::span<const Tensor> inputs, std::span<const bp_generator_state> draws) {
  bind_inputs(inputs, draws);
  all_steps();
  std::vector<Tensor> results;
  results.reserve(plan_.graph->outputs.size());
  for (const ValueId v : plan_.graph->outputs) results.push_back(ws_.values[v]);
  return results;
}

}  // namespace

Plan::Plan(std::unique_ptr<PlanData> data) : data_(std::move(data)) {
  for (PluginRecord* plugin : data_->plugins) lease(plugin, LeaseKind::kGraph);
}

Plan::~Plan() {
  delete idle_.load(std::memory_order_acquire);
  for (PluginRecord* plugin : data_->plugins) unlease(plugin, LeaseKind::kGraph);
}

bool Plan::fits(std::span<const Tensor> inputs) const {
  if (!is_current(data_->made_for)) return false;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Shape shape = inputs[i].shape();
    const std::vector<int64_t>& expected = data_->input_shapes[i];
    if (!std::equal(shape.begin(), shape.end(), expected.begin(), expected.end())) return false;
  }
  return true;
}

bool Plan::may_run() const {
  return data_->capturable || std::none_of(data_->devices.begin(), data_->devices.end(), [](Device* device) {
           return !device->synchronous() && current_stream(*device).capture;
         });
}

std::shared_ptr<const std::vector<StepFacts>> Plan::facts() {
  std::shared_ptr<const std::vector<StepFacts>> known = facts_.load(std::memory_order_acquire);
  if (known) return known;
  facts_.store(std::make_shared<const std::vector<StepFacts>>(facts_of_steps(*data_)), std::memory_order_release);
  return facts_.load(std::memory_order_acquire);
}

std::unique_ptr<Workspace> Plan::take_workspace() {
  std::unique_ptr<Workspace> workspace(idle_.exchange(nullptr, std::memory_order_acq_rel));
  if (workspace && is_current(workspace->made_for)) return workspace;
  return std::make_unique<Workspace>(*data_);
}

void Plan::give_workspace(std::unique_ptr<Workspace> workspace) noexcept {
  delete idle_.exchange(workspace.release(), std::memory_order_acq_rel);
}

std::vector<Tensor> Plan::run(std::span<const Tensor> inputs, std::span<const bp_generator_state> draws, bool updates) {
  CallGuard guard;
  for (Device* device : data_->devices) check_usable(*device);
  std::unique_ptr<Workspace> workspace = take_workspace();
  std::vector<Tensor> results;
  try {
    const auto noted = profile_runs() ? facts() : nullptr;
    results = Run(*data_, *workspace, noted.get(), updates).outputs(inputs, draws);
  } catch (...) {
    workspace->forget(*data_);
    give_workspace(std::move(workspace));
    throw;
  }
  workspace->forget(*data_);
  give_workspace(std::move(workspace));
  return results;
}

}  // namespace backplane::core::graph

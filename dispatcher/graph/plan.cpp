#include "graph/plan.hpp"

#include <algorithm>
#include <vector>

#include "call/call_errors.hpp"
#include "call/dispatch.hpp"
#include "call/role_calls.hpp"
#include "call/scratch.hpp"
#include "graph/explain.hpp"
#include "graph/made_for.hpp"
#include "memory/device.hpp"
#include "memory/epoch.hpp"
#include "registry/registry.hpp"

namespace backplane::core::graph {

// What one run writes to: handles of its own over arenas of its own, and arguments that lead to them.
struct Workspace {
  explicit Workspace(const PlanData& plan);
  ~Workspace();
  void give_back() noexcept;
  Workspace(const Workspace&) = delete;
  // Lets the slots of a value show the tensor.
  void bind(const PlanData& plan, ValueId value, TensorImpl* tensor);
  // The same for a tensor that may not be row-major, or lie where kernels cannot begin: then for a copy.
  void bind_any(const PlanData& plan, ValueId value, TensorImpl* tensor);
  void make_handles(const PlanData& plan);
  void patch(const PlanData& plan);
  void forget(const PlanData& plan) noexcept;

  std::vector<bp_value> arguments;
  std::vector<TensorImpl*> handles;  // by slot; nullptr: none uses it. Their storages are others'
  std::vector<Tensor> values;        // of this run, and constants
  std::vector<Tensor> copies;        // of this run
  std::vector<Tensor> constants;     // row-major ones, of constants that are not
  std::vector<bp_storage*> arenas;
  std::vector<bp_storage*> arenas_written;  // in this run
  std::vector<PlanData::MadeFor> made_for;
  std::vector<std::vector<bp_tensor*>> lists;
  std::vector<bp_generator_state> draws;
};

namespace {

TensorImpl* copy_handle(Device& device, const bp_tensor& t, bp_storage* storage) {
  TensorImpl* copy = new_handle(device, t.dtype, t.dl.ndim, t.dl.shape);
  std::copy(t.dl.strides, t.dl.strides + t.dl.ndim, copy->dl.strides);
  copy->flags = t.flags;
  copy->storage = storage;
  copy->dl.data = storage ? storage->data : nullptr;
  return copy;
}

TensorImpl* row_major_copy(TensorImpl* t) { return impl(roles::copy(t, 0).detach_handle()); }

}  // namespace

void Workspace::make_handles(const PlanData& plan) {
  for (const Arena& arena : plan.arenas) arenas.push_back(new_storage(*arena.device, arena.size));
  handles.assign(plan.slots.size(), nullptr);
  for (size_t i = 0; i < plan.slots.size(); ++i) {
    const Slot& slot = plan.slots[i];
    if (!slot.used) continue;
    const bp_tensor& t = *slot.handle.get();
    const uint32_t block = plan.slots[slot.root].block;
    handles[i] =
        copy_handle(device_at({t.backend, t.ordinal}), t, block == kNone ? nullptr : arenas[plan.blocks[block].arena]);
    if (block != kNone) handles[i]->dl.byte_offset = plan.blocks[block].offset + static_cast<uint64_t>(slot.offset);
  }
}

void Workspace::patch(const PlanData& plan) {
  arguments = plan.arguments;
  for (const PlanData::Patch& p : plan.patches) arguments[p.argument].u.t = handles[p.slot];
  for (const PlanData::ListPatch& p : plan.list_patches) {
    bp_value& v = arguments[p.argument];
    auto& list = lists.emplace_back(v.u.tensors, v.u.tensors + v.count);
    for (size_t i = 0; i < p.slots.size(); ++i)
      if (p.slots[i] != kNone) list[i] = handles[p.slots[i]];
    v.u.tensors = list.data();
  }
  draws.resize(plan.draw_patches.size());
  for (size_t i = 0; i < draws.size(); ++i) arguments[plan.draw_patches[i].argument].u.g = &draws[i];
}

Workspace::Workspace(const PlanData& plan) : values(plan.graph->values().size()) {
  const CapturePause pause;  // its constants serve other runs too
  try {
    make_handles(plan);
    patch(plan);
    for (const Constant& c : plan.graph->constants()) {
      values[c.value] = c.tensor;
      if (!c.live) bind_any(plan, c.value, impl(c.tensor));
    }
    constants = std::move(copies);
    copies.clear();
    for (const bp_storage* arena : arenas) note_made_for(made_for, *arena);
    for (const Tensor& constant : constants) note_made_for(made_for, *constant.get()->storage);
  } catch (...) {
    give_back();  // no destructor will run; the members end by themselves
    throw;
  }
}

Workspace::~Workspace() { give_back(); }

void Workspace::give_back() noexcept {
  for (TensorImpl* handle : handles) {
    if (!handle) continue;
    handle->storage = nullptr;
    release(handle);
  }
  handles.clear();
  for (bp_storage* arena : arenas) release(arena);
  arenas.clear();
}

void Workspace::bind(const PlanData& plan, ValueId value, TensorImpl* tensor) {
  for (const SlotId slot : plan.bound[value]) {
    TensorImpl* handle = handles[slot];
    handle->storage = tensor->storage;
    handle->dl.data = tensor->dl.data;
    handle->dl.byte_offset = tensor->dl.byte_offset + static_cast<uint64_t>(plan.slots[slot].offset);
  }
}

void Workspace::bind_any(const PlanData& plan, ValueId value, TensorImpl* tensor) {
  if (plan.bound[value].empty()) return;
  if (!is_contiguous(*tensor) || (plan.alignment > 64 && tensor->dl.byte_offset % plan.alignment != 0)) [[unlikely]] {
    copies.push_back(Tensor::adopt(row_major_copy(tensor)));
    tensor = impl(copies.back().get());
  }
  bind(plan, value, tensor);
}

void Workspace::forget(const PlanData& plan) noexcept {
  for (const ValueId v : plan.held) values[v] = Tensor();
  copies.clear();
  arenas_written.clear();
}

namespace {

// One run of a plan in its workspace.
class Run {
 public:
  // `facts`: of the steps, where a profile runs.
  Run(const PlanData& plan, Workspace& workspace, const std::vector<StepFacts>* facts)
      : plan_(plan), ws_(workspace), facts_(facts) {}
  std::vector<Tensor> outputs(std::span<const Tensor> inputs, std::span<const bp_generator_state> draws);

 private:
  void bind_inputs(std::span<const Tensor> inputs, std::span<const bp_generator_state> draws);
  void make(const Made& made);
  bool may_overwrite(const TensorImpl& donor) const;
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

// A tensor of its own for what the step is to write; where the caller has donated an input of that form that nobody
// else holds, over its memory.
void Run::make(const Made& made) {
  const Slot& slot = plan_.slots[made.slot];
  const bp_tensor& t = *slot.handle.get();
  Tensor& value = ws_.values[slot.value];
  TensorImpl* donor = made.donor == kNone ? nullptr : impl(ws_.values[made.donor].get());
  if (donor && may_overwrite(*donor)) {
    retain(donor->storage);
    donor->storage->version.fetch_add(1, std::memory_order_relaxed);
    value =
        Tensor::adopt(new_tensor_over(donor->storage, t.dtype, t.dl.ndim, t.dl.shape, nullptr, donor->dl.byte_offset));
  } else {
    value = Tensor::adopt(new_tensor(device_at({t.backend, t.ordinal}), t.dtype, t.dl.ndim, t.dl.shape));
  }
  ws_.bind(plan_, slot.value, impl(value.get()));
}

// Does what is written leave a part of its storage as it was? At the start of a run an arena holds nothing.
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

// What a kernel throws, or a region's, is its status, whatever it is.
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
                   ", and the graph says otherwise");
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

void Run::all_steps() {
  ScratchScope scratch;
  for (const Step& step : plan_.steps) {
    for (uint32_t i = 0; i < step.n_made; ++i) make(plan_.made[step.first_made + i]);
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

std::vector<Tensor> Plan::run(std::span<const Tensor> inputs, std::span<const bp_generator_state> draws) {
  CallGuard guard;
  for (Device* device : data_->devices) check_usable(*device);
  std::unique_ptr<Workspace> workspace = take_workspace();
  std::vector<Tensor> results;
  try {
    const auto noted = profile_runs() ? facts() : nullptr;
    results = Run(*data_, *workspace, noted.get()).outputs(inputs, draws);
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

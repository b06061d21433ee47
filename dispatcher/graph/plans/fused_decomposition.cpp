#include "call/formulas/fused_decomposition.hpp"

#include <map>
#include <string>
#include <utility>

#include "call/formulas/decomposition.hpp"
#include "call/formulas/role_calls.hpp"
#include "call/operand_checks.hpp"
#include "graph/passes/decompose.hpp"
#include "graph/plans/executable.hpp"
#include "memory/process/lock.hpp"
#include "record/dtype_rules.hpp"
#include "record/plain_value.hpp"
#include "registry/kept_calls.hpp"

namespace backplane::core::graph {
namespace {

// Compiled code is kept by the op, the device, the forms of its tensors and its other arguments. A call is compiled
// when it comes a second time, so that numbers that change at each call cost nothing. Where a plan of the registry has
// changed since, and before a plugin is unloaded, nothing of before is used again.
constexpr size_t kMostKept = 256;

struct KeptCall {
  std::shared_ptr<Executable> executable;  // empty: seen once
  bool declined = false;                   // its parts do not make one region
};

StaticLock kept_lock{LockRank::kPool};
uint64_t kept_at = 0;  // plan_changes

std::map<std::string, KeptCall>& kept_calls() {
  static auto& calls = *new std::map<std::string, KeptCall>;
  return calls;
}

void drop_all() {
  std::map<std::string, KeptCall> dropped;
  const std::lock_guard guard(kept_lock);
  dropped.swap(kept_calls());
}

// The number among the call's tensors of the one that a result of the same dtype is written over; -1: the
// result is a new tensor, or is cast into the given one.
int32_t changed_input(const Call& call, int32_t result, bp_dtype compute) {
  const bp_value& out = call.outs[result];
  if (!(out.flags & BP_VALUE_GIVEN)) return -1;
  if (result_dtype(*call.op.record, call.args, call.n_args, result, compute) != impl(out.u.t)->dtype) return -1;
  int32_t number = 0, found = -1;
  each_tensor(call.args, call.n_args, [&](TensorImpl* t) {
    if (t == impl(out.u.t)) found = number;
    ++number;
  });
  return found;
}

// Every call of one key is served by the same executable.
class Key {
 public:
  Key(const Call& call, const Device& device, bp_dtype compute) {
    put(&call.op);
    put(&device);
    put(compute);
    for (int32_t i = 0; i < call.n_args; ++i) {
      const bp_value& v = call.args[i];
      put(v.tag);
      put(v.count);
      each_tensor(&v, 1, [&](const TensorImpl* t) {
        put(t->dtype);
        put(t->dl.ndim);
        text_.append(reinterpret_cast<const char*>(t->dl.shape), sizeof(int64_t) * static_cast<size_t>(t->dl.ndim));
      });
      if (v.tag == BP_TAG_TENSOR || v.tag == BP_TAG_TENSOR_LIST) continue;
      put(v.flags);
      const size_t bytes = v.tag == BP_TAG_STRING || v.tag == BP_TAG_BOOL_LIST ? v.count : extra_bytes(v);
      if (bytes != 0)
        text_.append(static_cast<const char*>(v.u.p), bytes);
      else
        put(v.tag == BP_TAG_ABSENT ? int64_t{0} : v.u.i);
    }
    for (int32_t i = 0; i < call.n_outs; ++i) put(changed_input(call, i, compute));
  }
  const std::string& text() const { return text_; }

 private:
  template <class T>
  void put(const T& value) {
    text_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  std::string text_;
};

Type type_of(const TensorImpl& t, std::vector<Dim>& dims) {
  dims.assign(t.dl.shape, t.dl.shape + t.dl.ndim);
  return {t.dtype, {t.backend, t.ordinal}, dims};
}

std::shared_ptr<Graph> graph_of(const Call& call, const ShapeResult& shape, Device& device, bp_dtype compute) {
  auto graph = std::make_shared<Graph>();
  const OpRecord& record = *call.op.record;
  graph->name = record.name;
  std::vector<Argument> arguments;
  std::vector<Dim> dims;
  const auto input = [&](const TensorImpl* t) {
    return graph->add_input("x" + std::to_string(graph->inputs().size()), type_of(*t, dims));
  };
  for (int32_t i = 0; i < call.n_args; ++i) {
    const bp_value& v = call.args[i];
    if (v.tag == BP_TAG_TENSOR)
      arguments.push_back(Argument::of(input(impl(v.u.t))));
    else
      arguments.push_back(graph->copy(v));
  }
  dims.assign(shape.sizes, shape.sizes + shape.ndim);
  std::vector<Type> results;
  for (int32_t i = 0; i < call.n_outs; ++i)
    results.push_back({result_dtype(record, call.args, call.n_args, i, compute), id_of(device), dims});
  const NodeId node = graph->add_node(call.op, arguments, results);
  const auto result = [&](int32_t i) { return graph->node(node).first_result + static_cast<ValueId>(i); };
  for (int32_t i = 0; i < call.n_outs; ++i)
    if (changed_input(call, i, compute) < 0) graph->outputs.push_back(result(i));
  for (int32_t i = 0; i < call.n_outs; ++i)  // behind the results
    if (const int32_t k = changed_input(call, i, compute); k >= 0) {
      graph->outputs.push_back(result(i));
      graph->updates.push_back({graph->inputs()[static_cast<size_t>(k)].value, false});
    }
  return graph;
}

bool is_one_region(const PlanSummary& summary) {
  return summary.regions == 1 && summary.kernels == 0 && summary.calls == 0;
}

// Empty where the compiler leaves something of it to kernels.
std::shared_ptr<Executable> compiled(const Call& call, const ShapeResult& shape, Device& device, bp_dtype compute,
                                     std::span<const Tensor> inputs) {
  try {
    const std::shared_ptr<Graph> graph = graph_of(call, shape, device, compute);
    decompose_without_kernel(*graph);
    auto executable = std::make_shared<Executable>(graph);
    return is_one_region(executable->summary(inputs)) ? executable : nullptr;
  } catch (const Error&) {
    return nullptr;  // the parts say what is wrong
  }
}

// What serves calls of the key now; empty: nothing does yet. `first`: none has come before.
std::shared_ptr<Executable> find(const std::string& key, bool& first) {
  std::map<std::string, KeptCall> dropped;  // ends after the lock's hold
  const std::lock_guard guard(kept_lock);
  auto& calls = kept_calls();
  if (const uint64_t now = plan_changes.load(std::memory_order_acquire); now != kept_at || calls.size() >= kMostKept) {
    dropped.swap(calls);
    kept_at = now;
  }
  const auto [at, added] = calls.try_emplace(key);
  first = added || at->second.declined;
  return at->second.executable;
}

void keep(const std::string& key, const std::shared_ptr<Executable>& executable) {
  const std::lock_guard guard(kept_lock);
  kept_calls()[key] = {executable, executable == nullptr};
}

// Would another key than the device's, or a function of Python, see the parts?
bool parts_are_seen(const Call& call) {
  uint64_t keys = thread_state.included_keys;
  each_tensor(call.args, call.n_args, [&](TensorImpl* t) { keys |= keys_now(t); });
  return (keys & call.mask & ~thread_state.excluded_keys) != 0;
}

bool can_be_fused(const Call& call, const ShapeResult& shape, const Device& device) {
  // One result that is given is written by the last of the parts.
  if (!(call.op.flags & BP_OP_ELEMENTWISE) || (call.n_outs == 1 && call.outs[0].flags)) return false;
  for (int32_t i = 0; i < call.n_outs; ++i)
    if (call.outs[i].flags & BP_VALUE_NOT_WANTED) return false;
  if (!device.synchronous() || !device.backend->extensions.compiler) return false;
  if (call.op.decompose->flags & BP_FORMULA_NATIVE_ONLY) return false;
  for (int32_t i = 0; i < call.n_args; ++i)
    if (call.args[i].tag == BP_TAG_TENSOR_LIST || call.args[i].tag == BP_TAG_GENERATOR) return false;
  return checked_count(shape.sizes, shape.ndim) >= kLeastFused && !parts_are_seen(call);
}

bool run_fused(const Call& call, const ShapeResult& shape, Device& device, bp_dtype compute) {
  if (!can_be_fused(call, shape, device)) return false;
  const Key key(call, device, compute);
  bool first = false;
  std::shared_ptr<Executable> executable = find(key.text(), first);
  if (!executable && first) return false;
  std::vector<Tensor> inputs;
  each_tensor(call.args, call.n_args, [&](TensorImpl* t) { inputs.push_back(Tensor::share(t)); });
  if (!executable) {
    executable = compiled(call, shape, device, compute, inputs);
    keep(key.text(), executable);
    if (!executable) return false;
  }
  const OpRecord& record = *call.op.record;
  for (int32_t i = 0; i < call.n_outs; ++i)
    if (call.outs[i].flags & BP_VALUE_GIVEN)
      check_given(call.op, *impl(call.outs[i].u.t), shape, result_dtype(record, call.args, call.n_args, i, compute),
                  device);
  const ExcludeKeys below(~uint64_t{0});
  if (!executable->updates().shared_memory(inputs).empty()) return false;  // the parts make their results first
  std::vector<Tensor> results = executable->run_and_update(inputs);
  size_t next = 0;
  for (int32_t i = 0; i < call.n_outs; ++i) {
    if (changed_input(call, i, compute) >= 0) continue;
    Tensor& result = results[next++];
    if (call.outs[i].flags & BP_VALUE_GIVEN)
      roles::cast_into(impl(result), impl(call.outs[i].u.t), 0);
    else
      call.outs[i] = owned_value(std::move(result));
  }
  return true;
}

[[gnu::constructor]] void register_fused() {
  fused_decomposition = run_fused;
  drop_kept_calls = drop_all;
}

}  // namespace
}  // namespace backplane::core::graph

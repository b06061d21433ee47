// Operators that PyTorch's CPU computes for the device: allowed or not, counted by name.
#include <ATen/native/CPUFallback.h>
#include <torch/library.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>

#include "hooks.hpp"
#include "python_values.hpp"
#include "rows.hpp"

namespace backplane_torch {

namespace {

std::atomic<int> g_policy{static_cast<int>(HostPolicy::kWarn)};
std::mutex g_calls_lock;
std::map<std::string, int64_t>& calls() {
  static auto* table = new std::map<std::string, int64_t>;
  return *table;
}

bool draws(const c10::OperatorHandle& op) {
  const auto& tags = op.getTags();
  return std::find(tags.begin(), tags.end(), at::Tag::nondeterministic_seeded) != tags.end();
}

// True for the first call of the op.
bool note(const std::string& name) {
  std::lock_guard<std::mutex> lock(g_calls_lock);
  return ++calls()[name] == 1;
}

void check_allowed(const std::string& name) {
  TORCH_CHECK_NOT_IMPLEMENTED(host_policy() != HostPolicy::kForbid, name,
                              ": Backplane has no row for this operator, and the host may not compute it. Fix: "
                              "backplane.torch.forbid_fallbacks(False), or BACKPLANE_TORCH_FALLBACK=allow");
}

void count(const std::string& name) {
  if (note(name) && host_policy() == HostPolicy::kWarn)
    TORCH_WARN(name,
               ": Backplane does not compute this operator for these arguments; PyTorch's CPU does. "
               "backplane.torch.fallbacks() counts such calls");
}

void compute(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const size_t first = stack->size() - op.schema().arguments().size();
  for (size_t i = first; i < stack->size(); ++i)
    if ((*stack)[i].isGenerator()) (*stack)[i] = *host_generator((*stack)[i].toGenerator());
  at::native::cpu_fallback(op, stack);
}

void fallback(const c10::OperatorHandle& op, c10::DispatchKeySet, torch::jit::Stack* stack) { run_on_host(op, stack); }

}  // namespace

void run_on_host(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const std::string name = c10::toString(op.operator_name());
  const bool drawn = draws(op);
  if (!drawn) check_allowed(name);
  compute(op, stack);
  if (!drawn) count(name);
}

void retry_on_host(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  compute(op, stack);
  count(c10::toString(op.operator_name()));
}

void set_host_policy(HostPolicy policy) { g_policy = static_cast<int>(policy); }
HostPolicy host_policy() { return static_cast<HostPolicy>(g_policy.load()); }

PyObject* host_calls() {
  Object made(PyDict_New());
  std::lock_guard<std::mutex> lock(g_calls_lock);
  for (const auto& [name, count] : calls()) {
    const Object number(PyLong_FromLongLong(count));
    if (!number || PyDict_SetItemString(made.get(), name.c_str(), number.get()) < 0) return nullptr;
  }
  return made.release();
}

void reset_host_calls() {
  std::lock_guard<std::mutex> lock(g_calls_lock);
  calls().clear();
}

void register_host_fallback() {
  static auto* library =
      new torch::Library(torch::Library::IMPL, "_", c10::DispatchKey::PrivateUse1, __FILE__, __LINE__);
  library->fallback(torch::CppFunction::makeFromBoxedFunction<&fallback>());
}

}  // namespace backplane_torch

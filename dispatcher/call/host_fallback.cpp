#include "call/host_fallback.hpp"

#include <cstdlib>
#include <string_view>
#include <utility>

#include "backplane/device.hpp"
#include "backplane/op.hpp"
#include "call/formulas/role_calls.hpp"
#include "call/warn_once.hpp"
#include "memory/devices/device.hpp"
#include "record/mapped_value.hpp"

namespace backplane::core {
namespace {

HostFallback policy_of_environment() {
  const char* stated = std::getenv("BACKPLANE_HOST_FALLBACK");
  const std::string_view word = stated ? stated : "warn";
  if (word == "allow") return HostFallback::kAllow;
  if (word == "forbid") return HostFallback::kForbid;
  if (word != "warn")
    host_table.log(BP_LOG_WARNING, ("BACKPLANE_HOST_FALLBACK is \"" + std::string(word) +
                                    "\" and is ignored; expected allow, warn or forbid")
                                       .c_str());
  return HostFallback::kWarnOnce;
}

std::atomic<HostFallback>& policy_of_process() {
  static std::atomic<HostFallback> policy{policy_of_environment()};
  return policy;
}
thread_local std::optional<HostFallback> policy_of_thread;

}  // namespace

void call_host_fallback(const Call& call, Device& device) {
  if (host_fallback() == HostFallback::kWarnOnce)
    warn_once(call.op.host_fallback_reported, [&] {
      return std::string(call.op.record->name) + ": runs on the host for device " + name_of(device) +
             ", which has no kernel for it; its tensors are copied there and back at every call";
    });
  count_host_fallback(call.op, device);
  Device& host = host_device();
  std::vector<Tensor> held;
  TensorLists lists;
  const auto to_host = [&](bp_tensor* t) {
    held.push_back(to_device(Tensor::share(t), id_of(host)));
    return held.back().get();
  };
  bp_value args[kMaxArgs];
  for (int32_t i = 0; i < call.n_args; ++i) {
    args[i] = mapped(call.args[i], lists, to_host);
    if (args[i].tag == BP_TAG_DEVICE) args[i].u.d = id_of(host);
  }
  bp_value outs[kMaxResults] = {};
  for (int32_t i = 0; i < call.n_outs; ++i) outs[i].flags = call.outs[i].flags & BP_VALUE_NOT_WANTED;
  core::call(call.op, args, call.n_args, outs, call.n_outs, 0);
  for (int32_t i = 0; i < call.n_outs; ++i) {
    if (outs[i].tag != BP_TAG_TENSOR) continue;
    Tensor moved = to_device(Tensor::adopt(outs[i].u.t), id_of(device));
    if (call.outs[i].flags & BP_VALUE_GIVEN) {
      roles::copy_into(value(moved), call.outs[i], 0);
    } else {
      call.outs[i] = owned_value(std::move(moved));
    }
  }
}

}  // namespace backplane::core

namespace backplane {

using namespace core;

HostFallback host_fallback() noexcept {
  return policy_of_thread ? *policy_of_thread : policy_of_process().load(std::memory_order_relaxed);
}

HostFallback set_host_fallback(HostFallback policy) noexcept { return policy_of_process().exchange(policy); }

std::optional<HostFallback> set_thread_host_fallback(std::optional<HostFallback> policy) noexcept {
  return std::exchange(policy_of_thread, policy);
}

bool allow_host_fallback(bool allowed) noexcept {
  const HostFallback before = policy_of_process().load(std::memory_order_relaxed);
  if (!allowed) set_host_fallback(HostFallback::kForbid);
  if (allowed && before == HostFallback::kForbid) set_host_fallback(HostFallback::kWarnOnce);
  return before != HostFallback::kForbid;
}

}  // namespace backplane

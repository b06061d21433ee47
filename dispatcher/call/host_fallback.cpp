#include "call/host_fallback.hpp"

#include "backplane/device.hpp"
#include "call/warn_once.hpp"
#include "memory/device.hpp"
#include "record/mapped_value.hpp"

namespace backplane::core {

void call_host_fallback(const Call& call, Device& device) {
  warn_once(call.op.host_fallback_reported, [&] {
    return std::string(call.op.record->name) + ": runs on the host for device " + name_of(device) +
           ", which has no kernel for it; its tensors are copied there and back at every call";
  });
  counters.host_fallbacks.fetch_add(1, std::memory_order_relaxed);
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
      bp_value from = value(moved), target = call.outs[i];
      core::call(role_op(Role::kCopy), &from, 1, &target, 1, 0);
    } else {
      call.outs[i] = tensor_value(impl(moved.detach_handle()));
    }
  }
}

}  // namespace backplane::core

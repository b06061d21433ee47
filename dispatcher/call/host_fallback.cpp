// Running an op on the host for a device that has no kernel for it: counted, reported once per op, and forbiddable.
#include "backplane/device.hpp"
#include "call/device_call.hpp"

namespace backplane::core {
namespace {

void report_once(const Call& call, const Device& device) {
  if (call.op.host_fallback_reported.exchange(true, std::memory_order_relaxed)) return;
  std::string text = std::string(call.op.record->name) + ": runs on the host for device " + name_of(device) +
                     ", which has no kernel for it; its tensors are copied there and back at every call";
  host_table.log(BP_LOG_WARNING, text.c_str());
}

}  // namespace

void call_host_fallback(const Call& call, Device& device) {
  report_once(call, device);
  counters.host_fallbacks.fetch_add(1, std::memory_order_relaxed);
  Device& host = host_device();
  std::vector<Tensor> held;
  std::vector<std::vector<bp_tensor*>> lists;
  auto to = [&](bp_tensor* t, Device& target) {
    held.push_back(to_device(Tensor::share(t), id_of(target)));
    return held.back().get();
  };
  bp_value args[kMaxArgs];
  for (int32_t i = 0; i < call.n_args; ++i) {
    args[i] = call.args[i];
    if (args[i].tag == BP_TAG_TENSOR) {
      args[i].u.t = to(args[i].u.t, host);
    } else if (args[i].tag == BP_TAG_TENSOR_LIST) {
      auto& list = lists.emplace_back(args[i].u.tensors, args[i].u.tensors + args[i].count);
      for (bp_tensor*& t : list)
        if (t) t = to(t, host);
      args[i].u.tensors = list.data();
    } else if (args[i].tag == BP_TAG_DEVICE) {
      args[i].u.d = id_of(host);
    }
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

// Settings around a traced call, which belong to its kind: another device, dtype or mode makes another graph.
#include <algorithm>
#include <iterator>

#include "backplane/autograd.hpp"
#include "backplane/device.hpp"
#include "backplane/features.hpp"
#include "backplane/lost_elements.hpp"
#include "bindings/interpreter/context_settings.hpp"
#include "bindings/tensor/default_float.hpp"
#include "bindings/tensor/dtype_device.hpp"
#include "bindings/transforms/traced_call.hpp"

namespace backplane::python {

// Has the function set, and left, what holds for later calls too? Then that is as it was again.
bool TracedCall::left_settings(bool records) const {
  const bp_device device = default_device();
  const bool another_device = device.backend != default_device_.backend || device.ordinal != default_device_.ordinal;
  const bool another_float = default_float() != default_float_, another_mode = grad_enabled() != records;
  if (another_device) change_setting(Setting::kDevice, value_of_device(default_device_), true);
  if (another_float) change_setting(Setting::kFloat, default_float_, true);
  if (another_mode) set_grad_enabled(records);
  return another_device || another_float || another_mode;
}

bool TracedCall::same_settings(std::string* why) const {
  const bp_device device = default_device();
  if (device.backend != default_device_.backend || device.ordinal != default_device_.ordinal) {
    if (why) *why = "default device: found " + device_name(device) + ", had " + device_name(default_device_);
    return false;
  }
  if (default_float() != default_float_) {
    if (why)
      *why = std::string("default dtype: found ") + dtype_name(default_float()) + ", had " + dtype_name(default_float_);
    return false;
  }
  if (autocast() != autocast_) {
    if (why) *why = "autocast: found another dtype or device of autocast, or another setting of enabled";
    return false;
  }
  if (grad_mode_ && *grad_mode_ != grad_enabled()) {
    if (why) *why = std::string("grad_enabled: found ") + (*grad_mode_ ? "False, had True" : "True, had False");
    return false;
  }
  return true;
}

// A tensor that the function uses from outside may be lost already: the run says so, and another trace would not help.
void TracedCall::note_losable() {
  std::vector<Tensor> used = renewal_.tensors();
  used.insert(used.end(), constants_.begin(), constants_.end());
  std::copy_if(used.begin(), used.end(), std::back_inserter(losable_),
               [](const Tensor& t) { return !has_feature(t.device(), "host") && !has_lost_elements(t); });
}

// The function makes those anew that it made itself.
bool TracedCall::has_constants(std::string* why) const {
  const auto lost = std::find_if(losable_.begin(), losable_.end(), has_lost_elements);
  if (lost == losable_.end()) return true;
  if (why) *why = "device " + device_name(lost->device()) + ": a tensor that the trace uses has lost its elements";
  return false;
}

}  // namespace backplane::python

#include "log/log_calls.hpp"

#include <algorithm>
#include <string>

#include "backplane/log.hpp"
#include "call/call_errors.hpp"
#include "call/fast_call.hpp"
#include "memory/process/epoch.hpp"
#include "record/builtin_numbers.hpp"
#include "record/dtype_rules.hpp"

namespace backplane::core {
namespace {

FastEdges real_edges[static_cast<size_t>(FastPath::kCount)];

const FastEdges& edges_of(const OpEntry& op) { return real_edges[static_cast<size_t>(op.fast_path)]; }

std::string tensor_text(const TensorImpl* tensor) {
  if (!tensor) return "none";
  std::string text = std::string(kDtypeNames[tensor->dtype]) + "[";
  for (int32_t i = 0; i < tensor->dl.ndim; ++i) text += (i ? ", " : "") + std::to_string(tensor->dl.shape[i]);
  return text + "]";
}

std::string value_text(const bp_value& value) {
  switch (value.tag) {
    case BP_TAG_TENSOR:
      return tensor_text(impl(value.u.t));
    case BP_TAG_TENSOR_LIST: {
      std::string text = "[";
      for (uint32_t k = 0; k < value.count; ++k) text += (k ? ", " : "") + tensor_text(impl(value.u.tensors[k]));
      return text + "]";
    }
    case BP_TAG_BOOL:
      return value.u.i ? "true" : "false";
    case BP_TAG_INT:
      return std::to_string(value.u.i);
    case BP_TAG_FLOAT:
      return std::to_string(value.u.f);
    default:
      return tag_name(value.tag);
  }
}

std::string row_text(const KernelRow& row) {
  return "the row of plugin \"" + row.owner->name + "\" (" + row.file + ":" + std::to_string(row.def.line) + ")";
}

// The keys of a call that intercept it, with those of views.
uint64_t keys_of_call(const OpEntry& op, const bp_value* args, uint64_t mask) {
  uint64_t keys = read_any_operands(op, args).keys | thread_state.included_keys;
  if (keys & kViewKey) keys = keys_of_views(args, op.n_args) | thread_state.included_keys;
  return keys & kViewKey ? kViewKey : intercepting(op.plan(), keys, mask);
}

std::string key_text(const OpEntry& op, uint64_t keys) {
  const auto bit = static_cast<uint32_t>(__builtin_ctzll(highest_key(keys)));
  const KeySlot& slot = op.plan().slot(bit);
  const KeyRecord* key = slot.key ? slot.key : key_at(bit);
  return "key \"" + (key ? key->name : std::to_string(bit)) +
         "\" intercepts it; slot: " + (slot.row ? row_text(*slot.row) : "the rule of the key");
}

std::string why_no_row(const Plan& plan, const Operands& operands) {
  if (!operands.first) return "no argument is a tensor";
  if (!operands.plain()) return "the tensors differ in device, dtype or shape, or an argument is a list";
  const TensorImpl& first = *operands.first;
  if (!first.storage) return "the tensor belongs to a transform";
  if (first.backend >= plan.n_devices) return "the backend has no row";
  const FastRow& row = plan.devices[first.backend].fast_row;
  if (!row.dtypes) return "the backend has no row for it, or one that the fast path cannot call";
  const bp_dtype_mask plain = first.storage->device->plain_dtypes.load(std::memory_order_relaxed);
  if (!(row.dtypes & plain & BP_DTYPE_BIT(first.dtype)))
    return std::string("the best row does not take ") + kDtypeNames[first.dtype] +
           " there, or the device is asynchronous";
  if (!((row.granted_flags | operands.traits) & BP_TENSOR_CONTIGUOUS))
    return "a tensor is not contiguous, which the row needs";
  if (operands.numbers()) return "a number stands in a tensor's position, which the row does not take";
  return "";
}

bool attempt_logged(const OpEntry& op, const bp_value* args, bp_value* outs, uint64_t mask) {
  const std::string call = call_text(op, args);  // before the call changes its arguments
  const Operands operands = read_any_operands(op, args);
  const FastEdges& edges = edges_of(op);
  if (!edges.attempt || !edges.attempt(op, args, outs, mask)) {
    log_line(LogTopic::kDispatch, call + ": no fast path: " + why_not_fast(op, args, outs, mask));
    return false;
  }
  const Plan& plan = op.plan();
  const bool is_view = op.fast_path == FastPath::kView || !operands.first || operands.first->backend >= plan.n_devices;
  const KernelRow* row = is_view ? nullptr : plan.devices[operands.first->backend].fast_row.row;
  log_line(LogTopic::kDispatch, call + ": fast path; " + (row ? row_text(*row) : "a view"));
  return true;
}

bp_status call_packed_logged(const OpEntry& op, const bp_value* args, bp_value* outs, uint64_t after) noexcept {
  CallGuard guard(after);
  try {
    if (!attempt_logged(op, args, outs, ~uint64_t{0})) call_slow(op, args, outs);
    return BP_OK;
  } catch (...) {
    return fail_call(guard, &op, args, op.n_args);
  }
}

FastEdges logged_edges(FastPath path, const FastEdges& edges) {
  real_edges[static_cast<size_t>(path)] = edges;
  return {attempt_logged, call_packed_logged};
}

void log_device(const Call& call, const Device& device, bp_dtype compute, const KernelRow* row, DeviceRule otherwise) {
  std::string text = std::string(call.op.record->name) + ": device " + name_of(device);
  if (compute != BP_DTYPE_NONE) text += std::string(", computed in ") + kDtypeNames[compute];
  const char* rule = otherwise == DeviceRule::kDecomposition  ? "no row takes it; its decomposition"
                     : otherwise == DeviceRule::kHostFallback ? "no row takes it; the host computes it"
                                                              : "no row takes it";
  log_line(LogTopic::kDispatch, text + "; " + (row ? row_text(*row) : rule));
}

[[maybe_unused]] const bool kFromTheStart = [] {
  if (!logs(LogTopic::kDispatch)) return false;
  edge_filter = logged_edges;
  device_observer = log_device;
  return true;
}();

}  // namespace

std::string call_text(const OpEntry& op, const bp_value* args) {
  std::string text = std::string(op.record->name) + "(";
  for (int32_t i = 0; i < op.n_args; ++i) text += (i ? ", " : "") + value_text(args[i]);
  return text + ")";
}

std::string why_not_fast(const OpEntry& op, const bp_value* args, const bp_value* outs, uint64_t mask) {
  const uint64_t keys = keys_of_call(op, args, mask);
  if (keys == kViewKey) return "an argument is a view that may have been recorded";
  if (keys) return key_text(op, keys);
  if (op.fast_path == FastPath::kNone) return "the op has none";
  if (op.withdrawn.load(std::memory_order_acquire)) return "the op is withdrawn";
  if (must_decompose(op)) return "decompositions are forced";
  const bool states_results =
      std::any_of(outs, outs + op.n_results, [](const bp_value& out) { return out.flags != 0; });
  if (states_results && op.fast_path != FastPath::kLikeOperands)
    return "the call gives its output, or does not want it";
  if (op.fast_path == FastPath::kView) return "the result is not a view of a plain tensor";
  std::string why = why_no_row(op.plan(), read_any_operands(op, args));
  if (!why.empty()) return why;
  return outs->flags != 0 ? "the given output differs in form, or overlaps an argument" : "an argument is cast first";
}

}  // namespace backplane::core

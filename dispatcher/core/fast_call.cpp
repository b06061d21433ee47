// The short way of the commonest calls: an elementwise op on one or two row-major tensors of one shape, dtype and
// synchronous device, into a fresh output. It decides nothing on its own: it declines whenever device_call.cpp
// would do more than allocate and call the first row, and the two give the same result.
#include <cstring>

#include "core/device_call.hpp"
#include "core/dtype_rules.hpp"
#include "core/epoch.hpp"

namespace backplane::core {
namespace {

constexpr uint32_t kSlowRow = BP_KERNEL_MAY_DECLINE | BP_KERNEL_CASTS;

bool row_is_plain(const OpEntry& op, const KernelRow& row, const Device& device, bp_dtype dtype) {
  return (row.def.dtypes & BP_DTYPE_BIT(dtype)) && !(row.def.flags & kSlowRow) && row.def.max_elements == 0 &&
         row.def.revision >= op.record->def.revision && row.def.offset_alignment <= 1 &&
         device.properties.alignment <= 1;
}

// The shared form of both operands, or nullptr where they differ in more than their data.
const TensorImpl* common_form(const Call& call, const Device*& device, int& numbers) {
  const TensorImpl* first = nullptr;
  numbers = 0;
  for (int32_t i = 0; i < call.n_args; ++i) {
    const bp_value& v = call.args[i];
    if (v.tag != BP_TAG_TENSOR) {
      if (v.tag != BP_TAG_FLOAT && v.tag != BP_TAG_INT) return nullptr;
      ++numbers;
      continue;
    }
    const TensorImpl* t = impl(v.u.t);
    if (!t->storage || !is_contiguous(*t)) return nullptr;
    if (!first) {
      first = t;
      device = t->storage->device;
    } else if (t->storage->device != device || t->dtype != first->dtype || !same_shape(*t, *first)) {
      return nullptr;
    }
  }
  return first;
}

}  // namespace

bool call_fast(const Call& call) {
  const OpEntry& op = call.op;
  if (call.outs[0].flags != 0 || force_decomposition.load(std::memory_order_relaxed)) return false;
  const Device* found = nullptr;
  int numbers = 0;
  const TensorImpl* form = common_form(call, found, numbers);
  if (!form || !found->synchronous()) return false;
  const bp_dtype dtype = form->dtype;
  if (!(op.record->promote_accepts & BP_DTYPE_BIT(dtype)) || (found->properties.lacks & BP_DTYPE_BIT(dtype)))
    return false;
  // Numbers stay in the tensor's dtype only where that is floating; there an int is a float.
  if (!(BP_DTYPE_BIT(dtype) & BP_MASK_FLOATING) && (numbers || (op.record->def.dtype_flags & BP_DTYPE_TO_FLOATING)))
    return false;
  auto& device = const_cast<Device&>(*found);
  const KernelTable* table = op.table.load(std::memory_order_acquire);
  const uint32_t backend = form->backend;
  if (backend >= table->by_backend.size() || table->by_backend[backend].empty()) return false;
  const KernelRow& row = *table->by_backend[backend].front();
  if (!row_is_plain(op, row, device, dtype) || (numbers && !(row.def.flags & BP_KERNEL_IMMEDIATES))) return false;
  check_usable(device);

  bp_value args[2];
  for (int32_t i = 0; i < call.n_args; ++i) {
    args[i] = call.args[i];
    if (args[i].tag == BP_TAG_TENSOR) continue;
    args[i].flags |= BP_VALUE_NUMBER;
    if (args[i].tag == BP_TAG_INT) args[i].u.f = static_cast<double>(args[i].u.i);
    args[i].tag = BP_TAG_FLOAT;
  }
  const bp_result_dtype& result = op.record->dtypes[0];
  const bp_dtype out_dtype = result.kind == BP_RESULT_DTYPE_FIXED ? static_cast<bp_dtype>(result.param) : dtype;
  TensorImpl* out = new_tensor(device, out_dtype, form->dl.ndim, form->dl.shape);
  bp_value slot = tensor_value(out);
  slot.flags = BP_VALUE_GIVEN;

  bp_frame frame{};
  frame.header = BP_HEADER(bp_frame);
  frame.host = &host_table;
  frame.op = &op.record->info;
  frame.context = row.def.context;
  frame.backend = backend;
  frame.ordinal = device.ordinal;
  frame.keys = call.mask;
  frame.compute = dtype;
  bp_status status;
  {
    CallGuard guard;
    status = row.def.fn(&frame, args, call.n_args, &slot, 1);
  }
  if (status != BP_OK) {
    release(out);
    throw_status(status, op, row.owner->name.c_str());
  }
  counters.kernels.store(counters.kernels.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  call.outs[0] = tensor_value(out);
  return true;
}

bool fast_call_applies(const OpRecord& record) {
  const size_t n = record.args.size();
  if (!(record.def.flags & BP_OP_ELEMENTWISE) || record.results.size() != 1 || n < 1 || n > 2) return false;
  for (size_t i = 0; i < n; ++i)
    if (record.args[i].type != BP_TYPE_TENSOR || (record.args[i].flags & BP_ARG_LIST) || !(record.def.promote >> i & 1))
      return false;
  if (record.checked_args || (record.def.dtype_flags & BP_DTYPE_BITS)) return false;
  const uint16_t kind = record.dtypes[0].kind;
  return kind == BP_RESULT_DTYPE_COMPUTE || kind == BP_RESULT_DTYPE_FIXED;
}

}  // namespace backplane::core

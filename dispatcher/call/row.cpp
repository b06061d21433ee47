#include "call/row.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

#include "call/dispatch.hpp"
#include "call/formulas/role_calls.hpp"
#include "memory/devices/device.hpp"
#include "memory/process/epoch.hpp"
#include "memory/tensors/expand.hpp"
#include "record/dtype_rules.hpp"
#include "record/number_range.hpp"
#include "record/resolved_args.hpp"

namespace backplane::core {
namespace {

bool equals_default(const bp_value& value, const bp_arg_def& arg) {
  const bp_value& d = arg.default_value;
  if (value.tag != d.tag) return false;
  switch (value.tag) {
    case BP_TAG_ABSENT:
      return true;
    case BP_TAG_STRING:
      return value.count == d.count && std::memcmp(value.u.s, d.u.s, value.count) == 0;
    case BP_TAG_INT_LIST:
      return value.count == d.count && std::memcmp(value.u.ints, d.u.ints, value.count * sizeof(int64_t)) == 0;
    case BP_TAG_FLOAT:
      return value.u.f == d.u.f;
    case BP_TAG_COMPLEX:
      return value.u.c[0] == d.u.c[0] && value.u.c[1] == d.u.c[1];
    default:
      return value.u.i == d.u.i;
  }
}

// A kernel of an older revision is used only when every argument that it lacks equals its default.
bool revision_fits(const OpRecord& record, const KernelRow& row, const bp_value* args, const char** lacking) {
  if (row.def.revision >= record.def.revision) return true;
  for (size_t i = 0; i < record.args.size(); ++i)
    if (record.args[i].since > row.def.revision && !equals_default(args[i], record.args[i])) {
      *lacking = record.args[i].name;
      return false;
    }
  return true;
}

bool size_fits(const Call& call, const KernelRow& row, ResultShapes& shapes) {
  if (row.def.max_elements == 0) return true;
  bool fits = true;
  if (expands_operands(call.op.flags, row.def.flags)) {
    const ShapeResult& full = shapes.of(0);
    return checked_count(full.sizes, full.ndim) <= row.def.max_elements;
  }
  each_tensor(call.args, call.n_args, [&](TensorImpl* t) { fits = fits && element_count(*t) <= row.def.max_elements; });
  return fits;
}

// A plugin is asked about calls that the shape rule accepts, so that it may read their axes and sizes unchecked.
bool supports(const Call& call, const KernelRow& row, Device& device, bp_dtype compute, ResultShapes& shapes) {
  if (!(row.def.flags & BP_KERNEL_MAY_DECLINE) || !row.def.supports) return true;
  shapes.check();
  bp_frame frame = frame_of(*call.op.record);
  frame.context = row.def.context;
  frame.backend = device.backend->index;
  frame.ordinal = device.ordinal;
  frame.compute = compute;
  bp_value args[kMaxArgs];
  std::copy(call.args, call.args + call.n_args, args);
  ResolvedLists lists;
  if (row.resolves) resolve_args(*call.op.record, args, lists);
  CallGuard guard;
  take_error();
  return row.def.supports(&frame, args, row.n_args, call.outs, call.n_outs) == BP_OK;
}

std::string dtype_list(bp_dtype_mask mask) {
  std::string text;
  for (int d = 0; d < BP_DTYPE_COUNT; ++d)
    if (mask & BP_DTYPE_BIT(d)) text += (text.empty() ? "" : ", ") + std::string(kDtypeNames[d]);
  return text;
}

}  // namespace

const KernelRow* pick_row(const Call& call, const Device& device, bp_dtype compute, ResultShapes& shapes,
                          Refusals* why) {
  const Plan& plan = call.op.plan();
  uint32_t backend = device.backend->index;
  if (backend >= plan.n_devices) return nullptr;
  const OpRecord& record = *call.op.record;
  for (const KernelRow* row : plan.devices[backend].rows) {
    std::string reason;
    const char* lacking = "";
    if (compute != BP_DTYPE_NONE && !(row->def.dtypes & BP_DTYPE_BIT(compute))) {
      if (why) reason = "takes " + dtype_list(row->def.dtypes) + ", not " + kDtypeNames[compute];
    } else if (!revision_fits(record, *row, call.args, &lacking)) {
      if (why) reason = "was written before the argument \"" + std::string(lacking) + "\" existed";
    } else if (!size_fits(call, *row, shapes)) {
      if (why) reason = "takes at most " + std::to_string(row->def.max_elements) + " elements";
    } else if (!supports(call, *row, const_cast<Device&>(device), compute, shapes)) {
      if (why) reason = "declined: " + take_error();
    } else {
      return row;
    }
    if (why)
      why->text += "\n  the kernel of plugin \"" + row->owner->name + "\" (" + row->file + ":" +
                   std::to_string(row->def.line) + ") " + reason;
  }
  return nullptr;
}

Tensor tensor_of_number(bp_value number, bp_dtype dtype, const Device& device, uint64_t mask) {
  number.flags &= BP_VALUE_UINT64;
  return roles::full({}, number, dtype, id_of(device), mask);
}

bp_value prepare_number(const bp_value& number, const KernelRow& row, Device& device, bp_dtype compute,
                        double (&complex_storage)[2], Temporaries& temporaries) {
  bp_value v = number;
  v.flags = BP_VALUE_NUMBER;
  bp_dtype_mask bit = compute == BP_DTYPE_NONE ? 0 : BP_DTYPE_BIT(compute);
  if (bit & BP_MASK_COMPLEX) {
    complex_storage[0] = number.tag == BP_TAG_COMPLEX ? number.u.c[0] : real_of_number(number);
    complex_storage[1] = number.tag == BP_TAG_COMPLEX ? number.u.c[1] : 0.0;
    v.tag = BP_TAG_COMPLEX;
    v.u.c = complex_storage;
  } else if (bit & BP_MASK_FLOATING) {
    v.u.f = real_of_number(number);
    v.tag = BP_TAG_FLOAT;
  } else if (bit & BP_MASK_INTEGER) {
    v.tag = BP_TAG_INT;
    v.flags |= number.flags & BP_VALUE_UINT64;
  }
  if (row.def.flags & BP_KERNEL_IMMEDIATES) return v;
  return tensor_value(temporaries.keep(tensor_of_number(v, compute, device, 0)));
}

// Of an op that moves elements: does an argument make it compute with them?
static bool computes(const Call& call) {
  for (uint64_t bits = call.op.record->def.computes_where; bits != 0; bits &= bits - 1) {
    const auto i = static_cast<int32_t>(__builtin_ctzll(bits));
    if (i < call.n_args && call.args[i].tag == BP_TAG_BOOL && call.args[i].u.i != 0) return true;
  }
  return false;
}

bp_dtype lacked_dtype(const Call& call, const Device& device, bp_dtype compute) {
  const bp_dtype_mask lacks = device.properties.lacks;
  if (!lacks || ((call.op.flags & BP_OP_MOVES) && !computes(call))) return BP_DTYPE_NONE;
  const auto lacked = [&](bp_dtype dtype) { return dtype != BP_DTYPE_NONE && (lacks & BP_DTYPE_BIT(dtype)); };
  if (lacked(compute)) return compute;
  for (int32_t i = 0; i < call.n_outs; ++i)
    if (const bp_dtype dtype = result_dtype(*call.op.record, call.args, call.n_args, i, compute); lacked(dtype))
      return dtype;
  return BP_DTYPE_NONE;
}

void throw_missing_kernel(const Call& call, Device& device, bp_dtype compute, const Refusals& why) {
  const OpRecord& record = *call.op.record;
  std::string text(record.name);
  const bp_dtype lacked = lacked_dtype(call, device, compute);
  const bool of_result = lacked != BP_DTYPE_NONE && lacked != compute;  // where a kernel for the arguments may exist
  text += (of_result ? ": cannot run on device " : ": no kernel on device ") + name_of(device);
  if (compute != BP_DTYPE_NONE && !of_result) text += std::string(" for ") + kDtypeNames[compute];
  if (lacked == BP_DTYPE_NONE) text += ", and no decomposition";
  if (lacked != BP_DTYPE_NONE)
    text += "\n  the device does not compute in " + std::string(kDtypeNames[lacked]) +
            (of_result ? ", the dtype of the result" : "; cast the arguments to another dtype");
  text += why.text;
  std::string others;
  const Plan& plan = call.op.plan();
  for (uint32_t b = 0; b < plan.n_devices; ++b)
    if (b != device.backend->index && !plan.devices[b].rows.empty())
      others += (others.empty() ? "" : ", ") + backend_at(b).name;
  if (!others.empty()) text += "\n  kernels exist on: " + others + "; move the tensors there with to(device)";
  if (lacked != BP_DTYPE_NONE) throw Error(BP_ERROR_NOT_IMPLEMENTED, text);
  text += "\n  a plugin provides one with: BP_KERNEL(\"" + std::string(record.name) + "\", \"" + device.backend->name +
          "\", your_function)\n  Python provides one with: @op.register_kernel(\"" + device.backend->name + "\")";
  throw Error(BP_ERROR_NOT_IMPLEMENTED, text);
}

}  // namespace backplane::core

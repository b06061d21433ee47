#include "bindings/ops/op_work.hpp"

#include "backplane/device.hpp"
#include "bindings/ops/op_signature.hpp"
#include "bindings/tensor/tensor_object.hpp"

namespace backplane::python {

uint64_t work_of_creation(const bp_value* values, int32_t count) noexcept {
  try {
    static const uint32_t host = parse_device("cpu").backend;
    for (int32_t i = 0; i < count; ++i)
      if (values[i].tag == BP_TAG_DEVICE) return values[i].u.d.backend == host ? 0 : kReleaseGilBytes;
    return default_device().backend == host ? 0 : kReleaseGilBytes;
  } catch (const Error&) {
    return 0;  // the call says what is missing
  }
}

uint64_t bytes_of_call(const OpSignature& signature, const bp_value* values, int32_t count) noexcept {
  if (signature.makes_view()) return 0;
  uint64_t bytes = bytes_of(values, count);
  for (int32_t i = 0; i < count; ++i) {
    if (values[i].tag == BP_TAG_TENSOR_LIST) {
      for (uint32_t k = 0; k < values[i].count; ++k)
        bytes += values[i].u.tensors[k] ? work_of(*values[i].u.tensors[k]) : 0;
    } else if (values[i].tag == BP_TAG_INT_LIST && bytes < kReleaseGilBytes) {
      uint64_t product = 1;
      for (uint32_t k = 0; k < values[i].count; ++k) product *= static_cast<uint64_t>(values[i].u.ints[k]);
      if (product >= kReleaseGilBytes) bytes += product;
    }
  }
  if (bytes == 0) bytes = work_of_creation(values, count);
  return bytes;
}

}  // namespace backplane::python

#include "bindings/ops/op_work.hpp"

#include "backplane/device.hpp"
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

}  // namespace backplane::python

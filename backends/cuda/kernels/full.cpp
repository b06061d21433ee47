// full of float32.
#include "kernels/families.hpp"
#include "kernels/launch.hpp"
#include "runtime/check.hpp"

namespace backplane::cuda {
namespace {

void full(plugin::Context call, std::span<const int64_t>, bp_value fill, bp_value, bp_value,
          plugin::MutTensor<float> out) {
  if (out.size() == 0) return;
  const DeviceScope scope(call.frame->ordinal);
  check(launch_fill(out.data(), out.size(), plugin::number_as<float>(fill), as_stream(call.frame->stream).handle()),
        call.op_name());
}

// The row's dtypes speak of the compute dtype, but full writes the dtype that it is asked for.
bp_status BP_CALL supports(const bp_frame* frame, const bp_value* args, int32_t n_args, bp_value*, int32_t) {
  const bool asked = n_args > 2 && args[2].tag == BP_TAG_DTYPE;
  const bp_dtype wanted = asked ? static_cast<bp_dtype>(args[2].u.i) : frame->compute;
  if (wanted == BP_FLOAT32) return BP_OK;
  frame->host->set_error(BP_ERROR_DTYPE, "cuda fills float32 alone");
  return BP_ERROR_DTYPE;
}

}  // namespace

void register_full(plugin::Registrar& registrar) {
  registrar.kernel(BP_KERNEL("bp::full", "cuda", plugin::kernel<full>, .supports = supports));
}

}  // namespace backplane::cuda

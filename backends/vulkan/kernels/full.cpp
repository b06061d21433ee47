// full of float32, by the device's fill command.
#include <bit>

#include "kernels/families.hpp"

namespace backplane::vulkan {
namespace {

void full(plugin::Context call, std::span<const int64_t>, bp_value fill, bp_value, bp_value,
          plugin::MutTensor<float> out) {
  if (out.size() == 0) return;
  const bp_tensor& tensor = *out.handle();
  Device& device = call.registered<Backend>()->device(call.frame->ordinal);
  std::lock_guard lock(device.mutex);
  const Block& block = device.block(tensor.dl.data, tensor.dl.byte_offset, tensor.nbytes);
  // Offset and size are multiples of 4, as vkCmdFillBuffer asks: the row takes float32 alone.
  vkCmdFillBuffer(as_stream(call.frame->stream).record(), block.buffer, tensor.dl.byte_offset, tensor.nbytes,
                  std::bit_cast<uint32_t>(plugin::number_as<float>(fill)));
}

// The row's dtypes speak of the compute dtype, but full writes the dtype that it is asked for.
bp_status BP_CALL supports(const bp_frame* frame, const bp_value* args, int32_t n_args, bp_value*, int32_t) {
  const bool asked = n_args > 2 && args[2].tag == BP_TAG_DTYPE;
  const bp_dtype wanted = asked ? static_cast<bp_dtype>(args[2].u.i) : frame->compute;
  if (wanted == BP_FLOAT32) return BP_OK;
  frame->host->set_error(BP_ERROR_DTYPE, "vulkan fills float32 alone");
  return BP_ERROR_DTYPE;
}

}  // namespace

void register_full(plugin::Registrar& registrar, Backend& backend) {
  registrar.kernel(BP_KERNEL("bp::full", "vulkan", plugin::kernel<full>, .context = &backend, .supports = supports));
}

}  // namespace backplane::vulkan

// Registers the op of ops.yaml, and a kernel for it on Vulkan devices. Other backends, and other dtypes, run its
// decomposition.
#include "backplane/plugin.hpp"
#include "sketch_records.h"
#include "wave.comp.hpp"

using namespace backplane::plugin;

namespace {

void wave(Context call, ConstTensor<float> x, double speed, MutTensor<float> out) {
  launch(call, wave_comp, vulkan_groups(out.size(), 256), x, out, out.size(), static_cast<float>(speed));
}

void register_all(const Registrar& registrar) {
  for (uint32_t i = 0; i < sketch_op_count; ++i) registrar.op(*sketch_ops[i]);
  registrar.kernel(BP_KERNEL("sketch::wave", "vulkan", kernel<wave>, .dtypes = BP_DTYPE_BIT(BP_FLOAT32)));
}

}  // namespace

BP_DEFINE_PLUGIN(BP_PLUGIN_NAME, "0.1.0", register_all)

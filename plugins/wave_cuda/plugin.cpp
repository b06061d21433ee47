// Registers the op of ops.yaml, and a kernel for it on CUDA devices. Other backends run its decomposition.
#include "backplane/plugin.hpp"
#include "sketch_records.h"
#include "wave.cu.hpp"

using namespace backplane::plugin;

namespace {

void wave(Context call, ConstTensor<void> x, double speed, MutTensor<void> out) {
  const CudaExtent grid = groups_of(out.size(), 256), block = 256;
  if (call.compute() == BP_FLOAT32)
    launch(call, wave_cu, "wave_float32", grid, block, x, out, out.size(), static_cast<float>(speed));
  else
    launch(call, wave_cu, "wave_float64", grid, block, x, out, out.size(), speed);
}

void register_all(const Registrar& registrar) {
  for (uint32_t i = 0; i < sketch_op_count; ++i) registrar.op(*sketch_ops[i]);
  registrar.kernel(
      BP_KERNEL("sketch::wave", "cuda", kernel<wave>, .dtypes = BP_DTYPE_BIT(BP_FLOAT32) | BP_DTYPE_BIT(BP_FLOAT64)));
}

}  // namespace

BP_DEFINE_PLUGIN(BP_PLUGIN_NAME, "0.1.0", register_all)

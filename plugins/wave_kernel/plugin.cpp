// Registers the op of ops.yaml, and a kernel for it on the CPU. Other backends run its decomposition.
#include "backplane/plugin.hpp"
#include "backplane/plugin/element.hpp"
#include "backplane/plugin/loop.hpp"
#include "sketch/scalar.hpp"
#include "sketch_records.h"

using namespace backplane::plugin;

namespace {

// One pass over x, in any strides. What happens to an element is the entry's decomposition, which codegen has written
// as a function of scalars.
void wave(Context call, bp_value x, double speed, MutTensor<void> out) {
  dispatch_dtype<BP_MASK_FLOATING>(call.compute(), [&]<class T>() {
    const auto factor = static_cast<Compute<T>>(speed);
    map_elements<T, T>(Loop<2>(call, out, x), [factor](T e) { return apply<sketch::scalar::wave>(e, factor); });
  });
}

void register_all(const Registrar& registrar) {
  for (uint32_t i = 0; i < sketch_op_count; ++i) registrar.op(*sketch_ops[i]);
  registrar.kernel(BP_KERNEL("sketch::wave", "cpu", kernel<wave>, .dtypes = BP_MASK_FLOATING,
                             .flags = BP_KERNEL_LOOP | BP_KERNEL_IMMEDIATES | BP_KERNEL_INPLACE));
}

}  // namespace

BP_DEFINE_PLUGIN(BP_PLUGIN_NAME, "0.1.0", register_all)

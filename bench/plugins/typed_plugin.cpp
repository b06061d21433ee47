// A plugin as its author writes one in C++: a typed kernel and its registration. `./dev bench compile` times how long
// this file takes to compile; nothing loads it.
#include "backplane/plugin.hpp"

using namespace backplane::plugin;

namespace {

void twice(ConstTensor<float> x, MutTensor<float> out) {
  for (int64_t i = 0; i < out.size(); ++i) out.data()[i] = 2 * x.data()[i];
}

void register_all(Registrar& registrar) {
  registrar.kernel(BP_KERNEL("bench::twice", "cpu", kernel<twice>, .dtypes = BP_DTYPE_BIT(BP_FLOAT32)));
}

}  // namespace

BP_DEFINE_PLUGIN("bench_twice", "1", register_all)

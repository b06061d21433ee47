// An op in C++, on the headers that are not part of the contract: they are compiled into the plugin. Its kernel serves
// every backend of host memory, works in pieces, and throws where the first element is negative.
#include "backplane/plugin.hpp"

#include "tiny.h"

using namespace backplane::plugin;

namespace {

void scale(Context call, ConstTensor<float> x, MutTensor<float> out) {
  if (x.size() > 0 && x.data()[0] < 0) throw backplane::Error(BP_ERROR_VALUE, "the first element is negative");
  const auto body = [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) out.data()[i] = 5.0f * x.data()[i];
  };
  call.parallel_for(0, out.size(), 1, body);
}

void register_all(const Registrar& registrar) {
  if (tiny_register_op(registrar.host(), registrar.record(), PLUGIN "::scale", 0) != BP_OK)
    throw std::runtime_error("its op was refused");
  registrar.kernel(BP_KERNEL(PLUGIN "::scale", "*", kernel<scale>, .dtypes = BP_DTYPE_BIT(BP_FLOAT32)));
}

}  // namespace

BP_DEFINE_PLUGIN(PLUGIN, "1.0", register_all)

// Registers the op of ops.yaml and a kernel for it on the CPU backend. Other backends reach it by its decomposition.
#include "backplane/plugin.hpp"
#include "example_records.h"

using namespace backplane::plugin;

namespace {

struct Axpby {
  double alpha, beta;

  // Operands: the result, x, y. `dim` counts from the outermost dimension of the loop.
  template <class T>
  void run(const bp_loop& loop, int32_t dim, char* out, const char* x, const char* y) const {
    if (dim == loop.rank) {
      const T scaled = static_cast<T>(alpha) * *reinterpret_cast<const T*>(x);
      *reinterpret_cast<T*>(out) = scaled + static_cast<T>(beta) * *reinterpret_cast<const T*>(y);
      return;
    }
    const int64_t* step = loop.strides + dim;
    for (int64_t i = 0; i < loop.sizes[dim]; ++i)
      run<T>(loop, dim + 1, out + i * step[0], x + i * step[loop.rank], y + i * step[2 * loop.rank]);
  }
};

struct Kernel {
  template <class T>
  static void run(Context call, ConstTensor<T> x, ConstTensor<T> y, double alpha, double beta, MutTensor<T> out) {
    const int64_t size = out.size(), strides[] = {sizeof(T), sizeof(T), sizeof(T)};
    const bp_loop flat{BP_HEADER(bp_loop), 1, 3, size, &size, strides, nullptr, 0, 0, 0, 0};
    const bp_loop& loop = call.frame->loop != nullptr ? *call.frame->loop : flat;  // no loop: contiguous, one shape
    Axpby{alpha, beta}.run<T>(loop, 0, reinterpret_cast<char*>(out.data()), reinterpret_cast<const char*>(x.data()),
                              reinterpret_cast<const char*>(y.data()));
  }
};

constexpr bp_dtype_mask kFloats = BP_DTYPE_BIT(BP_FLOAT32) | BP_DTYPE_BIT(BP_FLOAT64);

void register_all(const Registrar& registrar) {
  for (uint32_t i = 0; i < example_op_count; ++i) registrar.op(*example_ops[i]);
  registrar.kernel(BP_KERNEL("example::axpby", "cpu", (kernel_by_dtype<Kernel, kFloats>), .dtypes = kFloats,
                             .flags = BP_KERNEL_LOOP | BP_KERNEL_INPLACE));
}

}  // namespace

BP_DEFINE_PLUGIN(BP_PLUGIN_NAME, "0.1.0", register_all)

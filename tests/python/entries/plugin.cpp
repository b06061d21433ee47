// Registers the ops of ops.yaml, and one kernel.
#include "backplane/plugin.hpp"
#include "entries_records.h"

namespace {

using namespace backplane::plugin;

struct Products {
  template <class T>
  static void run(Context, ConstTensor<T> x, ConstTensor<T> y, double scale, MutTensor<T> out, MutTensor<T> sums) {
    const int64_t rows = x.size(), columns = y.size();
    for (int64_t i = 0; i < rows; ++i) {
      T sum = 0;
      for (int64_t j = 0; j < columns; ++j)
        sum += out.data()[i * columns + j] = static_cast<T>(scale) * x.data()[i] * y.data()[j];
      sums.data()[i] = sum;
    }
  }
};

constexpr bp_dtype_mask kFloats = BP_DTYPE_BIT(BP_FLOAT32) | BP_DTYPE_BIT(BP_FLOAT64);

void register_all(const Registrar& registrar) {
  for (uint32_t i = 0; i < entries_op_count; ++i) registrar.op(*entries_ops[i]);
  registrar.kernel(BP_KERNEL("entries::products", "cpu", (kernel_by_dtype<Products, kFloats>), .dtypes = kFloats));
}

}  // namespace

BP_DEFINE_PLUGIN(BP_PLUGIN_NAME, "0.1.0", register_all)

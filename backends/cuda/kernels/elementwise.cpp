// Every op of the registry from one or two float32 to a float32, over the core's loop descriptor: any strides,
// broadcasting included.
//
// The device walks kMaxRank dimensions; a loop of more is launched once per position of the outer ones.
#include <algorithm>

#include "kernels/families.hpp"
#include "kernels/launch.hpp"
#include "runtime/check.hpp"

namespace backplane::cuda {
namespace {

constexpr int64_t kItem = sizeof(float);

// Sets the loop's innermost dimensions from a descriptor; gives how many positions the outer ones have.
int64_t set_dimensions(Loop& loop, const bp_loop& given) {
  loop.rank = std::min(given.rank, kMaxRank);
  loop.count = 1;
  for (int32_t d = 0; d < loop.rank; ++d) {
    const int32_t from = given.rank - 1 - d;
    loop.sizes[d] = given.sizes[from];
    loop.count *= given.sizes[from];
    for (int32_t o = 0; o < given.n_operands; ++o) loop.strides[o][d] = given.strides[o * given.rank + from] / kItem;
  }
  int64_t outer = 1;
  for (int32_t d = 0; d < given.rank - loop.rank; ++d) outer *= given.sizes[d];
  return outer;
}

// How many elements operand `o` lies from its first one at position `i` of the outer dimensions.
int64_t outer_offset(const bp_loop& given, int32_t o, int64_t i) {
  int64_t offset = 0;
  for (int32_t d = given.rank - kMaxRank - 1; d >= 0; --d) {
    offset += i % given.sizes[d] * given.strides[o * given.rank + d] / kItem;
    i /= given.sizes[d];
  }
  return offset;
}

using In = plugin::ConstTensor<float>;
using Out = plugin::MutTensor<float>;

void run(Function function, plugin::Context call, Out out, In x, const float* y) {
  if (out.size() == 0) return;
  const DeviceScope scope(call.frame->ordinal);
  const cudaStream_t stream = as_stream(call.frame->stream).handle();
  Loop loop{out.data(), x.data(), y, out.size(), {out.size()}, {{1}, {1}, {1}}, 1};
  const bp_loop* given = call.frame->loop;
  const int64_t outer = given ? set_dimensions(loop, *given) : 1;
  for (int64_t i = 0; i < outer; ++i) {
    Loop at = loop;
    if (outer > 1) {
      at.result += outer_offset(*given, 0, i);
      at.x += outer_offset(*given, 1, i);
      if (y) at.y += outer_offset(*given, 2, i);
    }
    check(launch_elementwise(function, at, stream), call.op_name());
  }
}

template <Function kFunction>
void unary(plugin::Context call, In x, Out out) {
  run(kFunction, call, out, x, nullptr);
}
template <Function kFunction>
void binary(plugin::Context call, In x, In y, Out out) {
  run(kFunction, call, out, x, y.data());
}

}  // namespace

void register_elementwise(plugin::Registrar& registrar) {
  const auto row = [&](const char* op, bp_kernel_fn fn) {
    registrar.kernel(
        BP_KERNEL(op, "cuda", fn, .dtypes = BP_DTYPE_BIT(BP_FLOAT32), .flags = BP_KERNEL_LOOP | BP_KERNEL_INPLACE));
  };
#define BACKPLANE_UNARY(op, function, number) row("bp::" #op, plugin::kernel<unary<Function::op>>);
#define BACKPLANE_BINARY(op, function, number) row("bp::" #op, plugin::kernel<binary<Function::op>>);
  BP_SCALAR_UNARY_float32_float32(BACKPLANE_UNARY) BP_SCALAR_BINARY_float32_float32(BACKPLANE_BINARY)
#undef BACKPLANE_UNARY
#undef BACKPLANE_BINARY
}

}  // namespace backplane::cuda

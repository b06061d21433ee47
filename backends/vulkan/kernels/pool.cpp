// max_pool2d_with_indices and avg_pool2d of contiguous images (n, c, h, w); max_pool2d is the former without places,
// and their gradients are put_along_axis and conv2d's (shaders/pool2d.comp).
#include "kernels/kernels.hpp"

namespace backplane::vulkan {
namespace {

enum Function : uint8_t { kMax, kMean };  // as in the shader

using Pair = std::array<int64_t, 2>;

Pair pair_or(const Call& call, size_t arg, const Pair& absent) {
  const Sizes given = call.integers(arg);
  return given.empty() ? absent : Pair{given[0], given[1]};
}

template <Function kFunction>
void pool(const Call& call) {
  const Operand x = call.input(0);
  const Operand values = call.wants(0) ? call.output(0) : Operand{};
  const Operand places = kFunction == kMax && call.wants(1) ? call.output(1) : Operand{};
  const Sizes& shape = values.dtype == BP_DTYPE_NONE ? places.shape : values.shape;
  const int64_t count = values.dtype == BP_DTYPE_NONE ? places.count() : values.count();
  if (count == 0) return;
  const Pair window = pair_or(call, 1, {}), stride = pair_or(call, 2, window), padding = pair_or(call, 3, {0, 0});
  const auto n = [&](int64_t value) { return static_cast<uint32_t>(narrow(value, call.op_name())); };
  for (size_t d = 0; d < 2; ++d) n(x.shape[2 + d] + 2 * padding[d]);
  Push push = call.push();
  push.at = {values.data, x.data, places.data};
  push.n = {n(count),     n(x.shape[2]), n(x.shape[3]), n(shape[2]),   n(shape[3]),  n(window[0]),
            n(window[1]), n(stride[0]),  n(stride[1]),  n(padding[0]), n(padding[1])};
  divide_by(shape[3], push.n.data() + 11);
  divide_by(shape[2], push.n.data() + 13);
  const Shader shader{module_of(Module::pool2d_float32, class_of(x.dtype)),
                      {kFunction, static_cast<uint8_t>(x.dtype), static_cast<uint8_t>(x.dtype), 0}};
  call.dispatch(shader, push, groups_for(count), {values.range(), places.range()}, {x.range()});
}

constexpr Row kRows[] = {
    {"bp::max_pool2d_with_indices", kernel<pool<kMax>>, BP_MASK_FLOATING, 0},
    {"bp::avg_pool2d", kernel<pool<kMean>>, BP_MASK_FLOATING, 0},
};

}  // namespace

void register_pool(const plugin::Registrar& registrar, Backend&) { register_rows(registrar, kRows, __FILE__); }

}  // namespace backplane::vulkan

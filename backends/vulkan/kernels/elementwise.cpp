// Every op of the registry from one or two float32 to a float32, over the core's loop descriptor: any strides,
// broadcasting included.
//
// The shader walks four dimensions; a loop of more is recorded as one dispatch per position of the outer ones.
#include <algorithm>
#include <array>
#include <cstdlib>

#include "kernels/families.hpp"

namespace backplane::vulkan {
namespace {

constexpr int32_t kInner = 4;
constexpr int32_t kWord = 4;                 // bytes
constexpr int64_t kMaxElements = 1ll << 30;  // the shader counts in 32 bits
constexpr uint32_t kGroupSize = 256, kMaxGroups = 65535;

// As in kernels/elementwise.comp.
struct Push {
  std::array<uint64_t, 3> address{};
  uint32_t count = 1;
  uint32_t unused = 0;
  std::array<uint32_t, kInner> sizes{1, 1, 1, 1};
  std::array<std::array<uint32_t, kInner>, 3> strides{};
  std::array<uint32_t, kInner> starts{};
};
static_assert(sizeof(Push) == 112 && sizeof(Push) <= kPushBytes);

struct Loop {
  int32_t rank = 1;
  int32_t n_operands = 0;
  const int64_t* sizes = nullptr;
  const int64_t* strides = nullptr;
  std::array<uint64_t, 3> first{};  // addresses of the first elements

  int64_t stride(int32_t operand, int32_t d) const { return strides[operand * rank + d]; }
};

// Sets the innermost dimensions of one operand; those that run backward are counted from the lowest address.
void set_operand(Push& push, const Loop& loop, int32_t operand, const char* op_name) {
  const auto o = static_cast<size_t>(operand);
  int64_t start = 0, reach = 0;
  for (int32_t d = 0; d < std::min(loop.rank, kInner); ++d) {
    const int32_t from = loop.rank - 1 - d;
    const int64_t words = loop.stride(operand, from) / kWord;
    push.strides[o][static_cast<size_t>(d)] = static_cast<uint32_t>(words);  // modulo 2^32, as the shader adds
    if (words < 0) start -= words * (loop.sizes[from] - 1);
    reach += std::abs(words) * (loop.sizes[from] - 1);
  }
  BP_CHECK(reach < (1ll << 32), VALUE, op_name, ": found operand ", operand, " spread over ", reach,
           " elements, expected fewer than 2^32; copy it first");
  push.starts[o] = static_cast<uint32_t>(start);
  push.address[o] = loop.first[o] - static_cast<uint64_t>(start) * kWord;
}

void dispatch_loop(Stream& stream, Shader shader, const Loop& loop, const char* op_name) {
  Push push;
  int64_t outer = 1, inner = 1;
  for (int32_t d = 0; d < loop.rank; ++d) (d < loop.rank - kInner ? outer : inner) *= loop.sizes[d];
  for (int32_t d = 0; d < std::min(loop.rank, kInner); ++d)
    push.sizes[static_cast<size_t>(d)] = static_cast<uint32_t>(loop.sizes[loop.rank - 1 - d]);
  push.count = static_cast<uint32_t>(inner);
  for (int32_t o = 0; o < loop.n_operands; ++o) set_operand(push, loop, o, op_name);
  const auto groups = std::min((push.count + kGroupSize - 1) / kGroupSize, kMaxGroups);
  for (int64_t i = 0; i < outer; ++i) {
    Push at = push;
    int64_t rest = i;
    for (int32_t d = loop.rank - kInner - 1; d >= 0; --d) {
      const int64_t index = rest % loop.sizes[d];
      rest /= loop.sizes[d];
      for (int32_t o = 0; o < loop.n_operands; ++o)
        at.address[static_cast<size_t>(o)] += static_cast<uint64_t>(index * loop.stride(o, d));
    }
    stream.dispatch(shader, &at, sizeof(at), groups);
  }
}

void run(Shader shader, plugin::Context call, std::span<bp_tensor* const> operands) {
  if (operands[0]->nbytes == 0) return;
  Device& device = call.registered<Backend>()->device(call.frame->ordinal);
  std::lock_guard lock(device.mutex);
  Loop loop;
  loop.n_operands = static_cast<int32_t>(operands.size());
  for (size_t o = 0; o < operands.size(); ++o)
    loop.first[o] =
        device.block(operands[o]->dl.data, operands[o]->dl.byte_offset, kWord).address + operands[o]->dl.byte_offset;
  const int64_t flat_size = static_cast<int64_t>(operands[0]->nbytes / kWord);
  constexpr int64_t kFlatStrides[] = {kWord, kWord, kWord}, kOneElement[] = {1}, kNoStrides[] = {0, 0, 0};
  loop.sizes = &flat_size;
  loop.strides = kFlatStrides;
  if (const bp_loop* given = call.frame->loop; given && given->rank > 0) {
    loop.rank = given->rank;
    loop.sizes = given->sizes;
    loop.strides = given->strides;
  } else if (given) {
    loop.sizes = kOneElement;
    loop.strides = kNoStrides;
  }
  dispatch_loop(as_stream(call.frame->stream), shader, loop, call.op_name());
}

using In = plugin::ConstTensor<float>;
using Out = plugin::MutTensor<float>;

template <Shader kShader>
void unary(plugin::Context call, In x, Out out) {
  bp_tensor* const operands[] = {out.handle(), x.handle()};
  run(kShader, call, operands);
}
template <Shader kShader>
void binary(plugin::Context call, In x, In y, Out out) {
  bp_tensor* const operands[] = {out.handle(), x.handle(), y.handle()};
  run(kShader, call, operands);
}
}  // namespace

void register_elementwise(plugin::Registrar& registrar, Backend& backend) {
  const auto row = [&](const char* op, bp_kernel_fn fn) {
    registrar.kernel(BP_KERNEL(op, "vulkan", fn, .dtypes = BP_DTYPE_BIT(BP_FLOAT32),
                               .flags = BP_KERNEL_LOOP | BP_KERNEL_INPLACE, .context = &backend,
                               .offset_alignment = kWord, .max_elements = kMaxElements));
  };
#define BACKPLANE_UNARY(op, function, number) row("bp::" #op, plugin::kernel<unary<Shader::op>>);
#define BACKPLANE_BINARY(op, function, number) row("bp::" #op, plugin::kernel<binary<Shader::op>>);
  BP_SCALAR_UNARY_float32_float32(BACKPLANE_UNARY) BP_SCALAR_BINARY_float32_float32(BACKPLANE_BINARY)
#undef BACKPLANE_UNARY
#undef BACKPLANE_BINARY
}

}  // namespace backplane::vulkan

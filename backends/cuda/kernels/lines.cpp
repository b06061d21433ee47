// softmax, log_softmax, layer_norm with its gradient, and rms_norm over a tensor's last axes; over others they are
// composed.
#include <bit>

#include "kernels/families.hpp"
#include "kernels/lines.hpp"

namespace backplane::cuda {
namespace {

// Of a block: as many as hold a line, if there are so many.
uint32_t threads_for(uint32_t length, bp_dtype dtype, bool packs) {
  const uint32_t held = packs ? kHeldPacks * pack_of(dtype) : kHeldElements;
  return std::clamp(std::bit_ceil((length + held - 1) / held), kWarp, kLongestBlock);
}

// The lines along the axes of argument `axes`, which are x's last ones.
NormalizedLines lines_of(const bp_tensor& x, std::span<const int64_t> axes) {
  NormalizedLines lines{};
  int64_t length = 1;
  for (size_t d = 0; d < axes.size(); ++d) length *= x.dl.shape[static_cast<size_t>(x.dl.ndim) - 1 - d];
  lines.length = static_cast<uint32_t>(length);
  lines.count = length == 0 ? 0 : static_cast<uint32_t>(count_of(x) / length);
  return lines;
}

// Whether each line of each operand is made of whole packs.
bool lie_in_packs(const NormalizedLines& lines, bp_dtype dtype) {
  if (lines.length % pack_of(dtype) != 0) return false;
  for (const char* data : {lines.x, lines.weight, lines.bias, lines.cotangent, static_cast<const char*>(lines.out)})
    if (reinterpret_cast<uintptr_t>(data) % kWidest != 0) return false;
  return true;
}

void launch(const Call& call, const NormalizedLines& lines) {
  if (lines.count == 0) return;
  const bp_dtype dtype = call.output().dtype;
  const bool packs = lie_in_packs(lines, dtype);
  call.launch(std::string("lines_") + plugin::dtype_name(dtype),
              std::string(call.row().name) + (packs ? "_packs" : "_elements"),
              {std::min(lines.count, uint32_t{1} << 20), 1, 1, threads_for(lines.length, dtype, packs)}, lines);
}

const char* optional(const Call& call, size_t arg) { return call.has(arg) ? data_of(call.input(arg)) : nullptr; }

void softmax(const Call& call) {
  NormalizedLines lines = lines_of(call.input(0), call.integers(1));
  lines.x = data_of(call.input(0)), lines.out = data_of(call.output());
  launch(call, lines);
}

// layer_norm(x, weight, bias, axis, eps), and without a bias rms_norm.
template <bool kBias>
void norm(const Call& call) {
  constexpr size_t kAxes = kBias ? 3 : 2;
  NormalizedLines lines = lines_of(call.input(0), call.integers(kAxes));
  lines.x = data_of(call.input(0)), lines.out = data_of(call.output());
  lines.weight = optional(call, 1), lines.bias = kBias ? optional(call, 2) : nullptr;
  lines.eps = plugin::as_double(call.value(kAxes + 1));
  launch(call, lines);
}

// layer_norm_grad(cotangent, x, weight, axis, eps)
void layer_norm_grad(const Call& call) {
  NormalizedLines lines = lines_of(call.input(1), call.integers(3));
  lines.cotangent = data_of(call.input(0)), lines.x = data_of(call.input(1)), lines.out = data_of(call.output());
  lines.weight = optional(call, 2);
  lines.eps = plugin::as_double(call.value(4));
  launch(call, lines);
}

bool are_last(const bp_tensor& x, std::span<const int64_t> axes) {
  uint64_t chosen = 0;
  for (const int64_t axis : axes) chosen |= uint64_t{1} << axis;
  const auto rank = static_cast<size_t>(x.dl.ndim), count = axes.size();
  return count > 0 && count <= rank && std::popcount(chosen) == static_cast<int>(count) &&
         chosen >> (rank - count) == (uint64_t{1} << count) - 1;
}

bool has_shape_of(const bp_tensor& row, const bp_tensor& x, size_t axes) {
  return row.dl.ndim == static_cast<int32_t>(axes) &&
         std::equal(row.dl.shape, row.dl.shape + axes, x.dl.shape + x.dl.ndim - axes);
}

// Takes the last axes; the operands between x, which is argument kX, and the axes have their shape.
template <int kX, int kAxes>
bp_status BP_CALL supports(const bp_frame* frame, const bp_value* args, int32_t, bp_value*, int32_t) {
  const auto is_tensor = [&](int k) { return args[k].tag == BP_TAG_TENSOR; };
  bool fits = is_tensor(kX) && is_tensor(0);
  const std::span<const int64_t> axes(args[kAxes].u.ints, args[kAxes].count);
  if (fits) {
    const bp_tensor& x = *args[kX].u.t;
    fits = are_last(x, axes) && count_of(x) <= INT32_MAX;
    for (int k = kX + 1; fits && k < kAxes; ++k)
      fits = args[k].tag == BP_TAG_ABSENT || (is_tensor(k) && has_shape_of(*args[k].u.t, x, axes.size()));
  }
  if (fits) return BP_OK;
  frame->host->set_error(BP_ERROR_NOT_IMPLEMENTED, "takes the last axes, with weight and bias of their shape");
  return BP_ERROR_NOT_IMPLEMENTED;
}

}  // namespace

void register_lines(const Registration& registration) {
  const auto row = [&](const char* op, bp_kernel_fn fn, bp_kernel_fn supported, uint32_t line = __builtin_LINE()) {
    registration.row(op, fn, BP_MASK_FLOATING, BP_KERNEL_CAPTURABLE, __FILE__, line, supported);
  };
  row("softmax", kernel<softmax>, supports<0, 1>);
  row("log_softmax", kernel<softmax>, supports<0, 1>);
  row("layer_norm", kernel<norm<true>>, supports<0, 3>);
  row("rms_norm", kernel<norm<false>>, supports<0, 2>);
  row("layer_norm_grad", kernel<layer_norm_grad>, supports<1, 3>);
}

}  // namespace backplane::cuda

// layer_norm, its gradient and rms_norm over a tensor's last axes; over others they are composed
// (shaders/layer_norm.comp).
#include <algorithm>
#include <bit>

#include "kernels/kernels.hpp"

namespace backplane::vulkan {
namespace {

enum Function : uint8_t { kLayerNorm, kGradient, kRootMeanSquare };  // as in the shader

struct Lines {
  Operand out, x, weight, last;  // last: the bias or, of the gradient, the cotangent
  size_t axes;                   // x's last ones
  double eps;
};

Operand optional(const Call& call, size_t arg) { return call.has(arg) ? call.input(arg) : Operand{}; }

void record(const Call& call, Function function, const Lines& of) {
  if (of.out.count() == 0) return;
  int64_t length = 1;
  for (size_t d = of.x.shape.size() - of.axes; d < of.x.shape.size(); ++d) length *= of.x.shape[d];
  const int64_t lines = of.x.count() / length;
  // On the processor barriers are dear, and neighbours need not read neighbours.
  const bool software = call.stream().device().is_software();
  const bool alone = software ? lines >= 16 || length <= 64 : length <= 32;
  const uint64_t addresses = of.out.data | of.x.data | of.weight.data | of.last.data;
  const bool pairs = of.x.dtype == BP_FLOAT32 && addresses % 8 == 0 && length % 2 == 0;
  const bool biased = function == kLayerNorm && of.last.data != 0;
  const auto bits = std::bit_cast<uint64_t>(of.eps);
  const auto n = [](int64_t value) { return static_cast<uint32_t>(value); };
  Push push = call.push();
  push.at = {of.out.data, of.x.data, of.weight.data, of.last.data};
  push.n = {
      n(lines), n(length),
      of.x.dtype == BP_FLOAT64 ? static_cast<uint32_t>(bits) : std::bit_cast<uint32_t>(static_cast<float>(of.eps)),
      static_cast<uint32_t>(bits >> 32)};
  const int option = (alone ? 0 : 1) | (pairs ? 2 : 0) | (of.weight.data ? 4 : 0) | (biased ? 8 : 0);
  const Shader shader{
      module_of(Module::layer_norm_float32, class_of(of.x.dtype)),
      {function, static_cast<uint8_t>(of.x.dtype), static_cast<uint8_t>(of.out.dtype), static_cast<uint8_t>(option)}};
  const uint32_t groups = alone ? groups_for(lines) : n(std::min<int64_t>(lines, kMaxGroups));
  call.dispatch(shader, push, groups, {of.out.range()}, {of.x.range(), of.weight.range(), of.last.range()});
}

// layer_norm(x, weight?, bias?, *, axis, eps)
void layer_norm(const Call& call) {
  record(call, kLayerNorm,
         {.out = call.output(0),
          .x = call.input(0),
          .weight = optional(call, 1),
          .last = optional(call, 2),
          .axes = call.integers(3).size(),
          .eps = plugin::as_double(call.value(4))});
}

// layer_norm_grad(cotangent, x, weight?, *, axis, eps)
void layer_norm_grad(const Call& call) {
  record(call, kGradient,
         {.out = call.output(0),
          .x = call.input(1),
          .weight = optional(call, 2),
          .last = call.input(0),
          .axes = call.integers(3).size(),
          .eps = plugin::as_double(call.value(4))});
}

// rms_norm(x, weight?, *, axis, eps)
void rms_norm(const Call& call) {
  record(call, kRootMeanSquare,
         {.out = call.output(0),
          .x = call.input(0),
          .weight = optional(call, 1),
          .last = {},
          .axes = call.integers(2).size(),
          .eps = plugin::as_double(call.value(3))});
}

bool are_last(const bp_tensor& x, std::span<const int64_t> axes) {
  uint64_t chosen = 0;
  for (const int64_t axis : axes) chosen |= uint64_t{1} << axis;
  const auto rank = static_cast<size_t>(x.dl.ndim), count = axes.size();
  return count > 0 && count <= rank && std::popcount(chosen) == static_cast<int>(count) &&
         chosen >> (rank - count) == (uint64_t{1} << count) - 1;
}

bool has_shape_of(const bp_value& row, const bp_tensor& x, size_t axes) {
  if (row.tag != BP_TAG_TENSOR) return row.tag == BP_TAG_ABSENT;
  return row.u.t->dl.ndim == static_cast<int32_t>(axes) &&
         std::equal(row.u.t->dl.shape, row.u.t->dl.shape + axes, x.dl.shape + x.dl.ndim - axes);
}

// kX: the argument x; between it and the axes, argument kAxes, stands what scales and moves a line.
template <int32_t kX, int32_t kAxes>
bp_status BP_CALL supports(const bp_frame* frame, const bp_value* args, int32_t, bp_value*, int32_t) {
  const std::span<const int64_t> axes(args[kAxes].u.ints, args[kAxes].count);
  bool fits = args[0].tag == BP_TAG_TENSOR && args[kX].tag == BP_TAG_TENSOR && are_last(*args[kX].u.t, axes);
  for (int32_t k = kX + 1; fits && k < kAxes; ++k) fits = has_shape_of(args[k], *args[kX].u.t, axes.size());
  if (fits) return BP_OK;
  frame->host->set_error(BP_ERROR_NOT_IMPLEMENTED, "takes the last axes, with weight and bias of their shape");
  return BP_ERROR_NOT_IMPLEMENTED;
}

constexpr Row kRows[] = {
    {"bp::layer_norm", kernel<layer_norm>, BP_MASK_FLOATING, 0, supports<0, 3>},
    {"bp::layer_norm_grad", kernel<layer_norm_grad>, BP_MASK_FLOATING, 0, supports<1, 3>},
    {"bp::rms_norm", kernel<rms_norm>, BP_MASK_FLOATING, 0, supports<0, 2>},
};

}  // namespace

void register_layer_norm(const plugin::Registrar& registrar, Backend&) { register_rows(registrar, kRows, __FILE__); }

}  // namespace backplane::vulkan

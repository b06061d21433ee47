// batch_norm, its gradient and batch_norm_inference: the moments of each channel in parts that are joined, from them a
// few factors per channel, and one pass that applies those (shaders/moments.comp, norm_factors.comp, norm.comp).
#include <algorithm>
#include <bit>

#include "kernels/kernels.hpp"

namespace backplane::vulkan {
namespace {

enum Pass : uint8_t { kForward, kGradient, kGiven };  // as in norm_factors.comp
constexpr uint8_t kJoin = 2;                          // of moments.comp
constexpr int64_t kMoments = 5, kFactors = 4;         // numbers of a part, of a channel

constexpr uint32_t n(int64_t value) { return static_cast<uint32_t>(value); }
uint32_t low(uint64_t address) { return static_cast<uint32_t>(address); }
uint32_t high(uint64_t address) { return static_cast<uint32_t>(address >> 32); }

struct Image {
  int64_t pieces, channels, rest = 1;
  explicit Image(const Operand& x) : pieces(x.shape[0]), channels(x.shape[1]) {
    for (size_t d = 2; d < x.shape.size(); ++d) rest *= x.shape[d];
  }
};

Shader shader_of(Module first, bp_dtype in, bp_dtype out, uint8_t function, bool by_rows = false) {
  return {module_of(first, class_of(in)),
          {function, static_cast<uint8_t>(in), static_cast<uint8_t>(out), static_cast<uint8_t>(by_rows ? 1 : 0)}};
}

constexpr int64_t kJoined = 64;  // parts, by one invocation

// Does an invocation take whole rows of rest, pair by pair?
bool by_rows(const Call& call, const Image& image, const Operand& x, const Operand& g, const Operand& out) {
  const bool words = x.dtype == BP_FLOAT32 && (x.data | g.data | out.data) % 8 == 0;
  return call.stream().device().is_software() && words && image.rest % 2 == 0 && image.rest <= 4096;
}

// Parts of a channel: enough invocations for the device, elements enough for each, and few enough to be joined by one.
int64_t parts_of(const Image& image, bool rows) {
  constexpr int64_t kInvocations = 16384, kLeast = 16;
  const int64_t elements = image.pieces * image.rest;
  const int64_t wanted = std::min(kInvocations / image.channels, elements / kLeast);
  return std::clamp<int64_t>(wanted, 1, rows ? std::min(image.pieces, kJoined) : kJoined * kJoined);
}

// A few parts per channel, along the second axis. Without a cotangent `g` is of no elements.
Operand record_moments(const Call& call, const Image& image, const Operand& x, const Operand& g) {
  const bp_dtype dtype = partial_dtype(x.dtype);
  const bool rows = by_rows(call, image, x, g, {});
  int64_t parts = parts_of(image, rows);
  Operand moments = call.scratch(dtype, {image.channels, parts, kMoments});
  Push push = call.push();
  push.at = {moments.data, x.data, g.data};
  push.n = {n(image.pieces), n(image.channels), n(image.rest), n(parts)};
  divide_by(image.rest, push.n.data() + 4);
  call.dispatch(shader_of(Module::moments_float32, x.dtype, dtype, g.data ? 1 : 0, rows), push,
                groups_for(image.channels * parts), {moments.range()}, {x.range(), g.range()});
  while (parts > kJoined) {
    const int64_t fewer = (parts + kJoined - 1) / kJoined;
    const Operand joined = call.scratch(dtype, {image.channels, fewer, kMoments});
    push.at = {joined.data, moments.data};
    push.n = {0, n(image.channels), 0, n(fewer), n(parts)};
    call.dispatch(shader_of(Module::moments_float32, x.dtype, dtype, kJoin), push, groups_for(image.channels * fewer),
                  {joined.range()}, {moments.range()});
    moments = joined;
    parts = fewer;
  }
  return moments;
}

// What a channel's factors are made of, and the results that are of one element per channel.
struct PerChannel {
  Operand source, variances;  // moments, or given means and variances
  Operand weight, bias;
  Operand first, second;  // results
};

Operand optional(const Call& call, size_t arg) { return call.has(arg) ? call.input(arg) : Operand{}; }
Operand optional_output(const Call& call, size_t result) {
  return call.wants(result) ? call.output(result) : Operand{};
}

Operand record_factors(const Call& call, Pass pass, const Image& image, bp_dtype dtype, double eps,
                       const PerChannel& of) {
  const Operand factors = call.scratch(partial_dtype(dtype), {image.channels, kFactors});
  const bool doubles = dtype == BP_FLOAT64;
  const auto bits = std::bit_cast<uint64_t>(eps);
  const uint64_t second = pass == kGiven ? of.variances.data : of.second.data;
  Push push = call.push();
  push.at = {factors.data, of.source.data, of.weight.data, of.bias.data};
  push.dims = of.first.data;
  const int64_t parts = pass == kGiven ? 0 : of.source.shape[1];
  push.n = {n(image.channels), n(parts),    doubles ? low(bits) : std::bit_cast<uint32_t>(static_cast<float>(eps)),
            high(bits),        low(second), high(second)};
  call.stream().dispatch(shader_of(Module::norm_factors_float32, dtype, dtype, pass), push, groups_for(image.channels),
                         std::array{factors.range(), of.first.range(), of.second.range()},
                         std::array{of.source.range(), of.variances.range(), of.weight.range(), of.bias.range()});
  return factors;
}

void record_norm(const Call& call, const Image& image, const Operand& out, const Operand& x, const Operand& factors,
                 const Operand& g) {
  if (out.count() == 0) return;
  const bool rows = by_rows(call, image, x, g, out);
  const int64_t invocations = rows ? image.pieces * image.channels : x.count();
  Push push = call.push();
  push.at = {out.data, x.data, factors.data, g.data};
  push.n = {n(invocations), 0, 0, n(image.channels), 0, 0, n(image.rest)};
  divide_by(image.rest, push.n.data() + 1);
  divide_by(image.channels, push.n.data() + 4);
  call.dispatch(shader_of(Module::norm_float32, x.dtype, out.dtype, g.data ? 1 : 0, rows), push,
                groups_for(invocations), {out.range()}, {x.range(), factors.range(), g.range()});
}

// batch_norm(x, weight?, bias?, *, eps) -> (y, mean, var)
void batch_norm(const Call& call) {
  const Operand x = call.input(0);
  const Image image(x);
  const Operand moments = record_moments(call, image, x, {});
  const Operand factors = record_factors(call, kForward, image, x.dtype, plugin::as_double(call.value(3)),
                                         {.source = moments,
                                          .variances = {},
                                          .weight = optional(call, 1),
                                          .bias = optional(call, 2),
                                          .first = optional_output(call, 1),
                                          .second = optional_output(call, 2)});
  record_norm(call, image, optional_output(call, 0), x, factors, {});
}

// batch_norm_grad(cotangent, x, weight?, *, eps) -> (x_grad, weight_grad, bias_grad)
void batch_norm_grad(const Call& call) {
  const Operand g = call.input(0), x = call.input(1);
  const Image image(x);
  const Operand moments = record_moments(call, image, x, g);
  const Operand factors = record_factors(call, kGradient, image, x.dtype, plugin::as_double(call.value(3)),
                                         {.source = moments,
                                          .variances = {},
                                          .weight = optional(call, 2),
                                          .bias = {},
                                          .first = optional_output(call, 1),
                                          .second = optional_output(call, 2)});
  record_norm(call, image, optional_output(call, 0), x, factors, g);
}

// batch_norm_inference(x, mean, var, weight?, bias?, *, eps)
void batch_norm_inference(const Call& call) {
  const Operand x = call.input(0);
  const Image image(x);
  const Operand factors = record_factors(call, kGiven, image, x.dtype, plugin::as_double(call.value(5)),
                                         {.source = call.input(1),
                                          .variances = call.input(2),
                                          .weight = optional(call, 3),
                                          .bias = optional(call, 4),
                                          .first = {},
                                          .second = {}});
  record_norm(call, image, call.output(0), x, factors, {});
}

bool is_per_channel(const bp_value& value, const bp_tensor& x) {
  return value.tag == BP_TAG_ABSENT || (value.tag == BP_TAG_TENSOR && value.u.t->dl.ndim == 1 &&
                                        value.u.t->dl.shape[0] == x.dl.shape[1] && value.u.t->dtype == x.dtype);
}

// kX: the argument x; before it a cotangent, behind it the operands with one element per channel.
template <int32_t kX, int32_t kEnd>
bp_status BP_CALL supports(const bp_frame* frame, const bp_value* args, int32_t, bp_value*, int32_t) {
  bool fits = args[kX].tag == BP_TAG_TENSOR && args[kX].u.t->dl.ndim >= 2 && args[kX].u.t->nbytes > 0;
  for (int32_t i = kX + 1; fits && i < kEnd; ++i) fits = is_per_channel(args[i], *args[kX].u.t);
  if (fits && kX == 1) {
    const bp_tensor &x = *args[1].u.t, *g = args[0].tag == BP_TAG_TENSOR ? args[0].u.t : nullptr;
    fits = g && g->dl.ndim == x.dl.ndim && g->dtype == x.dtype &&
           std::equal(g->dl.shape, g->dl.shape + g->dl.ndim, x.dl.shape);
  }
  if (fits) return BP_OK;
  frame->host->set_error(
      BP_ERROR_NOT_IMPLEMENTED,
      "takes x (n, c, *) that is not empty, and operands with one element per channel, of one dtype");
  return BP_ERROR_NOT_IMPLEMENTED;
}

constexpr Row kRows[] = {
    {"bp::batch_norm", kernel<batch_norm>, BP_MASK_FLOATING, 0, supports<0, 3>},
    {"bp::batch_norm_grad", kernel<batch_norm_grad>, BP_MASK_FLOATING, 0, supports<1, 3>},
    {"bp::batch_norm_inference", kernel<batch_norm_inference>, BP_MASK_FLOATING, 0, supports<0, 5>},
};

}  // namespace

void register_norm(const plugin::Registrar& registrar, Backend&) { register_rows(registrar, kRows, __FILE__); }

}  // namespace backplane::vulkan

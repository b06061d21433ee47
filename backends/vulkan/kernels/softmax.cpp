// softmax and log_softmax along one axis of a contiguous tensor; along several they are composed
// (shaders/softmax.comp).
#include "kernels/kernels.hpp"

namespace backplane::vulkan {
namespace {

enum Function : uint8_t { kSoftmax, kLogarithm };  // as in the shader

template <Function kFunction>
void softmax(const Call& call) {
  const Operand x = call.input(0), out = call.output(0);
  if (out.count() == 0) return;
  const auto axis = static_cast<size_t>(call.integers(1)[0]);
  int64_t inner = 1;
  for (size_t d = axis + 1; d < x.shape.size(); ++d) inner *= x.shape[d];
  const int64_t length = x.shape[axis], lines = x.count() / length;
  // One invocation per line. Software drivers leave a coroutine at each barrier, which long lines alone are worth.
  const bool software = call.stream().device().is_software();
  const bool alone = lines >= 1024 || length <= 64 || (software && lines >= 16 && length <= 2048);
  const auto n = [](int64_t value) { return static_cast<uint32_t>(value); };
  Push push = call.push();
  push.at = {out.data, x.data};
  push.n = {n(lines), n(length), n(inner)};
  divide_by(inner, push.n.data() + 3);
  const Shader shader{
      module_of(Module::softmax_float32, class_of(x.dtype)),
      {kFunction, static_cast<uint8_t>(x.dtype), static_cast<uint8_t>(out.dtype), static_cast<uint8_t>(alone ? 0 : 1)}};
  const uint32_t groups = alone ? groups_for(lines) : n(std::min<int64_t>(lines, kMaxGroups));
  call.dispatch(shader, push, groups, {out.range()}, {x.range()});
}

bp_status BP_CALL supports(const bp_frame* frame, const bp_value* args, int32_t, bp_value*, int32_t) {
  const bool floating =
      args[0].tag == BP_TAG_TENSOR && (BP_MASK_FLOATING & BP_DTYPE_BIT(args[0].u.t->dtype)) && args[0].u.t->dl.ndim > 0;
  if (floating && args[1].tag == BP_TAG_INT_LIST && args[1].count == 1) return BP_OK;
  frame->host->set_error(BP_ERROR_NOT_IMPLEMENTED, "takes one axis of a floating tensor");
  return BP_ERROR_NOT_IMPLEMENTED;
}

constexpr Row kRows[] = {
    {"bp::softmax", kernel<softmax<kSoftmax>>, BP_MASK_FLOATING, 0, supports},
    {"bp::log_softmax", kernel<softmax<kLogarithm>>, BP_MASK_FLOATING, 0, supports},
};

}  // namespace

void register_softmax(const plugin::Registrar& registrar, Backend&) { register_rows(registrar, kRows, __FILE__); }

}  // namespace backplane::vulkan

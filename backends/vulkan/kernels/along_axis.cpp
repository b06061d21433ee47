// take_along_axis and put_along_axis where nothing broadcasts; else they are composed (shaders/along_axis.comp).
#include "kernels/kernels.hpp"

namespace backplane::vulkan {
namespace {

enum Function : uint8_t { kTake, kPut, kAdd };  // as in the shader

void record(const Call& call, Function function, const Operand& out, const Operand& other, const Operand& indices,
            size_t axis) {
  int64_t outer = 1, inner = 1;
  for (size_t d = 0; d < indices.shape.size(); ++d) (d < axis ? outer : inner) *= d == axis ? 1 : indices.shape[d];
  const int64_t taken = indices.shape[axis], length = (function == kTake ? other : out).shape[axis];
  const int64_t invocations = function == kTake ? indices.count() : outer * inner;
  const auto n = [](int64_t value) { return static_cast<uint32_t>(value); };
  Push push = call.push();
  push.at = {out.data, other.data, indices.data};
  push.n = {n(invocations), n(length), n(taken), n(inner), 0, 0, 0, 0, n(static_cast<int64_t>(axis))};
  divide_by(inner, push.n.data() + 4);
  divide_by(taken, push.n.data() + 6);
  const Shader shader{module_of(Module::along_axis_float32, class_of(out.dtype)),
                      {function, static_cast<uint8_t>(out.dtype), static_cast<uint8_t>(indices.dtype), 0}};
  call.stream().dispatch(shader, push, groups_for(invocations), std::array{out.range()},
                         std::array{other.range(), indices.range(), function == kTake ? Range{} : out.range()});
}

void take_along_axis(const Call& call) {
  const Operand out = call.output(0), x = call.input(0);
  const int64_t axis = call.integer(2);
  if (x.count() == 0) return record_check(call, *call.value(1).u.t, static_cast<int32_t>(axis), 0);
  if (out.count() > 0) record(call, kTake, out, x, call.input(1), static_cast<size_t>(axis));
}

void put_along_axis(const Call& call) {
  const Operand out = call.output(0), indices = call.input(1);
  const int64_t axis = call.integer(3);
  if (out.count() == 0) return record_check(call, *call.value(1).u.t, static_cast<int32_t>(axis), 0);
  record_move(call, out, call.input(0));
  if (indices.count() > 0)
    record(call, call.flag(4) ? kAdd : kPut, out, call.input(2), indices, static_cast<size_t>(axis));
}

bp_status declined(const bp_frame* frame, const char* reason) {
  frame->host->set_error(BP_ERROR_NOT_IMPLEMENTED, reason);
  return BP_ERROR_NOT_IMPLEMENTED;
}

bool same_but(const bp_tensor& x, const bp_tensor& y, int64_t axis) {
  bool same = x.dl.ndim == y.dl.ndim && x.dl.ndim > 0;
  for (int32_t d = 0; same && d < x.dl.ndim; ++d) same = d == axis || x.dl.shape[d] == y.dl.shape[d];
  return same;
}

bp_status BP_CALL supports_take(const bp_frame* frame, const bp_value* args, int32_t, bp_value*, int32_t) {
  const bool tensors = args[0].tag == BP_TAG_TENSOR && args[1].tag == BP_TAG_TENSOR;
  if (tensors && args[1].u.t->dtype != BP_UINT64 && same_but(*args[0].u.t, *args[1].u.t, args[2].u.i)) return BP_OK;
  return declined(frame, "takes indices of the shape of x but for the axis, of any integers but uint64");
}

// One invocation goes along a line, so lines are short or many.
bp_status BP_CALL supports_put(const bp_frame* frame, const bp_value* args, int32_t, bp_value*, int32_t) {
  const bool tensors = args[0].tag == BP_TAG_TENSOR && args[1].tag == BP_TAG_TENSOR && args[2].tag == BP_TAG_TENSOR;
  if (tensors) {
    const bp_tensor &x = *args[0].u.t, &indices = *args[1].u.t, &values = *args[2].u.t;
    const int64_t axis = args[3].u.i;
    const bool fits = indices.dtype != BP_UINT64 && values.dtype == x.dtype && same_but(x, indices, axis) &&
                      same_but(values, indices, -1);
    if (fits && (indices.dl.shape[axis] <= 1024 || x.dl.shape[axis] == 0)) return BP_OK;
  }
  return declined(frame,
                  "takes indices of the shape of x but for the axis, at most 1024 along it, any integers but "
                  "uint64, and values of their shape and the dtype of x");
}

constexpr Row kRows[] = {
    {"bp::take_along_axis", kernel<take_along_axis>, BP_MASK_ANY, 0, supports_take},
    {"bp::put_along_axis", kernel<put_along_axis>, BP_MASK_ANY, 0, supports_put},
};

}  // namespace

void register_along_axis(const plugin::Registrar& registrar, Backend&) { register_rows(registrar, kRows, __FILE__); }

}  // namespace backplane::vulkan

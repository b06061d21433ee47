// See dnn_plan.hpp.
#ifdef BACKPLANE_ONEDNN

#include "kernels/nn/dnn_plan.hpp"

#include <array>
#include <map>
#include <string_view>

namespace backplane::cpu {
namespace {

using dnnl::memory;

// Plans kept by a thread: more shapes than a network has. A plan's code is some 20 KB.
constexpr size_t kKept = 256;

using Key = std::array<int64_t, 22>;

Key key_of(const Problem& p) {
  const Windows& v = p.c.windows;
  return {static_cast<int64_t>(p.pass),
          p.winograd,
          p.c.images,
          p.c.groups,
          p.c.channels,
          p.c.filters,
          p.whole.images,
          p.whole.groups,
          p.whole.channels,
          p.whole.filters,
          v.height,
          v.width,
          v.out_height,
          v.out_width,
          v.kernel[0],
          v.kernel[1],
          v.stride[0],
          v.stride[1],
          v.padding[0],
          v.padding[1],
          v.dilation[0],
          v.dilation[1]};
}

// A dense tensor whose first axes are cut out of a larger one. `outer`: the sizes of the larger one within an item.
memory::desc plain_desc(const memory::dims& shape, const memory::dims& outer) {
  memory::dims strides(shape.size());
  int64_t stride = 1;
  for (size_t d = shape.size(); d-- > 0;) {
    strides[d] = stride;
    stride *= outer[d];
  }
  return {shape, memory::data_type::f32, strides};
}

memory::desc any_desc(const memory::dims& shape) { return {shape, memory::data_type::f32, memory::format_tag::any}; }

// oneDNN 2 describes an operation before it looks for a kernel; 3 does both at once.
template <class Op, class... Hint>
typename Op::primitive_desc find(dnnl::algorithm algorithm, const memory::desc& x, const memory::desc& w,
                                 const memory::desc& y, const Windows& v, const Hint&... hint) {
  const memory::dims stride{v.stride[0], v.stride[1]}, dilation{v.dilation[0] - 1, v.dilation[1] - 1};
  const memory::dims padding{v.padding[0], v.padding[1]};
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
#if DNNL_VERSION_MAJOR >= 3
  if constexpr (sizeof...(Hint) == 0)
    return {dnn_engine(), dnnl::prop_kind::forward_training, algorithm, x, w, y, stride, dilation, padding, padding,
            attributes};
  else
    return {dnn_engine(), algorithm, x, w, y, stride, dilation, padding, padding, hint..., attributes};
#else
  if constexpr (sizeof...(Hint) == 0)
    return {
        typename Op::desc(dnnl::prop_kind::forward_training, algorithm, x, w, y, stride, dilation, padding, padding),
        attributes, dnn_engine()};
  else
    return {typename Op::desc(algorithm, x, w, y, stride, dilation, padding, padding), attributes, dnn_engine(),
            hint...};
#endif
}

// Not the reference loops, which are slower than our own ways.
template <class Description>
bool compiled(const Description& description) {
  return std::string_view(description.impl_info_str()).substr(0, 3) != "ref";
}

struct Plain {
  memory::dims shape;
  memory::desc desc;
};

// The plan of a kernel that was found: its operands x, w and y by argument and wanted layout. Operand `result`
// is the output.
template <class Primitive, class Found>
std::shared_ptr<const Plan> plan_with(const Found& found, const Plain (&plain)[3], const int (&arguments)[3],
                                      const memory::desc (&wanted)[3], int result) {
  if (!compiled(found)) return {};
  Plan plan{Primitive(found), {}, found.scratchpad_desc()};
  for (int i = 0; i < 3; ++i) {
    Operand& made = plan.operands[i] = {arguments[i], plain[i].shape, plain[i].desc, wanted[i], {}};
    if (made.direct()) continue;
    const memory::desc &from = i == result ? made.wanted : made.plain, &to = i == result ? made.plain : made.wanted;
    made.reorder = dnnl::reorder(dnnl::reorder::primitive_desc(dnn_engine(), from, dnn_engine(), to));
  }
  return std::make_shared<const Plan>(std::move(plan));
}

std::shared_ptr<const Plan> make_plan(const Problem& p) {
  const Convolution &c = p.c, &whole = p.whole;
  const Windows& v = c.windows;
  const memory::dims x{c.images, c.groups * c.channels, v.height, v.width};
  const memory::dims y{c.images, c.groups * c.filters, v.out_height, v.out_width};
  memory::dims w{c.filters, c.channels, v.kernel[0], v.kernel[1]}, outer_w{0, whole.channels, w[2], w[3]};
  if (c.groups > 1) {
    w.insert(w.begin(), c.groups);
    outer_w[0] = whole.filters;
    outer_w.insert(outer_w.begin(), 0);
  }
  const Plain plain[] = {{x, plain_desc(x, {0, whole.groups * whole.channels, x[2], x[3]})},
                         {w, plain_desc(w, outer_w)},
                         {y, plain_desc(y, {0, whole.groups * whole.filters, y[2], y[3]})}};
  const auto algorithm = p.winograd ? dnnl::algorithm::convolution_winograd : dnnl::algorithm::convolution_direct;
  const memory::desc any[] = {any_desc(x), any_desc(w), any_desc(y)};
  const auto forward = find<dnnl::convolution_forward>(algorithm, any[0], any[1], any[2], v);
  if (p.pass == Pass::kForward)
    return plan_with<dnnl::convolution_forward>(forward, plain, {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST},
                                                {forward.src_desc(), forward.weights_desc(), forward.dst_desc()}, 2);
  if (p.pass == Pass::kInput) {
    const auto data = find<dnnl::convolution_backward_data>(algorithm, any[0], any[1], any[2], v, forward);
    return plan_with<dnnl::convolution_backward_data>(
        data, plain, {DNNL_ARG_DIFF_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DIFF_DST},
        {data.diff_src_desc(), data.weights_desc(), data.diff_dst_desc()}, 0);
  }
  const auto weights = find<dnnl::convolution_backward_weights>(algorithm, any[0], any[1], any[2], v, forward);
  return plan_with<dnnl::convolution_backward_weights>(
      weights, plain, {DNNL_ARG_SRC, DNNL_ARG_DIFF_WEIGHTS, DNNL_ARG_DIFF_DST},
      {weights.src_desc(), weights.diff_weights_desc(), weights.diff_dst_desc()}, 1);
}

}  // namespace

std::shared_ptr<const Plan> plan_of(const Problem& problem) {
  thread_local std::map<Key, std::shared_ptr<const Plan>> kept;
  const Key key = key_of(problem);
  auto found = kept.find(key);
  if (found == kept.end()) {
    if (kept.size() >= kKept) kept.clear();
    const DnnCall call;
    std::shared_ptr<const Plan> made;
    try {
      made = make_plan(problem);
    } catch (const dnnl::error& error) {
      // No kernel of this algorithm: the caller has other ways.
      if (error.status != dnnl_unimplemented && error.status != dnnl_invalid_arguments) throw;
    }
    found = kept.emplace(key, std::move(made)).first;
  }
  return found->second;
}

}  // namespace backplane::cpu

#endif

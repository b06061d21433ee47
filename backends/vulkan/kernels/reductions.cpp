// sum, prod, max, min, any, all over the core's loop: the result has stride 0 along the reduced axes.
//
// Many results: one invocation each. Few: one workgroup each. Where even those are too few for the device, each result
// is made in slices, which a second pass joins.
#include "kernels/kernels.hpp"

namespace backplane::vulkan {
namespace {

enum Function : uint8_t { kSum, kProd, kMax, kMin, kAny, kAll };

struct Reduction {
  Operand x;
  Sizes kept, kept_out, kept_x;  // sizes and strides of the results
  Sizes reduced, reduced_x;
  int64_t results = 1, each = 1;
};

Reduction split_loop(const Call& call, const Operand& x, const Operand& out) {
  Reduction made;
  made.x = x;
  if (x.count() == 0) {  // results of nothing, which a loop over the elements does not show
    made.results = out.count();
    made.each = 0;
    made.kept = out.shape;
    made.kept_out = out.strides;
    made.kept_x.assign(out.shape.size(), 0);
    return made;
  }
  if (!call.loop()) {  // flat: every result is of one element
    made.results = x.count();
    made.kept = {made.results};
    made.kept_out = made.kept_x = {1};
    return made;
  }
  const bp_loop& loop = *call.loop();
  const auto rank = static_cast<size_t>(loop.rank);
  const int64_t out_item = plugin::kItemSize[out.dtype], x_item = plugin::kItemSize[x.dtype];
  for (size_t d = 0; d < rank; ++d) {
    const int64_t size = loop.sizes[d], out_stride = loop.strides[d] / out_item,
                  stride = loop.strides[rank + d] / x_item;
    if (out_stride == 0) {
      made.reduced.push_back(size);
      made.reduced_x.push_back(stride);
      made.each *= size;
    } else {
      made.kept.push_back(size);
      made.kept_out.push_back(out_stride);
      made.kept_x.push_back(stride);
      made.results *= size;
    }
  }
  return made;
}

void record(const Call& call, const Reduction& r, const Operand& out, Function function, int64_t slices) {
  Rows rows;
  rows.add(r.kept, {&r.kept_out, &r.kept_x});
  const int64_t all = r.results * slices;
  const int64_t length = r.each / slices;
  // One invocation per slice. Software drivers leave a coroutine at each barrier, which long slices alone are worth.
  const bool software = call.stream().device().is_software();
  const bool alone = all >= 1024 || length <= 64 || (software && all >= 16 && length <= 2048);
  Push push = call.push();
  push.at = {out.data, r.x.data};
  push.n = {static_cast<uint32_t>(r.results), static_cast<uint32_t>(r.each), rows.rank(), 0,
            static_cast<uint32_t>(slices)};
  const std::span words(push.n);
  const bool kept_pushed = rows.into(words.subspan(14, 2));
  rows.add(r.reduced, {&r.reduced_x});
  push.n[3] = rows.rank();
  const bool reduced_pushed = rows.into(words.subspan(5, 9));
  if (!kept_pushed || !reduced_pushed) push.dims = call.stage(rows);
  const uint32_t option =
      (alone ? 0u : 1u) | (reduced_pushed ? std::max(rows.rank(), 1u) << 1 : 0u) | (kept_pushed ? 0u : 8u);
  const Shader shader{
      module_of(Module::reduce_float32, class_of(function >= kAny ? r.x.dtype : out.dtype)),
      {function, static_cast<uint8_t>(r.x.dtype), static_cast<uint8_t>(out.dtype), static_cast<uint8_t>(option)}};
  const uint32_t groups = alone ? groups_for(all) : static_cast<uint32_t>(std::min<int64_t>(all, kMaxGroups));
  call.dispatch(shader, push, groups, {out.range()}, {r.x.range()});
}

// In how many slices each result is made, so that some ten thousand invocations have work.
int64_t reduction_slices(const Reduction& r) {
  constexpr int64_t kInvocations = 16384, kLeast = 256;  // elements of a slice
  if (r.results >= kInvocations || r.each < 4 * kLeast * 4) return 1;
  const int64_t wanted = r.results >= 64 ? kInvocations / r.results : 64;
  return std::clamp<int64_t>(r.each / kLeast / 4, 1, wanted);
}

void reduce_loop(const Call& call, const Operand& x, const Operand& out, Function function) {
  Reduction r = split_loop(call, x, out);
  const int64_t slices = reduction_slices(r);
  if (slices == 1) return record(call, r, out, function, 1);
  Sizes shape = r.kept;
  shape.push_back(slices);
  const Operand partial = call.scratch(partial_dtype(out.dtype), shape);
  record(call, r, partial, function, slices);
  Reduction last = r;
  last.x = partial;
  last.kept_x = {partial.strides.begin(), partial.strides.end() - 1};
  last.reduced = {slices};
  last.reduced_x = {1};
  last.each = slices;
  record(call, last, out, function, 1);
}

// The loop's elements of x, contiguous in another dtype; made over x's own shape, so that the loop's strides no longer
// hold: the reduced axes come from the shapes.
void reduce_converted(const Call& call, const Operand& x, const Operand& out, Function function) {
  const Operand converted = call.scratch(partial_dtype(out.dtype), x.shape);
  record_cast(call, converted, x);
  Reduction r;
  r.x = converted;
  const Sizes axes = call.has(1) && call.value(1).tag == BP_TAG_INT_LIST ? call.integers(1) : Sizes{};
  const bool all = !call.has(1), keeps = out.ndim() == x.ndim();
  size_t at = 0;
  for (size_t d = 0; d < x.shape.size(); ++d) {
    const bool reduced = all || std::find(axes.begin(), axes.end(), static_cast<int64_t>(d)) != axes.end();
    (reduced ? r.reduced : r.kept).push_back(x.shape[d]);
    (reduced ? r.reduced_x : r.kept_x).push_back(converted.strides[d]);
    (reduced ? r.each : r.results) *= x.shape[d];
    if (!reduced) r.kept_out.push_back(out.strides[at]);
    at += !reduced || keeps;
  }
  record(call, r, out, function, 1);
}

template <Function kFunction>
void reduce(const Call& call) {
  const Operand x = call.input(0), out = call.output(0);
  constexpr bool kChooses = kFunction == kMax || kFunction == kMin;
  BP_CHECK(!kChooses || out.count() == 0 || x.count() > 0, VALUE, call.op_name(),
           ": found no elements to choose from; expected at least one along the reduced axes");
  if (out.count() == 0) return;
  if ((kFunction == kSum || kFunction == kProd) && class_of(x.dtype) != class_of(out.dtype))
    return reduce_converted(call, x, out, kFunction);
  reduce_loop(call, x, out, kFunction);
}

constexpr bp_dtype_mask kOrdered = BP_MASK_FLOATING | BP_MASK_INTEGER | BP_MASK_BOOL;
constexpr Row kRows[] = {
    {"bp::sum", kernel<reduce<kSum>>, BP_MASK_ANY, BP_KERNEL_LOOP},
    {"bp::prod", kernel<reduce<kProd>>, BP_MASK_ANY, BP_KERNEL_LOOP},
    {"bp::max", kernel<reduce<kMax>>, kOrdered, BP_KERNEL_LOOP},
    {"bp::min", kernel<reduce<kMin>>, kOrdered, BP_KERNEL_LOOP},
    {"bp::any", kernel<reduce<kAny>>, BP_MASK_ANY, BP_KERNEL_LOOP},
    {"bp::all", kernel<reduce<kAll>>, BP_MASK_ANY, BP_KERNEL_LOOP},
};

}  // namespace

bp_dtype partial_dtype(bp_dtype dtype) {
  constexpr bp_dtype kDtypes[] = {BP_FLOAT32, BP_FLOAT64, BP_INT64, BP_COMPLEX64, BP_COMPLEX128};
  return dtype == BP_UINT64 || dtype == BP_BOOL ? dtype : kDtypes[static_cast<size_t>(class_of(dtype))];
}

void record_sum(const Call& call, const Operand& to, const Operand& from) {
  Reduction r;
  r.x = from;
  r.kept = {r.results = to.count()};
  r.kept_out = r.kept_x = {1};
  r.reduced = {r.each = from.shape[0]};
  r.reduced_x = {to.count()};
  record(call, r, to, kSum, 1);
}

void register_reductions(const plugin::Registrar& registrar, Backend&) { register_rows(registrar, kRows, __FILE__); }

}  // namespace backplane::vulkan

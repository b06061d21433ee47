// index and index_put: advanced indexing by integer tensors, one per leading axis, in the host's loop over selected
// elements.
//
// The joint positions become element offsets first; writes to one offset happen in order. An index out of
// range is a data error of the recorded work.
#include "backplane/plugin/indexing.hpp"

#include "kernels/kernels.hpp"

namespace backplane::vulkan {
namespace {

using plugin::IndexPlan;

IndexPlan plan_of(const Call& call) {
  const bp_value& list = call.value(1);
  return {*call.loop(), {list.u.tensors, list.count}};
}

// The host counts strides in bytes.
Sizes in_elements(Sizes strides, bp_dtype dtype) {
  for (int64_t& stride : strides) stride /= plugin::kItemSize[dtype];
  return strides;
}

// Offsets of the joint positions in the indexed tensor, whose elements are of `dtype`.
Operand record_positions(const Call& call, const IndexPlan& plan, bp_dtype dtype) {
  static constexpr int32_t kStart = 0;  // of the one position where no axis is indexed
  if (plan.indices.empty()) return contiguous(call.stage(std::as_bytes(std::span(&kStart, 1))), BP_INT32, {1});
  const Operand offsets = call.scratch(BP_INT32, {plan.joint.count()});
  bool adds = false;
  for (const IndexPlan::Index& from : plan.indices) {
    const Operand index = call.operand(*from.tensor);
    const Sizes strides = in_elements(from.strides, from.dtype), none(strides.size(), 0);
    Rows rows;
    rows.add(plan.joint.sizes, {&none, &strides});
    Push push = call.push();
    push.at = {offsets.data, index.data};
    push.dims = call.stage(rows);
    push.n = {static_cast<uint32_t>(offsets.count()),
              rows.rank(),
              static_cast<uint32_t>(from.size),
              static_cast<uint32_t>(narrow(from.stride / plugin::kItemSize[dtype], call.op_name())),
              static_cast<uint32_t>(from.axis),
              adds ? 1u : 0u};
    call.dispatch({Module::positions, {0, static_cast<uint8_t>(from.dtype), 0, 0}}, push, groups_for(offsets.count()),
                  {offsets.range()}, {index.range(), offsets.range()});
    adds = true;
  }
  return offsets;
}

// Of a call that selects nothing.
void record_checks(const Call& call, bp_dtype dtype) {
  const bp_value& list = call.value(1);
  for (const IndexPlan& check : plugin::checks_of_nothing(*call.loop(), {list.u.tensors, list.count}))
    record_positions(call, check, dtype);
}

// Rows of the joint positions (of the selection), then of the kept elements (of the selection and the indexed tensor).
Push push_over(const Call& call, const IndexPlan& plan, bp_dtype dtype) {
  const Sizes place = in_elements(plan.joint.selected, dtype), kept = in_elements(plan.kept.selected, dtype),
              indexed = in_elements(plan.kept.indexed, dtype);
  Rows rows;
  rows.add(plan.joint.sizes, {&place});
  const uint32_t joint_rank = rows.rank();
  rows.add(plan.kept.sizes, {&kept, &indexed});
  Push push = call.push();
  push.dims = call.stage(rows);
  push.n = {static_cast<uint32_t>(plan.joint.count()), static_cast<uint32_t>(plan.kept.count()), joint_rank,
            rows.rank()};
  return push;
}

void index(const Call& call) {
  const Operand out = call.output(0), x = call.input(0);
  const IndexPlan plan = plan_of(call);
  if (plan.count == 0) return record_checks(call, x.dtype);
  const Operand offsets = record_positions(call, plan, x.dtype);
  if (x.count() == 0) return;  // no position is one of its
  Push push = push_over(call, plan, x.dtype);
  push.at = {out.data, x.data, offsets.data};
  call.dispatch({Module::gather, {0, static_cast<uint8_t>(out.dtype), 0, 0}}, push, groups_for(plan.count),
                {out.range()}, {x.range(), offsets.range()});
}

// A copy of all that an operand spans, at the same strides.
Operand kept_apart(const Call& call, const Operand& operand) {
  int64_t low = 0, high = 1;
  for (size_t d = 0; d < operand.shape.size(); ++d)
    (operand.strides[d] < 0 ? low : high) += (operand.shape[d] - 1) * operand.strides[d];
  Operand made = operand;
  made.data =
      call.scratch(operand.dtype, {high - low}).data - static_cast<uint64_t>(low * plugin::kItemSize[made.dtype]);
  record_move(call, made, operand);
  return made;
}

void index_put(const Call& call) {
  const Operand out = call.output(0), x = call.input(0);
  const IndexPlan plan = plan_of(call);
  if (plan.count > 0 && out.count() == 0) {  // no position is one of its
    record_positions(call, plan, out.dtype);
    return;
  }
  Operand values = call.input(2);
  // In place, the values may be the very tensor that is written.
  if (values.data == out.data && plan.count > 0) values = kept_apart(call, values);
  if (x.data != out.data) record_move(call, out, x);
  if (plan.count == 0) return record_checks(call, out.dtype);
  const Operand offsets = record_positions(call, plan, out.dtype);
  const Operand order = call.scratch(BP_INT32, offsets.shape);
  record_sort(call, order, offsets, 0, false);
  Push push = push_over(call, plan, out.dtype);
  push.at = {out.data, values.data, offsets.data, order.data};
  const Shader shader{module_of(Module::scatter_float32, class_of(out.dtype)),
                      {0, static_cast<uint8_t>(out.dtype), 0, static_cast<uint8_t>(call.flag(3) ? 1 : 0)}};
  call.dispatch(shader, push, groups_for(plan.count), {out.range()},
                {values.range(), offsets.range(), order.range(), out.range()});
}

constexpr Row kRows[] = {
    {"bp::index", kernel<index>, BP_MASK_ANY, BP_KERNEL_LOOP},
    {"bp::index_put", kernel<index_put>, BP_MASK_ANY, BP_KERNEL_LOOP | BP_KERNEL_INPLACE},
};

}  // namespace

void record_check(const Call& call, const bp_tensor& indices, int32_t axis, int64_t size) {
  if (indices.nbytes == 0) return;
  const bp_loop_index index{.operand = 0, .axis = axis, .size = size, .stride = 0};
  record_positions(call, {index, &indices}, indices.dtype);
}

void register_indexing(const plugin::Registrar& registrar, Backend&) { register_rows(registrar, kRows, __FILE__); }

}  // namespace backplane::vulkan

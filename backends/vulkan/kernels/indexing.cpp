// index and index_put: advanced indexing by integer tensors, one per leading axis.
//
// The dimensions of the broadcast index tensors stand where the indexed axes stood if those are neighbours, and first
// otherwise (NumPy's rule). The positions become element offsets first; what is written at one offset is met in order.
// An index out of range is a data error of the recorded work.
#include "kernels/kernels.hpp"

namespace backplane::vulkan {
namespace {

struct Indexing {
  Operand x;                     // what is read or written by index
  std::vector<Operand> indices;  // an element without dtype keeps its axis
  Sizes positions;               // the shape of the broadcast index tensors
  Sizes kept, kept_x;            // sizes and strides of the axes that are kept
  size_t before = 0;             // how many kept axes come before the positions

  Indexing(Operand of, std::vector<Operand> by) : x(std::move(of)), indices(std::move(by)) {
    size_t runs = 0, first = 0;
    for (size_t axis = 0; axis < x.shape.size(); ++axis) {
      if (!indexed(axis)) {
        kept.push_back(x.shape[axis]);
        kept_x.push_back(x.strides[axis]);
        continue;
      }
      if ((axis == 0 || !indexed(axis - 1)) && runs++ == 0) first = axis;
      widen(indices[axis].shape);
    }
    before = runs > 1 ? 0 : first;
  }

  bool indexed(size_t axis) const { return axis < indices.size() && indices[axis].dtype != BP_DTYPE_NONE; }

  void widen(const Sizes& shape) {
    if (shape.size() > positions.size()) positions.insert(positions.begin(), shape.size() - positions.size(), 1);
    for (size_t d = 0; d < shape.size(); ++d)
      if (shape[d] != 1) positions[positions.size() - shape.size() + d] = shape[d];
  }

  int64_t n_positions() const { return contiguous(0, BP_INT32, positions).count(); }
  int64_t n_kept() const { return contiguous(0, BP_INT32, kept).count(); }

  Sizes picked_shape() const {
    Sizes shape = kept;
    shape.insert(shape.begin() + static_cast<ptrdiff_t>(before), positions.begin(), positions.end());
    return shape;
  }

  // The strides of a tensor of picked_shape, along the positions and along the kept axes.
  std::pair<Sizes, Sizes> split(const Sizes& strides) const {
    const auto from = strides.begin() + static_cast<ptrdiff_t>(before);
    const auto to = from + static_cast<ptrdiff_t>(positions.size());
    Sizes rest(strides.begin(), from);
    rest.insert(rest.end(), to, strides.end());
    return {Sizes(from, to), rest};
  }
};

Operand record_positions(const Call& call, const Indexing& plan) {
  const Operand offsets = call.scratch(BP_INT32, {plan.n_positions()});
  bool adds = false;
  for (size_t axis = 0; axis < plan.indices.size(); ++axis) {
    if (!plan.indexed(axis)) continue;
    const Operand& index = plan.indices[axis];
    const Sizes strides = broadcast_strides(index, plan.positions), none(plan.positions.size(), 0);
    Rows rows;
    rows.add(plan.positions, {&none, &strides});
    Push push = call.push();
    push.at = {offsets.data, index.data};
    push.dims = call.stage(rows);
    push.n = {static_cast<uint32_t>(offsets.count()),
              rows.rank(),
              static_cast<uint32_t>(plan.x.shape[axis]),
              static_cast<uint32_t>(plan.x.strides[axis]),
              static_cast<uint32_t>(axis),
              adds ? 1u : 0u};
    call.dispatch({Module::positions, {0, static_cast<uint8_t>(index.dtype), 0, 0}}, push, groups_for(offsets.count()),
                  {offsets.range()}, {index.range(), offsets.range()});
    adds = true;
  }
  return offsets;
}

Push push_over(const Call& call, const Indexing& plan, const Rows& rows, uint32_t positions_rank) {
  Push push = call.push();
  push.dims = call.stage(rows);
  push.n = {static_cast<uint32_t>(plan.n_positions()), static_cast<uint32_t>(plan.n_kept()), positions_rank,
            rows.rank()};
  return push;
}

void index(const Call& call) {
  const Operand out = call.output(0);
  if (out.count() == 0) return;
  const Indexing plan(call.input(0), call.inputs(1));
  const Operand offsets = record_positions(call, plan);
  const auto [place, kept] = plan.split(out.strides);
  Rows rows;
  rows.add(plan.positions, {&place});
  const uint32_t rank = rows.rank();
  rows.add(plan.kept, {&kept, &plan.kept_x});
  Push push = push_over(call, plan, rows, rank);
  push.at = {out.data, plan.x.data, offsets.data};
  call.dispatch({Module::gather, {0, static_cast<uint8_t>(out.dtype), 0, 0}}, push, groups_for(out.count()),
                {out.range()}, {plan.x.range(), offsets.range()});
}

void index_put(const Call& call) {
  const Operand out = call.output(0), x = call.input(0);
  if (out.count() == 0) return;
  const Indexing plan(out, call.inputs(1));
  Operand values = call.input(2);
  const Sizes shape = plan.picked_shape();
  BP_CHECK(values.shape.size() <= shape.size(), SHAPE, call.op_name(), ": values have ", values.ndim(),
           " axes, the indexed positions ", shape.size());
  if (values.data == out.data) {  // in place, the values may be the very tensor that is written
    const Operand kept = call.scratch(values.dtype, values.shape);
    record_move(call, kept, values);
    values = kept;
  }
  if (x.data != out.data) record_move(call, out, x);
  if (plan.n_positions() * plan.n_kept() == 0) return;
  const Operand offsets = record_positions(call, plan);
  const Operand order = call.scratch(BP_INT32, offsets.shape);
  record_sort(call, order, offsets, 0, false);
  const auto [place, kept] = plan.split(broadcast_strides(values, shape));
  Rows rows;
  rows.add(plan.positions, {&place});
  const uint32_t rank = rows.rank();
  rows.add(plan.kept, {&kept, &plan.kept_x});
  Push push = push_over(call, plan, rows, rank);
  push.at = {out.data, values.data, offsets.data, order.data};
  const Shader shader{module_of(Module::scatter_float32, class_of(out.dtype)),
                      {0, static_cast<uint8_t>(out.dtype), 0, static_cast<uint8_t>(call.flag(3) ? 1 : 0)}};
  call.dispatch(shader, push, groups_for(plan.n_positions() * plan.n_kept()), {out.range()},
                {values.range(), offsets.range(), order.range(), out.range()});
}

constexpr Row kRows[] = {
    {"bp::index", kernel<index>, BP_MASK_ANY, BP_KERNEL_STRIDED},
    {"bp::index_put", kernel<index_put>, BP_MASK_ANY, BP_KERNEL_STRIDED | BP_KERNEL_INPLACE},
};

}  // namespace

void register_indexing(const plugin::Registrar& registrar, Backend&) { register_rows(registrar, kRows, __FILE__); }

}  // namespace backplane::vulkan

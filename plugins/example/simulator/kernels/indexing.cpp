// index and index_put: advanced indexing by integer tensors, one per leading axis.
//
// The dimensions of the broadcast index tensors stand where the indexed axes stood if those are neighbours, and
// first otherwise (NumPy's rule). An index out of range is a data error of the recorded work.
#include "kernels.hpp"
#include "walk.hpp"

namespace sim {
namespace {

struct Indexing {
  const char* op;
  Operand x;                     // what is read or written by index
  std::vector<Operand> indices;  // an element without dtype keeps its axis
  Operand picked;                // the tensor of the indexed shape, broadcast
  std::vector<int64_t> picked_shape;

  bool indexed(size_t axis) const { return axis < indices.size() && indices[axis].dtype != BP_DTYPE_NONE; }

  std::vector<int64_t> index_shape() const {
    std::vector<int64_t> shape;
    for (const Operand& index : indices) {
      if (index.dtype == BP_DTYPE_NONE) continue;
      if (index.shape.size() > shape.size()) shape.insert(shape.begin(), index.shape.size() - shape.size(), 1);
      for (size_t d = 0; d < index.shape.size(); ++d)
        if (index.shape[d] != 1) shape[shape.size() - index.shape.size() + d] = index.shape[d];
    }
    return shape;
  }

  // How many axes of the indexed shape come before those of the index tensors.
  size_t axes_before() const {
    size_t first = 0, runs = 0;
    for (size_t axis = 0; axis < x.shape.size(); ++axis)
      if (indexed(axis) && (axis == 0 || !indexed(axis - 1)) && runs++ == 0) first = axis;
    return runs > 1 ? 0 : first;
  }

  // Adds to each position of the index shape the element offset that one axis' index asks for.
  void add_offsets(size_t axis, const std::vector<int64_t>& shape, std::vector<int64_t>& offsets) const {
    const Operand& index = indices[axis];
    const int64_t size = x.shape[axis], stride = x.strides[axis];
    dispatch_dtype<BP_MASK_INTEGER>(index.dtype, [&]<class I>() {
      const I* values = reinterpret_cast<const I*>(index.data);
      size_t position = 0;
      walk<1>(shape, {broadcast_strides(index, shape)}, [&](const auto& at) {
        const auto found = static_cast<int64_t>(values[at[0]]);
        BP_CHECK(found >= -size && found < size, DATA, op, ": found index ", found, " along axis ", axis,
                 ", expected one in [", -size, ", ", size, ")");
        offsets[position++] += (found < 0 ? found + size : found) * stride;
      });
    });
  }

  // body(offset in x, offset in picked) for every element of the indexed shape, in row-major order of the positions.
  template <class Body>
  void for_each(Body&& body) const {
    const std::vector<int64_t> shape = index_shape();
    int64_t positions = 1;
    for (const int64_t size : shape) positions *= size;
    std::vector<int64_t> offsets(static_cast<size_t>(positions), 0);
    for (size_t axis = 0; axis < indices.size(); ++axis)
      if (indexed(axis)) add_offsets(axis, shape, offsets);

    const std::vector<int64_t> strides = broadcast_strides(picked, picked_shape);
    const auto split = strides.begin() + static_cast<ptrdiff_t>(axes_before());
    const std::vector<int64_t> position_strides(split, split + static_cast<ptrdiff_t>(shape.size()));
    std::vector<int64_t> kept_strides(strides.begin(), split);
    kept_strides.insert(kept_strides.end(), split + static_cast<ptrdiff_t>(shape.size()), strides.end());
    std::vector<int64_t> kept_shape, x_strides;
    for (size_t axis = 0; axis < x.shape.size(); ++axis) {
      if (indexed(axis)) continue;
      kept_shape.push_back(x.shape[axis]);
      x_strides.push_back(x.strides[axis]);
    }
    size_t position = 0;
    walk<1>(shape, {position_strides}, [&](const auto& place) {
      const int64_t offset = offsets[position++];
      walk<2>(kept_shape, {x_strides, kept_strides}, [&](const auto& at) { body(offset + at[0], place[0] + at[1]); });
    });
  }
};

void index(const Call& call) {
  const Operand out = call.output(0);
  dispatch_width(call.compute(), [&]<class T>() {
    call.record([plan = Indexing{"bp::index", call.input(0), call.inputs(1), out, out.shape}] {
      const T* x = reinterpret_cast<const T*>(plan.x.data);
      T* picked = reinterpret_cast<T*>(plan.picked.data);
      plan.for_each([&](int64_t from, int64_t to) { picked[to] = x[from]; });
    });
  });
}

// The shape that index would give, without calling it.
std::vector<int64_t> indexed_shape(const Indexing& plan) {
  std::vector<int64_t> shape;
  for (size_t axis = 0; axis < plan.x.shape.size(); ++axis)
    if (!plan.indexed(axis)) shape.push_back(plan.x.shape[axis]);
  const std::vector<int64_t> positions = plan.index_shape();
  shape.insert(shape.begin() + static_cast<ptrdiff_t>(plan.axes_before()), positions.begin(), positions.end());
  return shape;
}

template <class T>
void record_put(const Call& call, void (*store)(T&, T)) {
  Indexing plan{"bp::index_put", call.output(0), call.inputs(1), call.input(2), {}};
  plan.picked_shape = indexed_shape(plan);
  BP_CHECK(plan.picked.shape.size() <= plan.picked_shape.size(), SHAPE, call.op_name(), ": values have ",
           plan.picked.ndim(), " axes, the indexed positions ", plan.picked_shape.size());
  call.record([recorded = std::move(plan), before = call.input(0), store] {
    Indexing plan = recorded;  // a recording runs again
    if (before.data != plan.x.data) copy_elements<T>(before, plan.x);
    std::vector<char> kept;  // in place, the values may be the very tensor that is written
    if (plan.picked.data == plan.x.data) plan.picked = copy_of<T>(plan.picked, kept);
    T* x = reinterpret_cast<T*>(plan.x.data);
    const T* values = reinterpret_cast<const T*>(plan.picked.data);
    plan.for_each([&](int64_t to, int64_t from) { store(x[to], values[from]); });
  });
}

void index_put(const Call& call) {
  if (call.has(3) && call.flag(3)) {
    dispatch_dtype<kAll>(call.compute(), [&]<class T>() {
      record_put<T>(call, [](T& element, T value) { element = wrapping_add(element, value); });
    });
  } else {
    dispatch_width(call.compute(),
                   [&]<class T>() { record_put<T>(call, [](T& element, T value) { element = value; }); });
  }
}

constexpr Row kRows[] = {
    {"bp::index", kernel<index>, kAll, BP_KERNEL_STRIDED},
    {"bp::index_put", kernel<index_put>, kAll, BP_KERNEL_STRIDED | BP_KERNEL_INPLACE},
};

}  // namespace

Table indexing_kernels() { return {__FILE__, kRows}; }

}  // namespace sim

// index and index_put: advanced indexing by integer tensors, one per leading axis.
//
// The host's loop says where everything lies; here indices are read, and checked. One out of range is a data error of
// the recorded work.
#include "kernels.hpp"
#include "walk.hpp"

namespace sim {
namespace {

using Ints = std::vector<int64_t>;

struct Indexing {
  struct Index {
    Operand positions;
    Ints strides;  // bytes, per joint dim
    int32_t axis;
    int64_t size, stride;
  };
  // Sizes, and byte strides of the indexed tensor and of what is selected from it: along the dims before the joint
  // ones, along those, and along the dims after them.
  struct Part {
    Ints sizes, indexed, selected;
  };
  const char* op;
  int64_t count;  // of all that is selected
  Part before, joint, after;
  std::vector<Index> indices;

  // `selected`: the operand of the loop that has an element for each that the indices select.
  Indexing(const Call& call, int32_t selected) : op(call.op_name()) {
    const bp_loop& loop = call.frame_loop();
    count = loop.count;
    const auto part = [&](int32_t operand, int32_t begin, int32_t end) {
      const int64_t* row = loop.strides + operand * loop.rank;
      return Ints(row + begin, row + end);
    };
    const int32_t first = loop.joint_first, end = first + loop.joint_rank;
    const auto dims = [&](int32_t from, int32_t to) {
      return Part{{loop.sizes + from, loop.sizes + to}, part(loop.indexed, from, to), part(selected, from, to)};
    };
    before = dims(0, first);
    joint = dims(first, end);
    after = dims(end, loop.rank);
    const std::vector<Operand> list = call.inputs(1);
    for (int32_t i = 0; i < loop.n_indices; ++i) {
      const bp_loop_index& index = loop.indices[i];
      indices.push_back({list[static_cast<size_t>(index.axis)], part(index.operand, first, end), index.axis, index.size,
                         index.stride});
    }
  }

  // What an index adds, for each joint position in row-major order.
  void add_offsets(const Index& index, Ints& offsets) const {
    dispatch_dtype<BP_MASK_INTEGER>(index.positions.dtype, [&]<class I>() {
      size_t at = 0;
      walk<1>(joint.sizes, {index.strides}, [&](const auto& byte) {
        const auto found = static_cast<int64_t>(*reinterpret_cast<const I*>(index.positions.data + byte[0]));
        BP_CHECK(found >= -index.size && found < index.size, DATA, op, ": found index ", found, " along axis ",
                 index.axis, ", expected one in [", -index.size, ", ", index.size, ")");
        offsets[at++] += (found < 0 ? found + index.size : found) * index.stride;
      });
    });
  }

  // body(byte in the indexed tensor, byte in the selected one) for all that is selected, in row-major order.
  template <class Body>
  void for_each(Body&& body) const {
    if (count == 0) return;
    int64_t positions = 1;
    for (const int64_t size : joint.sizes) positions *= size;
    Ints offsets(static_cast<size_t>(positions), 0);
    for (const Index& index : indices) add_offsets(index, offsets);
    walk<2>(before.sizes, {before.indexed, before.selected}, [&](const auto& outer) {
      size_t at = 0;
      walk<1>(joint.sizes, {joint.selected}, [&](const auto& place) {
        const int64_t indexed = outer[0] + offsets[at++], selected = outer[1] + place[0];
        walk<2>(after.sizes, {after.indexed, after.selected},
                [&](const auto& inner) { body(indexed + inner[0], selected + inner[1]); });
      });
    });
  }
};

void index(const Call& call) {
  dispatch_width(call.compute(), [&]<class T>() {
    call.record([plan = Indexing(call, 0), x = call.input(0).data, out = call.output(0).data] {
      plan.for_each(
          [&](int64_t from, int64_t to) { *reinterpret_cast<T*>(out + to) = *reinterpret_cast<const T*>(x + from); });
    });
  });
}

// A copy of all that a tensor spans; gives where its first element is in it.
const char* keep_bytes(const Operand& tensor, int64_t item, std::vector<char>& kept) {
  if (!tensor.data) return nullptr;
  int64_t low = 0, high = item;
  for (size_t d = 0; d < tensor.shape.size(); ++d) {
    const int64_t reach = (tensor.shape[d] - 1) * tensor.strides[d] * item;
    (reach < 0 ? low : high) += reach;
  }
  kept.assign(tensor.data + low, tensor.data + high);
  return kept.data() - low;
}

template <class T>
void record_put(const Call& call, void (*store)(T&, T)) {
  call.record([plan = Indexing(call, call.frame_loop().n_operands - 1), before = call.input(0), values = call.input(2),
               out = call.output(0), store] {
    std::vector<char> kept;  // in place, the values may be the very tensor that is written
    const char* from = values.data == out.data ? keep_bytes(values, sizeof(T), kept) : values.data;
    if (before.data != out.data) copy_elements<T>(before, out);
    plan.for_each([&](int64_t to, int64_t at) {
      store(*reinterpret_cast<T*>(out.data + to), *reinterpret_cast<const T*>(from + at));
    });
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
    {"bp::index", kernel<index>, kAll, BP_KERNEL_LOOP},
    {"bp::index_put", kernel<index_put>, kAll, BP_KERNEL_LOOP | BP_KERNEL_INPLACE},
};

}  // namespace

Table indexing_kernels() { return {__FILE__, kRows}; }

}  // namespace sim

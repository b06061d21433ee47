// index and index_put: advanced indexing by integer tensors, one per leading axis.
//
// The host's loop says where everything lies; here indices are read, and checked. One out of range is a data error of
// the recorded work.
#include "backplane/plugin/indexing.hpp"
#include "kernels.hpp"
#include "walk.hpp"

namespace sim {
namespace {

namespace plugin = backplane::plugin;

struct Indexing {
  plugin::IndexPlan plan;
  std::vector<const char*> data;  // of the plan's index tensors, as the device's threads see it
  const char* op;

  explicit Indexing(const Call& call) : plan(call.frame_loop(), call.tensors(1)), op(call.op_name()) {
    const std::vector<Operand> list = call.inputs(1);
    for (const auto& index : plan.indices) data.push_back(list[static_cast<size_t>(index.axis)].data);
  }

  // body(byte in the indexed tensor, byte in the selected one) for all that is selected.
  template <class Body>
  void for_each(Body&& body) const {
    if (plan.count == 0) return;
    std::vector<int64_t> offsets(static_cast<size_t>(plan.joint.count()), 0);
    for (size_t i = 0; i < data.size(); ++i) plugin::add_index_offsets(op, plan, plan.indices[i], data[i], offsets);
    plugin::for_each_selected(plan, offsets, body);
  }
};

void index(const Call& call) {
  dispatch_width(call.compute(), [&]<class T>() {
    call.record([plan = Indexing(call), x = call.input(0).data, out = call.output(0).data] {
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
  call.record([plan = Indexing(call), before = call.input(0), values = call.input(2), out = call.output(0), store] {
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

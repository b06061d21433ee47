// lstm_gates and gru_gates: what a recurrent cell does with the products of its inputs and weights, in one pass over a
// row of gates. Half floats are computed in float32. Operands may have any strides, and broadcast but for their last
// axis.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/nn/recurrent_gates.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include <algorithm>
#include <tuple>

#include "kernels/families.hpp"
#include "kernels/nn/attention_operands.hpp"
#include "loops/vector_math-inl.hpp"
#include "simd/chosen_table.hpp"

#ifndef BACKPLANE_CPU_RECURRENT_GATES
#define BACKPLANE_CPU_RECURRENT_GATES
namespace backplane::cpu {

// One row: gates of `size` elements each in x and y, whose biases may be absent; the state has `size` elements.
template <class T>
struct GateRow {
  const T *x, *y, *state, *bias_x, *bias_y;
  T *out, *next;  // next: lstm_gates' cell state
  int64_t size;
};
template <class T>
struct GateLoops {
  void (*lstm)(const GateRow<T>&);
  void (*gru)(const GateRow<T>&);
};
using GateTable = std::tuple<GateLoops<float>, GateLoops<double>>;

}  // namespace backplane::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace backplane::cpu {
namespace HWY_NAMESPACE {

// `count` lanes of a row from element i on.
template <class D, class T = hn::TFromD<D>>
struct Lane {
  int64_t i, count;

  hn::Vec<D> load(const T* x) const {
    const D d;
    return whole() ? hn::LoadU(d, x + i) : hn::MaskedLoad(hn::FirstN(d, static_cast<size_t>(count)), d, x + i);
  }
  void store(hn::Vec<D> v, T* x) const {
    const D d;
    if (whole()) return hn::StoreU(v, d, x + i);
    hn::BlendedStore(v, hn::FirstN(d, static_cast<size_t>(count)), d, x + i);
  }
  // x + bias at gate number `gate`.
  hn::Vec<D> biased(const T* x, const T* bias, int64_t gate) const {
    const auto v = load(x + gate);
    return bias == nullptr ? v : hn::Add(v, load(bias + gate));
  }

 private:
  bool whole() const { return count == static_cast<int64_t>(hn::Lanes(D())); }
};

template <class T, class Body>
HWY_INLINE void for_each_lane(int64_t size, Body&& body) {
  using D = hn::ScalableTag<T>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(D()));
  for (int64_t i = 0; i < size; i += lanes) body(D(), Lane<D>{i, std::min(lanes, size - i)});
}

template <class T>
void lstm_row(const GateRow<T>& r) {
  for_each_lane<T>(r.size, [&](auto d, const auto& at) HWY_ATTR {
    const auto gate = [&](int64_t k) HWY_ATTR {
      return hn::Add(at.biased(r.x, r.bias_x, k * r.size), at.biased(r.y, r.bias_y, k * r.size));
    };
    const auto kept = hn::Mul(VectorSigmoid::call(d, gate(1)), at.load(r.state));
    const auto next = hn::MulAdd(VectorSigmoid::call(d, gate(0)), VectorTanh::call(d, gate(2)), kept);
    const auto out = hn::Mul(VectorSigmoid::call(d, gate(3)), VectorTanh::call(d, next));
    if (r.next != nullptr) at.store(next, r.next);
    if (r.out != nullptr) at.store(out, r.out);
  });
}

template <class T>
void gru_row(const GateRow<T>& r) {
  for_each_lane<T>(r.size, [&](auto d, const auto& at) HWY_ATTR {
    const auto gate = [&](int64_t k) HWY_ATTR {
      return VectorSigmoid::call(d,
                                 hn::Add(at.biased(r.x, r.bias_x, k * r.size), at.biased(r.y, r.bias_y, k * r.size)));
    };
    const auto from_state = hn::Mul(gate(0), at.biased(r.y, r.bias_y, 2 * r.size));
    const auto fresh = VectorTanh::call(d, hn::Add(at.biased(r.x, r.bias_x, 2 * r.size), from_state));
    at.store(hn::MulAdd(gate(1), hn::Sub(at.load(r.state), fresh), fresh), r.out);
  });
}

void fill_gates(GateTable& t) {
  t = {GateLoops<float>{lstm_row<float>, gru_row<float>}, GateLoops<double>{lstm_row<double>, gru_row<double>}};
}

}  // namespace HWY_NAMESPACE
}  // namespace backplane::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace backplane::cpu {
HWY_EXPORT(fill_gates);

namespace {

constexpr int64_t kPieceElements = 8192;  // of the state: about 20 microseconds

template <class T>
const GateLoops<T>& gate_loops() {
  return std::get<GateLoops<T>>(chosen_table<GateTable>([](GateTable& t) { HWY_DYNAMIC_DISPATCH(fill_gates)(t); }));
}

// (x, y, state, bias_x, bias_y), each with rows along its last axis, and the rows of the results.
struct Gates {
  HeadTensor operands[5], results[2];
  std::vector<int64_t> batch;
  int64_t rows = 1, size;
};

Gates gates_of(const bp_frame* frame, const bp_value* args, const bp_value* outs, int32_t results, int64_t gates) {
  static constexpr const char* kNames[] = {"'x'", "'y'", "the state", "'bias_x'", "'bias_y'"};
  const bp_tensor* like = outs[0].tag == BP_TAG_TENSOR ? outs[0].u.t : outs[results - 1].u.t;
  const int32_t rank = like->dl.ndim - 1;
  Gates g;
  g.size = like->dl.shape[rank];
  g.batch.assign(like->dl.shape, like->dl.shape + rank);
  for (const int64_t size : g.batch) g.rows *= size;
  for (int i = 0; i < 5; ++i) {
    if (args[i].tag != BP_TAG_TENSOR) continue;
    g.operands[i] = HeadTensor(args[i].u.t, rank, 1);
    const int64_t expected = i == 2 ? g.size : gates * g.size;
    BP_CHECK(args[i].u.t->dl.ndim >= 1 && g.operands[i].rows == expected, SHAPE, frame->op->name, ": ", kNames[i],
             " has a last axis of ", g.operands[i].rows, ", expected ", expected);
  }
  for (int32_t i = 0; i < results; ++i)
    if (outs[i].tag == BP_TAG_TENSOR) g.results[i] = HeadTensor(outs[i].u.t, rank, 1);
  return g;
}

// The row where it lies, or converted into `storage`; null where the operand is absent.
template <class T>
const T* row_of(const HeadTensor& t, int64_t at, const std::vector<int64_t>& batch, T* storage) {
  if (t.data == nullptr) return nullptr;
  const char* row = t.matrix(at, batch);
  if (t.dtype == plugin::kDtypeOf<T> && t.row_stride == 1) return reinterpret_cast<const T*>(row);
  cast_row(t.dtype, row, t.row_stride * t.item, plugin::kDtypeOf<T>, reinterpret_cast<char*>(storage), sizeof(T),
           t.rows);
  return storage;
}

template <class T>
void run_rows(const Gates& g, void (*loop)(const GateRow<T>&), int64_t begin, int64_t end) {
  const Scratch<T> storage(21 * g.size);
  T* const s = storage.get();
  T* const places[] = {s, s + 4 * g.size, s + 16 * g.size, s + 8 * g.size, s + 12 * g.size};
  T* const results[] = {s + 17 * g.size, s + 18 * g.size};
  const auto direct = [](const HeadTensor& t) { return t.dtype == plugin::kDtypeOf<T> && t.row_stride == 1; };
  for (int64_t at = begin; at < end; ++at) {
    const auto operand = [&](int i) { return row_of(g.operands[i], at, g.batch, places[i]); };
    const auto result = [&](int i) {
      if (g.results[i].data == nullptr) return static_cast<T*>(nullptr);
      return direct(g.results[i]) ? reinterpret_cast<T*>(g.results[i].matrix(at, g.batch)) : results[i];
    };
    const GateRow<T> row{operand(0), operand(1), operand(2), operand(3), operand(4), result(0), result(1), g.size};
    loop(row);
    for (int i = 0; i < 2; ++i)
      if (const HeadTensor& t = g.results[i]; t.data != nullptr && !direct(t))
        cast_row(plugin::kDtypeOf<T>, reinterpret_cast<const char*>(results[i]), sizeof(T), t.dtype,
                 t.matrix(at, g.batch), t.row_stride * t.item, g.size);
  }
}

template <class Choose>
void run(const bp_frame* frame, const bp_value* args, bp_value* outs, int32_t results, int64_t gates, Choose&& choose) {
  const Gates g = gates_of(frame, args, outs, results, gates);
  if (g.rows * g.size == 0) return;
  const auto in_type = [&]<class T>() {
    const auto range = [&](int64_t begin, int64_t end) { run_rows<T>(g, choose(gate_loops<T>()), begin, end); };
    const int64_t grain = std::max<int64_t>(kPieceElements / g.size, 1);
    if (g.rows <= grain) return range(0, g.rows);
    plugin::parallel_for(frame, 0, g.rows, grain, range);
  };
  if (frame->compute == BP_FLOAT64)
    in_type.template operator()<double>();
  else
    in_type.template operator()<float>();
}

// (x, y, c, bias_x, bias_y) -> (h_next, c_next)
bp_status BP_CALL lstm_gates(const bp_frame* frame, const bp_value* args, int32_t, bp_value* outs, int32_t) {
  return plugin::guard(frame, [&] { run(frame, args, outs, 2, 4, [](const auto& loops) { return loops.lstm; }); });
}
// (x, y, h, bias_x, bias_y) -> h_next
bp_status BP_CALL gru_gates(const bp_frame* frame, const bp_value* args, int32_t, bp_value* outs, int32_t) {
  return plugin::guard(frame, [&] { run(frame, args, outs, 1, 3, [](const auto& loops) { return loops.gru; }); });
}

}  // namespace

const Family kRecurrent([](const Registrar& registrar) {
  registrar.kernel(
      BP_KERNEL("bp::lstm_gates", "cpu", lstm_gates, .dtypes = BP_MASK_FLOATING, .flags = BP_KERNEL_STRIDED));
  registrar.kernel(
      BP_KERNEL("bp::gru_gates", "cpu", gru_gates, .dtypes = BP_MASK_FLOATING, .flags = BP_KERNEL_STRIDED));
});

}  // namespace backplane::cpu
#endif

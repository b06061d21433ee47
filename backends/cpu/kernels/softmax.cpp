// softmax, log_softmax, logsumexp and cross_entropy along one axis or neighbouring ones; other axes go by
// decomposition.
//
// A lane is read into a buffer of the type that it is computed in, unless it is contiguous float32 or float64.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/softmax.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include <limits>

#include "kernels/axis_block.hpp"
#include "kernels/cast.hpp"
#include "kernels/families.hpp"
#include "kernels/vector_math-inl.hpp"
#include "runtime/scratch.hpp"

#ifndef BACKPLANE_CPU_SOFTMAX
#define BACKPLANE_CPU_SOFTMAX
namespace backplane::cpu {
// Of one lane of n >= 1 elements of the computing type; `out` may be `x`.
struct LaneFunctions {
  void (*softmax)(const void* x, void* out, int64_t n);
  void (*log_softmax)(const void* x, void* out, int64_t n);
  double (*log_sum_exp)(const void* x, int64_t n);
};
struct SoftmaxTable {
  LaneFunctions of_float, of_double;
};
}  // namespace backplane::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace backplane::cpu {
namespace HWY_NAMESPACE {

template <class T>
T largest(const T* x, int64_t n) {
  T best = x[0];
  bool nan = false;
  for (int64_t i = 0; i < n; ++i) {
    best = best > x[i] ? best : x[i];
    nan |= x[i] != x[i];
  }
  return nan ? std::numeric_limits<T>::quiet_NaN() : best;
}

// The sum of exp(x - shift), whose terms go to `terms` unless that is NULL. Blocks are added in double.
template <class T>
double exp_sum(const T* x, T shift, T* terms, int64_t n) {
  constexpr int64_t kBlock = 512;
  HWY_ALIGN T block[kBlock];
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto offset = hn::Set(d, shift);
  double total = 0;
  for (int64_t at = 0; at < n; at += kBlock) {
    const int64_t count = n - at < kBlock ? n - at : kBlock;
    T* out = terms != nullptr ? terms + at : block;
    auto sum = hn::Zero(d);
    int64_t i = 0;
    for (; i + lanes <= count; i += lanes) {
      const auto y = VectorExp::call(d, hn::Sub(hn::LoadU(d, x + at + i), offset));
      hn::StoreU(y, d, out + i);
      sum = hn::Add(sum, y);
    }
    total += static_cast<double>(hn::GetLane(hn::SumOfLanes(d, sum)));
    for (int64_t j = i; j < count; ++j) block[j] = x[at + j] - shift;
    map_contiguous<VectorExp>(block + i, out + i, count - i);
    for (; i < count; ++i) total += static_cast<double>(out[i]);
  }
  return total;
}

template <class T>
void softmax_lane(const void* from, void* to, int64_t n) {
  const T* x = static_cast<const T*>(from);
  T* out = static_cast<T*>(to);
  const T scale = static_cast<T>(1 / exp_sum(x, largest(x, n), out, n));
  for (int64_t i = 0; i < n; ++i) out[i] *= scale;
}
template <class T>
double log_sum_exp_lane(const void* from, int64_t n) {
  const T* x = static_cast<const T*>(from);
  T shift = largest(x, n);
  if (shift - shift != 0 && shift == shift) return static_cast<double>(shift);  // inf or -inf
  return static_cast<double>(shift) + std::log(exp_sum<T>(x, shift, nullptr, n));
}
template <class T>
void log_softmax_lane(const void* from, void* to, int64_t n) {
  const T* x = static_cast<const T*>(from);
  T* out = static_cast<T*>(to);
  const T shift = largest(x, n);
  const T log_sum = static_cast<T>(std::log(exp_sum<T>(x, shift, nullptr, n)));
  // Two subtractions: their sum could lose what a large shift hides.
  for (int64_t i = 0; i < n; ++i) out[i] = (x[i] - shift) - log_sum;
}

void fill_softmax(SoftmaxTable& t) {
  t.of_float = {softmax_lane<float>, log_softmax_lane<float>, log_sum_exp_lane<float>};
  t.of_double = {softmax_lane<double>, log_softmax_lane<double>, log_sum_exp_lane<double>};
}

}  // namespace HWY_NAMESPACE
}  // namespace backplane::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace backplane::cpu {
HWY_EXPORT(fill_softmax);
namespace {

using plugin::kItemSize;

const SoftmaxTable& table() {
  static const SoftmaxTable chosen = [] {
    SoftmaxTable t;
    HWY_DYNAMIC_DISPATCH(fill_softmax)(t);
    return t;
  }();
  return chosen;
}

// A lane as contiguous elements of the computing type.
struct LaneReader {
  const bp_tensor* x;
  AxisBlock block;
  bp_dtype compute;
  bool direct;

  LaneReader(const bp_tensor* tensor, const bp_value& axes)
      : x(tensor),
        block(axis_block(tensor, axes)),
        compute(tensor->dtype == BP_FLOAT64 ? BP_FLOAT64 : BP_FLOAT32),
        direct(tensor->dtype == compute && block.inner == 1) {}

  const LaneFunctions& functions() const { return compute == BP_FLOAT64 ? table().of_double : table().of_float; }
  int64_t item() const { return kItemSize[x->dtype]; }
  const char* read(int64_t lane, char* buffer) const {
    const char* at = data_of(x) + block.start(lane) * item();
    if (direct) return at;
    cast_row(x->dtype, at, block.inner * item(), compute, buffer, kItemSize[compute], block.n);
    return buffer;
  }
  void write(const char* values, const bp_tensor* out, int64_t lane) const {
    cast_row(compute, values, kItemSize[compute], out->dtype, data_of(out) + block.start(lane) * item(),
             block.inner * item(), block.n);
  }
};

// body(lane, buffer of the computing type) over all lanes.
template <class Body>
void for_each_lane(const bp_frame* frame, const LaneReader& reader, Body&& body) {
  const int64_t lanes = reader.block.lanes();
  const auto range = [&](int64_t begin, int64_t end) {
    const Scratch<char> buffer(reader.block.n * kItemSize[reader.compute]);
    for (int64_t lane = begin; lane < end; ++lane) body(lane, buffer.get());
  };
  const int64_t grain = std::max<int64_t>(kCostlyGrain / std::max<int64_t>(reader.block.n, 1), 1);
  if (lanes <= grain) return range(0, lanes);
  plugin::parallel_for(frame, 0, lanes, grain, range);
}

// softmax(Tensor x, *, Axes axis), log_softmax likewise.
template <bool Log>
bp_status BP_CALL softmax(const bp_frame* frame, const bp_value* args, int32_t, bp_value* outs, int32_t) {
  return plugin::guard(frame, [&] {
    const bp_tensor *x = plugin::as_tensor(args[0]), *out = outs[0].u.t;
    if (out->nbytes == 0) return;
    const LaneReader reader(x, args[1]);
    const auto function = Log ? reader.functions().log_softmax : reader.functions().softmax;
    for_each_lane(frame, reader, [&](int64_t lane, char* buffer) {
      const char* from = reader.read(lane, buffer);
      if (reader.direct) return function(from, data_of(out) + reader.block.start(lane) * reader.item(), reader.block.n);
      function(from, buffer, reader.block.n);
      reader.write(buffer, out, lane);
    });
  });
}

// Results of one number per lane, in lane order.
void store_lane(const bp_tensor* out, int64_t lane, double value) {
  const int64_t item = kItemSize[out->dtype];
  cast_row(BP_FLOAT64, reinterpret_cast<const char*>(&value), 0, out->dtype, data_of(out) + lane * item, item, 1);
}

// logsumexp(Tensor x, Axes? axis, *, bool keepdims)
bp_status BP_CALL logsumexp(const bp_frame* frame, const bp_value* args, int32_t, bp_value* outs, int32_t) {
  return plugin::guard(frame, [&] {
    const bp_tensor *x = plugin::as_tensor(args[0]), *out = outs[0].u.t;
    if (out->nbytes == 0) return;
    BP_CHECK(x->nbytes != 0, VALUE, frame->op->name, ": there are no elements to sum");
    const LaneReader reader(x, args[1]);
    for_each_lane(frame, reader, [&](int64_t lane, char* buffer) {
      store_lane(out, lane, reader.functions().log_sum_exp(reader.read(lane, buffer), reader.block.n));
    });
  });
}

// cross_entropy(Tensor logits, Tensor labels, *, Axis axis)
bp_status BP_CALL cross_entropy(const bp_frame* frame, const bp_value* args, int32_t, bp_value* outs, int32_t) {
  return plugin::guard(frame, [&] {
    const bp_tensor *x = plugin::as_tensor(args[0]), *labels = plugin::as_tensor(args[1]), *out = outs[0].u.t;
    if (out->nbytes == 0) return;
    const LaneReader reader(x, args[2]);
    for_each_lane(frame, reader, [&](int64_t lane, char* buffer) {
      int64_t label = 0;
      cast_row(labels->dtype, data_of(labels) + lane * kItemSize[labels->dtype], 0, BP_INT64,
               reinterpret_cast<char*>(&label), 0, 1);
      // As in the decomposition, which indexes: a negative label counts from the end.
      const int64_t at = label < 0 ? label + reader.block.n : label;
      BP_CHECK(at >= 0 && at < reader.block.n, DATA, frame->op->name, ": label ", label, " is out of range for ",
               reader.block.n, " classes");
      const char* values = reader.read(lane, buffer);
      double chosen = 0;
      cast_row(reader.compute, values + at * kItemSize[reader.compute], 0, BP_FLOAT64, reinterpret_cast<char*>(&chosen),
               0, 1);
      store_lane(out, lane, reader.functions().log_sum_exp(values, reader.block.n) - chosen);
    });
  });
}

// Declines numbers, absent axes and axes that are not neighbours.
bp_status BP_CALL supports(const bp_frame* frame, const bp_value* args, int32_t, bp_value*, int32_t) {
  const bool readable = args[0].tag == BP_TAG_TENSOR && args[1].tag != BP_TAG_ABSENT;
  if (readable && axis_block(args[0].u.t, args[1]).neighbours) return BP_OK;
  frame->host->set_error(BP_ERROR_NOT_IMPLEMENTED, "takes a tensor, along axes that are neighbours");
  return BP_ERROR_NOT_IMPLEMENTED;
}

}  // namespace

void register_softmax(const Registrar& registrar) {
  table();
  registrar.kernel(BP_KERNEL("bp::softmax", "cpu", softmax<false>, .dtypes = BP_MASK_FLOATING, .supports = supports));
  registrar.kernel(
      BP_KERNEL("bp::log_softmax", "cpu", softmax<true>, .dtypes = BP_MASK_FLOATING, .supports = supports));
  registrar.kernel(BP_KERNEL("bp::logsumexp", "cpu", logsumexp, .dtypes = BP_MASK_FLOATING, .supports = supports));
  registrar.kernel(BP_KERNEL("bp::cross_entropy", "cpu", cross_entropy, .dtypes = BP_MASK_FLOATING));
}

}  // namespace backplane::cpu
#endif

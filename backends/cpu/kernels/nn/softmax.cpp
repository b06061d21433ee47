// softmax, log_softmax, logsumexp and cross_entropy along one axis or neighbouring ones; other axes go by
// decomposition.
//
// A lane is read into a buffer of the type that it is computed in, unless it is contiguous float32 or float64.
#include <limits>

#include "kernels/families.hpp"
#include "kernels/nn/softmax_lanes.hpp"
#include "loops/axis_block.hpp"
#include "loops/cast_row.hpp"
#include "runtime/scratch.hpp"

namespace backplane::cpu {
namespace {

using plugin::kItemSize;

// Tiles of this many bytes of a strip stay in the cache over its three passes.
constexpr int64_t kTileBytes = 256 * 1024;
constexpr int64_t kBufferedRows = 65536;

// A lane as contiguous elements of the computing type.
struct LaneReader {
  const bp_tensor* x;
  AxisBlock block;
  bp_dtype compute;
  bool same_type;

  LaneReader(const bp_tensor* tensor, const bp_value& axes)
      : x(tensor),
        block(axis_block(tensor, axes)),
        compute(tensor->dtype == BP_FLOAT64 ? BP_FLOAT64 : BP_FLOAT32),
        same_type(tensor->dtype == compute) {}

  bool direct() const { return same_type && block.inner == 1; }
  int64_t item() const { return kItemSize[x->dtype]; }
  const char* read(int64_t lane, char* buffer) const {
    const char* at = data_of(x) + block.start(lane) * item();
    if (direct()) return at;
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
    const Scratch<char> buffer(reader.direct() ? 0 : reader.block.n * kItemSize[reader.compute]);
    for (int64_t lane = begin; lane < end; ++lane) body(lane, buffer.get());
  };
  const int64_t grain = std::max<int64_t>(kCostlyGrain / std::max<int64_t>(reader.block.n, 1), 1);
  if (lanes <= grain) return range(0, lanes);
  plugin::parallel_for(frame, 0, lanes, grain, range);
}

// Rows of a strip that are wanted in the cache together: all, or of more than kLongColumn, where that would leave
// narrow strips only, and rows that are a power of two apart share few places of it, kPieceRows.
int64_t cached_rows(const LaneReader& reader) {
  constexpr int64_t kLongColumn = 512, kPieceRows = 64;
  return reader.same_type && reader.block.n > kLongColumn ? kPieceRows : reader.block.n;
}
// body(first element of a strip, number of its first lane, width) over strips of lanes that lie side by side.
template <class Body>
void for_each_strip(const bp_frame* frame, const LaneReader& reader, Body&& body) {
  const AxisBlock& block = reader.block;
  const int64_t fitting = kTileBytes / (cached_rows(reader) * kItemSize[reader.compute]) / 16 * 16;
  const int64_t width = std::min(std::clamp<int64_t>(fitting, 16, kSoftmaxStrip), block.inner);
  const int64_t strips = (block.inner + width - 1) / width;
  const auto range = [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t outer = i / strips, first = i % strips * width;
      body(outer * block.n * block.inner + first, outer * block.inner + first, std::min(width, block.inner - first));
    }
  };
  const int64_t grain = std::max<int64_t>(kCostlyGrain / (block.n * width), 1);
  if (block.outer * strips <= grain) return range(0, block.outer * strips);
  plugin::parallel_for(frame, 0, block.outer * strips, grain, range);
}
// Few lanes side by side are read one by one, and so are lanes too long for a strip in a buffer.
bool by_strips(const LaneReader& reader) {
  return reader.block.inner >= 8 && (reader.same_type || reader.block.n <= kBufferedRows);
}

// body(from, to, stride) over a strip as elements of the computing type: where it lies, or in a buffer. `out` absent:
// nothing is written.
template <class T, class Body>
void with_strip(const LaneReader& reader, const bp_tensor* out, int64_t at, int64_t width, Body&& body) {
  const int64_t n = reader.block.n, stride = reader.block.inner, item = reader.item();
  if (reader.same_type) {
    T* to = out != nullptr ? reinterpret_cast<T*>(data_of(out)) + at : nullptr;
    return body(reinterpret_cast<const T*>(data_of(reader.x)) + at, to, stride);
  }
  const Scratch<T> buffer(n * width);
  const auto row = [&](int64_t i) { return reinterpret_cast<char*>(buffer.get() + i * width); };
  for (int64_t i = 0; i < n; ++i)
    cast_row(reader.x->dtype, data_of(reader.x) + (at + i * stride) * item, item, reader.compute, row(i), sizeof(T),
             width);
  body(buffer.get(), buffer.get(), width);
  for (int64_t i = 0; out != nullptr && i < n; ++i)
    cast_row(reader.compute, row(i), sizeof(T), out->dtype, data_of(out) + (at + i * stride) * item, item, width);
}

template <class Body>
void for_compute_type(bp_dtype compute, Body&& body) {
  plugin::dispatch_dtype<BP_DTYPE_BIT(BP_FLOAT32) | BP_DTYPE_BIT(BP_FLOAT64)>(compute, body);
}

// softmax(Tensor x, *, Axes axis), log_softmax(Tensor x, *, Axes axis).
template <bool Log>
bp_status BP_CALL softmax(const bp_frame* frame, const bp_value* args, int32_t, bp_value* outs, int32_t) {
  return plugin::guard(frame, [&] {
    const bp_tensor *x = plugin::as_tensor(args[0]), *out = outs[0].u.t;
    if (out->nbytes == 0) return;
    const LaneReader reader(x, args[1]);
    const AxisBlock& block = reader.block;
    for_compute_type(reader.compute, [&]<class T>() {
      const SoftmaxLoops<T>& loops = softmax_loops<T>();
      T* to = reinterpret_cast<T*>(data_of(out));
      if (by_strips(reader))
        return for_each_strip(frame, reader, [&](int64_t at, int64_t, int64_t width) {
          with_strip<T>(reader, out, at, width, [&](const T* first, T* target, int64_t stride) {
            (Log ? loops.log_softmax_strip : loops.softmax_strip)(first, target, block.n, cached_rows(reader), stride,
                                                                  width);
          });
        });
      for_each_lane(frame, reader, [&](int64_t lane, char* buffer) {
        const T* values = reinterpret_cast<const T*>(reader.read(lane, buffer));
        T* target = reader.direct() ? to + block.start(lane) : reinterpret_cast<T*>(buffer);
        (Log ? loops.log_softmax : loops.softmax)(values, target, block.n);
        if (!reader.direct()) reader.write(buffer, out, lane);
      });
    });
  });
}

// Results of one number per lane, in lane order.
template <class T>
void store_lane(const bp_tensor* out, int64_t lane, T value) {
  const int64_t item = kItemSize[out->dtype];
  if (out->dtype == plugin::kDtypeOf<T>)
    reinterpret_cast<T*>(data_of(out))[lane] = value;
  else
    cast_row(plugin::kDtypeOf<T>, reinterpret_cast<const char*>(&value), 0, out->dtype, data_of(out) + lane * item,
             item, 1);
}

template <class T>
T log_sum_exp(const T* x, int64_t n) {
  const LogSum<T> sum = softmax_loops<T>().log_sum_exp(x, n);
  return static_cast<T>(static_cast<double>(sum.shift) + sum.log);
}
// A long lane alone: pieces of fixed size, and then the same of their results.
template <class T>
T log_sum_exp_in_pieces(const bp_frame* frame, const T* x, int64_t n) {
  constexpr int64_t kPiece = 65536;
  const int64_t pieces = (n + kPiece - 1) / kPiece;
  if (pieces == 1) return log_sum_exp(x, n);
  const Scratch<T> parts(pieces);
  plugin::parallel_for(frame, 0, pieces, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      parts.get()[i] = log_sum_exp(x + i * kPiece, std::min(kPiece, n - i * kPiece));
  });
  return log_sum_exp(parts.get(), pieces);
}

// logsumexp(Tensor x, Axes? axis, *, bool keepdims)
bp_status BP_CALL logsumexp(const bp_frame* frame, const bp_value* args, int32_t, bp_value* outs, int32_t) {
  return plugin::guard(frame, [&] {
    const bp_tensor *x = plugin::as_tensor(args[0]), *out = outs[0].u.t;
    if (out->nbytes == 0) return;
    if (x->nbytes == 0) {
      for (int64_t lane = 0; lane * kItemSize[out->dtype] < static_cast<int64_t>(out->nbytes); ++lane)
        store_lane(out, lane, -std::numeric_limits<float>::infinity());
      return;
    }
    const LaneReader reader(x, args[1]);
    for_compute_type(reader.compute, [&]<class T>() {
      const SoftmaxLoops<T>& loops = softmax_loops<T>();
      if (reader.block.lanes() == 1 && reader.same_type)
        return store_lane(out, 0, log_sum_exp_in_pieces(frame, reinterpret_cast<const T*>(data_of(x)), reader.block.n));
      if (by_strips(reader))
        return for_each_strip(frame, reader, [&](int64_t at, int64_t lane, int64_t width) {
          T sums[kSoftmaxStrip];
          with_strip<T>(reader, nullptr, at, width, [&](const T* first, T*, int64_t stride) {
            loops.log_sum_exp_strip(first, sums, reader.block.n, cached_rows(reader), stride, width);
          });
          cast_row(reader.compute, reinterpret_cast<const char*>(sums), sizeof(T), out->dtype,
                   data_of(out) + lane * kItemSize[out->dtype], kItemSize[out->dtype], width);
        });
      for_each_lane(frame, reader, [&](int64_t lane, char* buffer) {
        store_lane(out, lane, log_sum_exp(reinterpret_cast<const T*>(reader.read(lane, buffer)), reader.block.n));
      });
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
      BP_CHECK(label >= 0 && label < reader.block.n, DATA, frame->op->name, ": label ", label, " is out of range for ",
               reader.block.n, " classes");
      const char* read = reader.read(lane, buffer);
      for_compute_type(reader.compute, [&]<class T>() {
        const T* values = reinterpret_cast<const T*>(read);
        const LogSum<T> sum = softmax_loops<T>().log_sum_exp(values, reader.block.n);
        store_lane(out, lane, static_cast<T>(static_cast<double>(sum.shift - values[label]) + sum.log));
      });
    });
  });
}

// Declines numbers and axes that are not neighbours.
bp_status BP_CALL supports(const bp_frame* frame, const bp_value* args, int32_t, bp_value*, int32_t) {
  const bool readable = args[0].tag == BP_TAG_TENSOR;
  if (readable && axis_block(args[0].u.t, args[1]).neighbours) return BP_OK;
  frame->host->set_error(BP_ERROR_NOT_IMPLEMENTED, "takes a tensor, along axes that are neighbours");
  return BP_ERROR_NOT_IMPLEMENTED;
}

}  // namespace

const Family kSoftmax([](const Registrar& registrar) {
  registrar.kernel(BP_KERNEL("bp::softmax", "cpu", softmax<false>, .dtypes = BP_MASK_FLOATING, .supports = supports));
  registrar.kernel(
      BP_KERNEL("bp::log_softmax", "cpu", softmax<true>, .dtypes = BP_MASK_FLOATING, .supports = supports));
  registrar.kernel(BP_KERNEL("bp::logsumexp", "cpu", logsumexp, .dtypes = BP_MASK_FLOATING, .supports = supports));
  registrar.kernel(BP_KERNEL("bp::cross_entropy", "cpu", cross_entropy, .dtypes = BP_MASK_FLOATING));
});

}  // namespace backplane::cpu

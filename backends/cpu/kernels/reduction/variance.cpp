// var and std over one axis, neighbouring ones or all; other axes go by decomposition. Half floats are computed in
// float32.
//
// Lanes run in parallel; few and long ones are cut at fixed places, so that the result does not depend on how many
// threads there are.
#include <algorithm>
#include <vector>

#include "kernels/families.hpp"
#include "kernels/reduction/moments.hpp"
#include "loops/axis_block.hpp"
#include "loops/row_reduction.hpp"
#include "runtime/scratch.hpp"

namespace backplane::cpu {
namespace {

constexpr int64_t kPieceElements = 65536;  // of a long lane that is cut
constexpr int64_t kFew = 8;                // lanes or strips that are too few to be shared out

enum class Spread { kVariance, kDeviation };

template <Spread Which, class S>
S unbiased(Moments m, double count, double correction) {
  m.variance *= count / std::max(count - correction, 0.0);
  const double found = Which == Spread::kVariance ? m.whole_variance() : m.deviation();
  return static_cast<S>(static_cast<plugin::Compute<S>>(found));
}

template <class S>
struct Call {
  const bp_frame* frame;
  AxisBlock block;
  double correction;
  const S* x;
  S* out;
  S (*unbiased)(Moments m, double count, double correction);

  void store(int64_t lane, const Moments& m) const {
    out[lane] = unbiased(m, static_cast<double>(block.n), correction);
  }
  template <class Range>
  void in_parallel(int64_t n, int64_t cost, Range&& range) const {
    const int64_t grain = std::max<int64_t>(kCheapGrain / cost, 1);
    if (n <= grain) return range(0, n);
    plugin::parallel_for(frame, 0, n, grain, range);
  }
};

template <class S>
Moments in_pieces(const Call<S>& call, const S* x) {
  const int64_t n = call.block.n, pieces = (n + kPieceElements - 1) / kPieceElements;
  std::vector<Distances> parts(static_cast<size_t>(pieces));
  const auto pass = [&](auto shift) {
    call.in_parallel(pieces, kPieceElements, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t first = i * kPieceElements;
        parts[static_cast<size_t>(i)] =
            moment_loops<S>().distances(x + first, shift, std::min(kPieceElements, n - first));
      }
    });
    Distances all{0, 0};
    for (const Distances& part : parts) all += part;
    return all;
  };
  return moments(guess_mean(x, n), static_cast<double>(n), pass, [&](auto&& f) { return exact_sum(x, n, 1, f); });
}

template <class S>
void over_rows(const Call<S>& call) {
  const AxisBlock& block = call.block;
  if (block.outer < kFew && block.n > 2 * kPieceElements) {
    for (int64_t i = 0; i < block.outer; ++i) call.store(i, in_pieces(call, call.x + i * block.n));
    return;
  }
  call.in_parallel(block.outer, block.n, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) call.store(i, row_moments(call.x + i * block.n, block.n));
  });
}

// A strip's rows are cut, and the pieces' sums added in order.
template <class S>
void strip_in_pieces(const Call<S>& call, const Strip<S>& strip, int64_t lane) {
  const int64_t rows = std::max<int64_t>(kPieceElements / strip.width, 1), pieces = (strip.n + rows - 1) / rows;
  const int64_t width = strip.width;
  const Scratch<double> parts(pieces * 2 * width);
  const auto pass = [&](const auto* shifts, double* sums, double* squares) {
    std::fill_n(parts.get(), pieces * 2 * width, 0.0);
    call.in_parallel(pieces, rows * width, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        double* part = parts.get() + i * 2 * width;
        moment_loops<S>().distances_strip(strip.x + i * rows * strip.stride, shifts, std::min(rows, strip.n - i * rows),
                                          strip.stride, width, part, part + width);
      }
    });
    for (int64_t i = 0; i < pieces; ++i)
      for (int64_t j = 0; j < width; ++j) {
        sums[j] += parts.get()[i * 2 * width + j];
        squares[j] += parts.get()[(i * 2 + 1) * width + j];
      }
  };
  strip_moments(strip, pass, [&](int64_t j, const Moments& m) { call.store(lane + j, m); });
}

template <class S>
void over_strips(const Call<S>& call) {
  const AxisBlock& block = call.block;
  const int64_t width = std::min(kMomentStrip, block.inner), strips = (block.inner + width - 1) / width;
  const auto strip_at = [&](int64_t i) {
    const int64_t first = i % strips * width;
    return Strip<S>{call.x + i / strips * block.n * block.inner + first, block.n, block.inner,
                    std::min(width, block.inner - first)};
  };
  const auto lane_at = [&](int64_t i) { return i / strips * block.inner + i % strips * width; };
  if (block.outer * strips < kFew && block.n * width > 2 * kPieceElements) {
    for (int64_t i = 0; i < block.outer * strips; ++i) strip_in_pieces(call, strip_at(i), lane_at(i));
    return;
  }
  call.in_parallel(block.outer * strips, block.n * width, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      strip_moments(strip_at(i), [&](int64_t j, const Moments& m) { call.store(lane_at(i) + j, m); });
  });
}

// var, or std(Tensor x, Axes? axis, *, Scalar correction, bool keepdims)
template <Spread Which>
bp_status BP_CALL spread(const bp_frame* frame, const bp_value* args, int32_t, bp_value* outs, int32_t) {
  return plugin::guard(frame, [&] {
    const bp_tensor *x = plugin::as_tensor(args[0]), *out = outs[0].u.t;
    if (out->nbytes == 0) return;
    plugin::dispatch_dtype<BP_MASK_FLOATING>(x->dtype, [&]<class S>() {
      const Call<S> call{frame,
                         axis_block(x, args[1]),
                         plugin::as_double(args[2]),
                         reinterpret_cast<const S*>(data_of(x)),
                         reinterpret_cast<S*>(data_of(out)),
                         unbiased<Which, S>};
      if (call.block.n == 0) {
        for (int64_t i = 0; i < call.block.lanes(); ++i) call.store(i, {0, 0});
      } else if (call.block.inner == 1) {
        over_rows(call);
      } else {
        over_strips(call);
      }
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

template <Spread Which>
void spread_of_rows(const void*, const ReducedRows& rows) {
  const double correction = plugin::as_double(rows.numbers[2]), count = static_cast<double>(rows.n);
  plugin::dispatch_dtype<BP_MASK_FLOATING>(rows.x_dtype, [&]<class S>() {
    for (int64_t i = 0; i < rows.rows; ++i) {
      const Moments m = row_moments(reinterpret_cast<const S*>(rows.x + i * rows.x_step), rows.n);
      *reinterpret_cast<S*>(rows.out + i * rows.out_step) = unbiased<Which, S>(m, count, correction);
    }
  });
}

const RowReduction kVarianceOfRows("bp::var", BP_MASK_FLOATING, spread_of_rows<Spread::kVariance>);
const RowReduction kDeviationOfRows("bp::std", BP_MASK_FLOATING, spread_of_rows<Spread::kDeviation>);

}  // namespace

const Family kVariance([](const Registrar& registrar) {
  registrar.kernel(
      BP_KERNEL("bp::var", "cpu", spread<Spread::kVariance>, .dtypes = BP_MASK_FLOATING, .supports = supports));
  registrar.kernel(
      BP_KERNEL("bp::std", "cpu", spread<Spread::kDeviation>, .dtypes = BP_MASK_FLOATING, .supports = supports));
});

}  // namespace backplane::cpu

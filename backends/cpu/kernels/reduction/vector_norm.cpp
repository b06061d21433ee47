// vector_norm of ord 2 over one axis, neighbouring ones or all, in one pass; other orders and axes go by decomposition.
//
// Lanes run in parallel; few and long ones are cut at fixed places, so that the result does not depend on how many
// threads there are. A complex element counts as its two parts.
#include <algorithm>

#include "kernels/families.hpp"
#include "kernels/reduction/root_of_squares.hpp"
#include "loops/axis_block.hpp"
#include "runtime/scratch.hpp"

namespace backplane::cpu {
namespace {

constexpr int64_t kPieceElements = 65536;  // of a long lane that is cut
constexpr int64_t kFew = 8;                // lanes or strips that are too few to be shared out

template <class Range>
void in_parallel(const bp_frame* frame, int64_t n, int64_t cost, Range&& range) {
  const int64_t grain = std::max<int64_t>(kCheapGrain / cost, 1);
  if (n <= grain) return range(0, n);
  plugin::parallel_for(frame, 0, n, grain, range);
}

template <class S>
S norm_of_row(const S* x, int64_t n, double squares) {
  return static_cast<S>(static_cast<plugin::Compute<S>>(root_of_squares(squares, x, n, 1)));
}

template <class S>
double squares_in_pieces(const bp_frame* frame, const S* x, int64_t n) {
  const int64_t pieces = (n + kPieceElements - 1) / kPieceElements;
  const Scratch<double> parts(pieces);
  in_parallel(frame, pieces, kPieceElements, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = i * kPieceElements;
      parts.get()[i] = moment_loops<S>().distances(x + first, 0, std::min(kPieceElements, n - first)).squares;
    }
  });
  double all = 0;
  for (int64_t i = 0; i < pieces; ++i) all += parts.get()[i];
  return all;
}

template <class S>
void over_rows(const bp_frame* frame, const S* x, S* out, int64_t rows, int64_t n) {
  if (rows < kFew && n > 2 * kPieceElements) {
    for (int64_t i = 0; i < rows; ++i) out[i] = norm_of_row(x + i * n, n, squares_in_pieces(frame, x + i * n, n));
    return;
  }
  in_parallel(frame, rows, n, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      out[i] = norm_of_row(x + i * n, n, moment_loops<S>().distances(x + i * n, 0, n).squares);
  });
}

// `width` lanes side by side, whose elements are block.inner apart; their rows are cut in `pieces`.
template <class S>
void strip(const bp_frame* frame, const S* x, S* out, const AxisBlock& block, int64_t width, int64_t pieces) {
  const int64_t rows = (block.n + pieces - 1) / pieces;
  const plugin::Compute<S> shifts[kMomentStrip] = {};
  const Scratch<double> parts(pieces * 2 * width);
  std::fill_n(parts.get(), pieces * 2 * width, 0.0);
  const auto range = [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      double* sums = parts.get() + i * 2 * width;
      const int64_t count = std::min(rows, block.n - i * rows);
      if (count > 0)
        moment_loops<S>().distances_strip(x + i * rows * block.inner, shifts, count, block.inner, width, sums,
                                          sums + width);
    }
  };
  if (pieces == 1) {
    range(0, 1);
  } else {
    in_parallel(frame, pieces, rows * width, range);
  }
  for (int64_t j = 0; j < width; ++j) {
    double squares = 0;
    for (int64_t i = 0; i < pieces; ++i) squares += parts.get()[(i * 2 + 1) * width + j];
    out[j] = static_cast<S>(static_cast<plugin::Compute<S>>(root_of_squares(squares, x + j, block.n, block.inner)));
  }
}

template <class S>
void over_strips(const bp_frame* frame, const S* x, S* out, const AxisBlock& block) {
  const int64_t width = std::min(kMomentStrip, block.inner), strips = (block.inner + width - 1) / width;
  const bool few = block.outer * strips < kFew && block.n * width > 2 * kPieceElements;
  const int64_t pieces = few ? block.n * width / kPieceElements : 1;
  const auto range = [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = i % strips * width, outer = i / strips;
      strip(frame, x + outer * block.n * block.inner + first, out + outer * block.inner + first, block,
            std::min(width, block.inner - first), pieces);
    }
  };
  if (few) return range(0, block.outer * strips);
  in_parallel(frame, block.outer * strips, block.n * width, range);
}

// vector_norm(Tensor x, *, Axes? axis, bool keepdims, Scalar ord)
bp_status BP_CALL vector_norm(const bp_frame* frame, const bp_value* args, int32_t, bp_value* outs, int32_t) {
  return plugin::guard(frame, [&] {
    const bp_tensor *x = plugin::as_tensor(args[0]), *out = outs[0].u.t;
    if (out->nbytes == 0) return;
    AxisBlock block = axis_block(x, args[1]);
    if (x->dtype == BP_COMPLEX64 || x->dtype == BP_COMPLEX128) block.n *= 2;
    plugin::dispatch_dtype<BP_MASK_FLOATING>(out->dtype, [&]<class S>() {
      const auto* elements = reinterpret_cast<const S*>(data_of(x));
      auto* results = reinterpret_cast<S*>(data_of(out));
      if (block.n == 0) {
        std::fill_n(results, block.lanes(), S(0));
      } else if (block.inner == 1) {
        over_rows(frame, elements, results, block.outer, block.n);
      } else {
        over_strips(frame, elements, results, block);
      }
    });
  });
}

// Declines numbers, other orders, axes that are not neighbours, and lanes of complex elements side by side.
bp_status BP_CALL supports(const bp_frame* frame, const bp_value* args, int32_t, bp_value*, int32_t) {
  if (args[0].tag == BP_TAG_TENSOR && plugin::as_double(args[3]) == 2) {
    const bp_tensor* x = args[0].u.t;
    const AxisBlock block = axis_block(x, args[1]);
    const bool real = x->dtype != BP_COMPLEX64 && x->dtype != BP_COMPLEX128;
    if (block.neighbours && (real || block.inner == 1)) return BP_OK;
  }
  frame->host->set_error(BP_ERROR_NOT_IMPLEMENTED, "takes a tensor and ord 2, along axes that are neighbours");
  return BP_ERROR_NOT_IMPLEMENTED;
}

}  // namespace

const Family kVectorNorm([](const Registrar& registrar) {
  registrar.kernel(BP_KERNEL("bp::vector_norm", "cpu", vector_norm,
                             .dtypes = BP_MASK_FLOATING | BP_DTYPE_BIT(BP_COMPLEX64) | BP_DTYPE_BIT(BP_COMPLEX128),
                             .supports = supports));
});

}  // namespace backplane::cpu

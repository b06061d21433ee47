// layer_norm_grad: the adjoint of layer_norm over trailing axes, row by row in four passes over what stays in the
// cache. Other axes go by the decomposition; half floats are widened a row at a time.
#include <cmath>
#include <optional>
#include <type_traits>

#include "kernels/families.hpp"
#include "kernels/nn/batch_norm_loops.hpp"
#include "kernels/nn/norm_adjoint.hpp"
#include "kernels/nn/norm_operands.hpp"
#include "kernels/reduction/moments.hpp"
#include "loops/axis_block.hpp"

namespace backplane::cpu {
namespace {

// One row at a time in the type that it is computed in: where it lies, or in memory of its own where it must be
// widened, scaled by the weight, or rounded.
template <class S>
class GradRow {
 public:
  using C = plugin::Compute<S>;
  static constexpr bool kInPlace = std::is_same_v<S, C>;
  GradRow(int64_t n, const C* weight) : n_(n), weight_(weight) {
    if (!kInPlace || weight != nullptr) memory_.emplace(kInPlace ? n : 2 * n);
  }
  // The cotangents times the weight.
  const C* scaled(const S* g) const {
    const C* from = wide(g, 0);
    if (weight_ == nullptr) return from;
    moment_loops<C>().normalize(from, C(0), C(1), weight_, nullptr, memory_->get(), n_);
    return memory_->get();
  }
  const C* wide(const S* x, int64_t half) const {
    if constexpr (kInPlace) {
      return x;
    } else {
      C* to = memory_->get() + half * n_;
      cast_row(plugin::kDtypeOf<S>, reinterpret_cast<const char*>(x), sizeof(S), plugin::kDtypeOf<C>,
               reinterpret_cast<char*>(to), sizeof(C), n_);
      return to;
    }
  }
  // Where the result is computed, which may be where `scaled` is; put() brings it to `out`.
  C* result(S* out) const {
    if constexpr (kInPlace)
      return out;
    else
      return memory_->get();
  }
  void put(S* out) const {
    if constexpr (!kInPlace)
      cast_row(plugin::kDtypeOf<C>, reinterpret_cast<const char*>(memory_->get()), sizeof(C), plugin::kDtypeOf<S>,
               reinterpret_cast<char*>(out), sizeof(S), n_);
  }

 private:
  int64_t n_;
  const C* weight_;
  std::optional<Scratch<C>> memory_;
};

// (Tensor cotangent, Tensor x, Tensor? weight, *, Axes axis, Scalar eps)
template <class S>
void run(const bp_frame* frame, const bp_value* args, const bp_value* outs) {
  using C = plugin::Compute<S>;
  const AxisBlock block = axis_block(plugin::as_tensor(args[1]), args[3]);
  const int64_t n = block.n;
  const double eps = plugin::as_double(args[4]), count = static_cast<double>(n);
  const NormOperand<S> weight(args[2]);
  const auto range = [&](int64_t begin, int64_t end) {
    const GradRow<S> row(n, weight.get());
    for (int64_t i = begin; i < end; ++i) {
      const C* g = row.scaled(elements<const S>(args[0]) + i * n);
      const C* x = row.wide(elements<const S>(args[1]) + i * n, 1);
      const ChannelRows<C> rows{g, x, 1, n, n};
      const Moments m = row_moments(x, n);
      const double spread = m.spread(eps), r = 1 / spread;
      S* out = elements<S>(outs[0]) + i * n;
      if (!is_ordinary<C>(spread)) [[unlikely]] {
        NormAdjoint<C>(rows, m.mean, spread).store(1, row.result(out));
        row.put(out);
        continue;
      }
      const GradSums sums = batch_norm_loops<C>().sums(rows, static_cast<C>(m.mean));
      batch_norm_loops<C>().combine(rows, static_cast<C>(m.mean), static_cast<C>(r),
                                    static_cast<C>(-r * r * r * sums.gx / count), static_cast<C>(-r * sums.g / count),
                                    row.result(out));
      row.put(out);
    }
  };
  const int64_t grain = std::max<int64_t>(kCheapGrain / (4 * n), 1);
  if (block.outer <= grain) return range(0, block.outer);
  plugin::parallel_for(frame, 0, block.outer, grain, range);
}

bp_status BP_CALL layer_norm_grad(const bp_frame* frame, const bp_value* args, int32_t, bp_value* outs, int32_t) {
  return plugin::guard(frame, [&] {
    if (outs[0].u.t->nbytes == 0) return;
    plugin::dispatch_dtype<BP_MASK_FLOATING>(plugin::as_tensor(args[1])->dtype,
                                             [&]<class S>() { run<S>(frame, args, outs); });
  });
}

bool same_sizes(const bp_tensor* a, const bp_tensor* b, int32_t last) {
  for (int32_t d = 1; d <= last; ++d)
    if (a->dl.shape[a->dl.ndim - d] != b->dl.shape[b->dl.ndim - d]) return false;
  return true;
}

// Takes trailing axes, cotangents of the shape of x, and a weight of just the axes' shape or none.
bp_status BP_CALL supports_trailing(const bp_frame* frame, const bp_value* args, int32_t, bp_value*, int32_t) {
  bool fits = args[0].tag == BP_TAG_TENSOR && args[1].tag == BP_TAG_TENSOR && args[3].count > 0;
  if (fits) {
    const bp_tensor *g = args[0].u.t, *x = args[1].u.t;
    const int32_t rank = x->dl.ndim;
    fits = rank > 0 && g->dl.ndim == rank && same_sizes(g, x, rank);
    for (uint32_t i = 0; fits && i < args[3].count; ++i) fits = args[3].u.ints[i] >= -rank && args[3].u.ints[i] < rank;
    if (fits) {
      const AxisBlock block = axis_block(x, args[3]);
      fits = block.neighbours && block.inner == 1;
    }
    if (fits && args[2].tag != BP_TAG_ABSENT) {
      const auto axes = static_cast<int32_t>(args[3].count);
      fits = args[2].tag == BP_TAG_TENSOR && args[2].u.t->dl.ndim == axes && same_sizes(args[2].u.t, x, axes);
    }
  }
  if (fits) return BP_OK;
  frame->host->set_error(BP_ERROR_NOT_IMPLEMENTED, "takes the last axes, with cotangents and weight of their shape");
  return BP_ERROR_NOT_IMPLEMENTED;
}

}  // namespace

const Family kLayerNormGrad([](const Registrar& registrar) {
  registrar.kernel(BP_KERNEL("bp::layer_norm_grad", "cpu", layer_norm_grad, .dtypes = BP_MASK_FLOATING,
                             .supports = supports_trailing));
});

}  // namespace backplane::cpu

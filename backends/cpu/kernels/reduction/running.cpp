// cummax, cummin, logcumsumexp: scans along an axis that keep more than a sum.
#include <cmath>

#include "kernels/families.hpp"
#include "kernels/sorting/sort_keys.hpp"
#include "loops/cast_row.hpp"
#include "loops/lanes.hpp"

namespace backplane::cpu {
namespace {

using plugin::Compute;
using plugin::kItemSize;
constexpr bp_dtype_mask kReal = BP_MASK_INTEGER | BP_MASK_FLOATING;

struct Step {
  int64_t x, values, positions;  // strides along the axis, in bytes
};
int64_t stride_of(const bp_tensor* t, int32_t axis) {
  return t->dl.ndim == 0 ? 0 : t->dl.strides[axis] * kItemSize[t->dtype];
}

// The last of equal extremes counts; from a NaN on, the last NaN.
template <class C>
struct Extreme {
  C best{};
  int64_t at = 0;

  // n elements from number `first` on.
  template <bool Largest>
  void run(char* const* p, const Step& step, int64_t first, int64_t n) {
    if (first == 0) best = *reinterpret_cast<const C*>(p[2]);
    for (int64_t i = 0; i < n; ++i) {
      const C value = *reinterpret_cast<const C*>(p[2] + i * step.x);
      if (value != value || (best == best && (Largest ? value >= best : value <= best))) {
        best = value;
        at = first + i;
      }
      *reinterpret_cast<C*>(p[0] + i * step.values) = best;
      *reinterpret_cast<int64_t*>(p[1] + i * step.positions) = at;
    }
  }
};

// Lanes of half floats whose elements are neighbours, in blocks of float32.
constexpr int64_t kBlock = 256;
template <bool Largest>
void run_widened_extreme(bp_dtype half, char* const* p, const Step& step, int64_t n) {
  Extreme<float> running;
  float block[kBlock];
  char* const wide = reinterpret_cast<char*>(block);
  for (int64_t first = 0; first < n; first += kBlock) {
    const int64_t count = std::min(kBlock, n - first);
    cast_row(half, p[2] + first * step.x, step.x, BP_FLOAT32, wide, sizeof(float), count);
    char* const pointers[3] = {wide, p[1] + first * step.positions, wide};
    running.run<Largest>(pointers, {sizeof(float), sizeof(float), step.positions}, first, count);
    cast_row(BP_FLOAT32, wide, sizeof(float), half, p[0] + first * step.values, step.values, count);
  }
}

// Other lanes of half floats, by keys of 16 bits in their order: a NaN is beyond every number, the zeros are equal.
template <class T, bool Largest>
void run_half_extreme(char* const* p, const Step& step, int64_t n) {
  T best{};
  uint16_t best_key = Largest ? 0 : 0xffff;
  int64_t at = 0;
  for (int64_t i = 0; i < n; ++i) {
    const T value = *reinterpret_cast<const T*>(p[2] + i * step.x);
    // The key of a NaN, 0xffff, wraps to 0, the least.
    const auto key = static_cast<uint16_t>(tie_key(value) + (Largest ? 0 : 1));
    if (Largest ? key >= best_key : key <= best_key) {
      best = value;
      best_key = key;
      at = i;
    }
    *reinterpret_cast<T*>(p[0] + i * step.values) = best;
    *reinterpret_cast<int64_t*>(p[1] + i * step.positions) = at;
  }
}

// (Tensor x, *, Axis axis) -> (values, indices)
template <bool Largest>
bp_status BP_CALL running_extreme(const bp_frame* frame, const bp_value* args, int32_t, bp_value* outs, int32_t) {
  return plugin::guard(frame, [&] {
    const bp_tensor *x = plugin::as_tensor(args[0]), *values = outs[0].u.t, *indices = outs[1].u.t;
    if (values->nbytes == 0) return;
    const int32_t rank = x->dl.ndim, axis = axis_of(args[1]);
    const int64_t n = rank == 0 ? 1 : x->dl.shape[axis];
    const Step step{stride_of(x, axis), stride_of(values, axis), stride_of(indices, axis)};
    const Lanes<3> lanes(x->dl.shape, rank, axis, {lane_operand(values), lane_operand(indices), lane_operand(x)});
    plugin::dispatch_dtype<kReal>(x->dtype, [&]<class T>() {
      lanes.run(frame, 4 * n, [&](char* const* p) -> const char* {
        if constexpr (!kIsHalf<T>)
          Extreme<T>().template run<Largest>(p, step, 0, n);
        else if (step.x == sizeof(T) && step.values == sizeof(T))
          run_widened_extreme<Largest>(x->dtype, p, step, n);
        else
          run_half_extreme<T, Largest>(p, step, n);
        return nullptr;
      });
    });
  });
}

// The running sum is held as exp(top) * rest in double, so that no element overflows it.
struct LogSumExp {
  double top = -INFINITY, rest = 0;

  template <class C>
  void run(const char* x, int64_t from, char* out, int64_t to, int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
      const auto value = static_cast<double>(*reinterpret_cast<const C*>(x + i * from));
      if (value > top) {
        rest = (top == -INFINITY ? rest : rest * std::exp(top - value)) + 1;
        top = value;
      } else if (value == top) {
        rest += std::isinf(value) && value < 0 ? 0 : 1;
      } else {
        rest += std::exp(value - top);  // NaN where value is
      }
      const double found = std::isinf(top) && rest == rest ? top : top + std::log(rest);
      *reinterpret_cast<C*>(out + i * to) = static_cast<C>(found);
    }
  }
};
template <class T>
void run_logsumexp(char* const* p, int64_t to, int64_t from, int64_t n) {
  LogSumExp running;
  if constexpr (!kIsHalf<T>) return running.run<T>(p[1], from, p[0], to, n);
  float block[kBlock];
  char* const wide = reinterpret_cast<char*>(block);
  for (int64_t first = 0; first < n; first += kBlock) {
    const int64_t count = std::min(kBlock, n - first);
    cast_row(plugin::kDtypeOf<T>, p[1] + first * from, from, BP_FLOAT32, wide, sizeof(float), count);
    running.run<float>(wide, sizeof(float), wide, sizeof(float), count);
    cast_row(BP_FLOAT32, wide, sizeof(float), plugin::kDtypeOf<T>, p[0] + first * to, to, count);
  }
}

// logcumsumexp(Tensor x, *, Axis axis)
bp_status BP_CALL logcumsumexp(const bp_frame* frame, const bp_value* args, int32_t, bp_value* outs, int32_t) {
  return plugin::guard(frame, [&] {
    const bp_tensor *x = plugin::as_tensor(args[0]), *out = outs[0].u.t;
    if (out->nbytes == 0) return;
    const int32_t rank = x->dl.ndim, axis = axis_of(args[1]);
    const int64_t n = rank == 0 ? 1 : x->dl.shape[axis], from = stride_of(x, axis), to = stride_of(out, axis);
    const Lanes<2> lanes(x->dl.shape, rank, axis, {lane_operand(out), lane_operand(x)});
    plugin::dispatch_dtype<BP_MASK_FLOATING>(x->dtype, [&]<class T>() {
      lanes.run(frame, 32 * n, [&](char* const* p) -> const char* {
        run_logsumexp<T>(p, to, from, n);
        return nullptr;
      });
    });
  });
}

}  // namespace

const Family kRunning([](const Registrar& registrar) {
  registrar.kernel(BP_KERNEL("bp::cummax", "cpu", running_extreme<true>, .dtypes = kReal, .flags = BP_KERNEL_STRIDED));
  registrar.kernel(BP_KERNEL("bp::cummin", "cpu", running_extreme<false>, .dtypes = kReal, .flags = BP_KERNEL_STRIDED));
  registrar.kernel(
      BP_KERNEL("bp::logcumsumexp", "cpu", logcumsumexp, .dtypes = BP_MASK_FLOATING, .flags = BP_KERNEL_STRIDED));
});

}  // namespace backplane::cpu

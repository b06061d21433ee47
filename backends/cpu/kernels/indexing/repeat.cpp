// repeat_each: slices of a tensor, each as often as its count says, in one pass over the result.
#include <algorithm>
#include <cstring>

#include "kernels/families.hpp"
#include "kernels/indexing/along_axis.hpp"
#include "loops/item_type.hpp"

namespace backplane::cpu {
namespace {

using plugin::kItemSize;

// The data of one position of the axes before `axis`: slices of `bytes`, n of x and `total` of the result.
struct Slices {
  int64_t n, total, bytes;
};

// copy(from, to, times) for the n counts; with step 0, one count applies to all.
template <class Copy>
void repeat(const bp_frame* frame, const bp_tensor* counts, int64_t step, const Slices& s, const char* from, char* to,
            Copy&& copy) {
  int64_t block[kIndexBlock], left = s.total;
  const int64_t item = kItemSize[counts->dtype];
  for (int64_t first = 0; first < s.n; first += kIndexBlock) {
    const int64_t some = std::min(kIndexBlock, s.n - first);
    const int64_t* given = wide_indices(counts->dtype, data_of(counts) + first * step * item, step * item, some, block);
    for (int64_t i = 0; i < some; ++i, from += s.bytes) {
      BP_CHECK(given[i] >= 0, DATA, frame->op->name, ": 'repeats' has ", given[i], ", expected counts from 0 on");
      const int64_t times = std::min(given[i], left);
      copy(from, to, times);
      to += times * s.bytes;
      left -= times;
    }
  }
  BP_CHECK(left == 0, DATA, frame->op->name, ": 'repeats' sum to ", s.total - left, ", expected 'total', ", s.total);
}

// repeat_each(Tensor x, Tensor repeats, Size total, *, Axis axis), of contiguous tensors.
bp_status BP_CALL repeat_each(const bp_frame* frame, const bp_value* args, int32_t, bp_value* outs, int32_t) {
  return plugin::guard(frame, [&] {
    const bp_tensor *x = plugin::as_tensor(args[0]), *counts = plugin::as_tensor(args[1]), *out = outs[0].u.t;
    const int32_t axis = axis_of(args[3]);
    const bool one = counts->dl.ndim == 0 || counts->dl.shape[0] == 1;
    Slices s{x->dl.shape[axis], out->dl.shape[axis], kItemSize[x->dtype]};
    int64_t outer = 1;
    for (int32_t d = 0; d < axis; ++d) outer *= x->dl.shape[d];
    for (int32_t d = axis + 1; d < x->dl.ndim; ++d) s.bytes *= x->dl.shape[d];
    if (s.bytes == 0) return;
    const auto all = [&](auto&& copy) {
      plugin::parallel_for(frame, 0, outer,
                           std::max<int64_t>(4 * kCheapGrain / std::max<int64_t>(s.total * s.bytes, 1), 1),
                           [&](int64_t begin, int64_t end) {
                             for (int64_t o = begin; o < end; ++o)
                               repeat(frame, counts, one ? 0 : 1, s, data_of(x) + o * s.n * s.bytes,
                                      data_of(out) + o * s.total * s.bytes, copy);
                           });
    };
    if (s.bytes != kItemSize[x->dtype])
      return all([&](const char* from, char* to, int64_t times) {
        for (int64_t k = 0; k < times; ++k) std::memcpy(to + k * s.bytes, from, static_cast<size_t>(s.bytes));
      });
    with_item_type(s.bytes, [&]<class Item>() {
      all([](const char* from, char* to, int64_t times) {
        std::fill_n(reinterpret_cast<Item*>(to), times, *reinterpret_cast<const Item*>(from));
      });
    });
  });
}

}  // namespace

const Family kRepeat([](const Registrar& registrar) {
  registrar.kernel(BP_KERNEL("bp::repeat_each", "cpu", repeat_each));
});

}  // namespace backplane::cpu

// Registers the ops of ops.yaml, with kernels of two of them for the CPU. Other backends run their decompositions,
// or the host's kernels.
#include <algorithm>
#include <numeric>
#include <vector>

#include "backplane/plugin.hpp"
#include "twelve_records.h"

using namespace backplane::plugin;

namespace {

constexpr bp_dtype_mask kFloats = BP_DTYPE_BIT(BP_FLOAT32) | BP_DTYPE_BIT(BP_FLOAT64);

template <class T>
T overlap_of(const T* a, const T* b) {
  const T width = std::max(std::min(a[2], b[2]) - std::max(a[0], b[0]), T(0));
  const T height = std::max(std::min(a[3], b[3]) - std::max(a[1], b[1]), T(0));
  const T shared = width * height;
  return shared / ((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - shared);
}

struct BoxIou {
  template <class T>
  static void run(Context call, ConstTensor<T> a, ConstTensor<T> b, MutTensor<T> out) {
    const T *first = a.data(), *second = b.data();
    T* const result = out.data();
    const int64_t columns = b.shape(0);
    call.parallel_for(0, a.shape(0), 1 + 16384 / (columns + 1), [=](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        for (int64_t j = 0; j < columns; ++j) result[i * columns + j] = overlap_of(first + 4 * i, second + 4 * j);
    });
  }
};

// All results have room for every box; behind the count they are 0.
struct Nms {
  template <class T>
  static void run(Context call, ConstTensor<T> boxes, ConstTensor<T> scores, double overlap, MutTensor<int64_t> out,
                  MutTensor<int64_t> count) {
    const int64_t n = boxes.shape(0);
    BP_CHECK(scores.size() == n, SHAPE, call.op_name(), ": found ", n, " boxes and ", scores.size(),
             " scores, expected a score per box");
    std::vector<int64_t> order(static_cast<size_t>(n));
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](int64_t i, int64_t j) { return scores.data()[i] > scores.data()[j]; });
    int64_t kept = 0;
    for (const int64_t i : order) {
      bool stays = true;
      for (int64_t k = 0; k < kept && stays; ++k)
        stays = !(overlap_of(boxes.data() + 4 * i, boxes.data() + 4 * out.data()[k]) > overlap);
      if (stays) out.data()[kept++] = i;
    }
    std::fill(out.data() + kept, out.data() + n, 0);
    *count.data() = kept;
  }
};

void register_all(const Registrar& registrar) {
  for (uint32_t i = 0; i < twelve_op_count; ++i) registrar.op(*twelve_ops[i]);
  registrar.kernel(BP_KERNEL("twelve::box_iou", "cpu", (kernel_by_dtype<BoxIou, kFloats>), .dtypes = kFloats));
  registrar.kernel(BP_KERNEL("twelve::nms_padded", "cpu", (kernel_by_dtype<Nms, kFloats>), .dtypes = kFloats));
}

}  // namespace

BP_DEFINE_PLUGIN(BP_PLUGIN_NAME, "0.1.0", register_all)

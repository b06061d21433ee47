// segment_sum of vectors: each element is added to the sum that its number names, in one pass. Small floats are added
// in float64 (complex128) and rounded once. Tensors of more axes go by the decomposition.
#include <algorithm>
#include <optional>

#include "kernels/families.hpp"
#include "kernels/indexing/accumulate.hpp"
#include "loops/cast_row.hpp"
#include "loops/elementwise.hpp"
#include "runtime/scratch.hpp"

namespace backplane::cpu {
namespace {

using plugin::kItemSize;
constexpr int64_t kBlock = 512;

// n elements as C, neighbours: where they lie, or in `block`, which a repeated element (bincount's 1) fills once.
template <class C>
const C* neighbours(const bp_tensor* t, int64_t first, int64_t n, C* block) {
  const int64_t item = kItemSize[t->dtype], step = t->dl.strides[0] * item;
  const char* from = data_of(t) + first * step;
  if (t->dtype == plugin::kDtypeOf<C> && step == int64_t{sizeof(C)}) return reinterpret_cast<const C*>(from);
  if (step != 0 || first == 0)
    cast_row(t->dtype, from, step, plugin::kDtypeOf<C>, reinterpret_cast<char*>(block), sizeof(C), n);
  return block;
}

// In eight chains, which do not wait for each other or for the memory of one sum.
template <class C>
C sum_of(const C* x, int64_t n) {
  C chains[8] = {};
  int64_t i = 0;
  for (; i + 8 <= n; i += 8)
    for (int64_t k = 0; k < 8; ++k) add_to(chains[k], x[i + k]);
  for (; i < n; ++i) add_to(chains[0], x[i]);
  for (int k = 4; k > 0; k /= 2)
    for (int j = 0; j < k; ++j) add_to(chains[j], chains[j + k]);
  return chains[0];
}

// Runs of one number, as sorted ones have, are added up before their sum is touched. A number outside [0, size) is left
// out.
template <class C>
void add_block(const int64_t* ids, const C* x, int64_t n, int64_t size, C* sums) {
  for (int64_t i = 0; i < n;) {
    const int64_t id = ids[i], first = i++;
    while (i < n && ids[i] == id) ++i;
    if (static_cast<uint64_t>(id) >= static_cast<uint64_t>(size)) continue;
    add_to(sums[id], i - first == 1 ? x[first] : sum_of(x + first, i - first));
  }
}

// (Tensor data, Tensor segment_ids, Size num_segments)
template <class T>
void segment_sum(const bp_tensor* data, const bp_tensor* ids, const bp_tensor* out) {
  using C = Wide<T>;
  const int64_t n = data->dl.shape[0], size = out->dl.shape[0];
  std::optional<Scratch<C>> wide;
  C* sums;
  if constexpr (std::is_same_v<T, C>)
    sums = reinterpret_cast<C*>(data_of(out));
  else
    sums = wide.emplace(size).get();
  std::fill_n(sums, size, C(0));
  int64_t id_block[kBlock];
  C block[kBlock];
  for (int64_t first = 0; first < n; first += kBlock) {
    const int64_t count = std::min(kBlock, n - first);
    add_block(neighbours(ids, first, count, id_block), neighbours(data, first, count, block), count, size, sums);
  }
  if constexpr (!std::is_same_v<T, C>)
    cast_row(plugin::kDtypeOf<C>, reinterpret_cast<const char*>(sums), sizeof(C), out->dtype, data_of(out), sizeof(T),
             size);
}

constexpr bp_dtype_mask kNumeric = BP_MASK_ANY & ~BP_MASK_BOOL;

bp_status BP_CALL segment_sum_kernel(const bp_frame* frame, const bp_value* args, int32_t, bp_value* outs, int32_t) {
  return plugin::guard(frame, [&] {
    const bp_tensor *data = plugin::as_tensor(args[0]), *ids = plugin::as_tensor(args[1]), *out = outs[0].u.t;
    if (out->nbytes == 0) return;
    plugin::dispatch_dtype<kNumeric>(out->dtype, [&]<class T>() { segment_sum<T>(data, ids, out); });
  });
}

bp_status BP_CALL supports_vectors(const bp_frame* frame, const bp_value* args, int32_t, bp_value* outs, int32_t) {
  const auto vector = [](const bp_value& value) { return value.tag == BP_TAG_TENSOR && value.u.t->dl.ndim == 1; };
  const bool dense =
      outs == nullptr || outs[0].tag != BP_TAG_TENSOR || (outs[0].u.t->flags & BP_TENSOR_CONTIGUOUS) != 0;
  if (vector(args[0]) && vector(args[1]) && dense) return BP_OK;
  frame->host->set_error(BP_ERROR_NOT_IMPLEMENTED, "takes vectors");
  return BP_ERROR_NOT_IMPLEMENTED;
}

}  // namespace

const Family kSegments([](const Registrar& registrar) {
  registrar.kernel(BP_KERNEL("bp::segment_sum", "cpu", segment_sum_kernel, .dtypes = kNumeric,
                             .flags = BP_KERNEL_STRIDED, .supports = supports_vectors));
});

}  // namespace backplane::cpu

// Builds loop descriptors; see loop.hpp for the rules.
//
// Writes only the caller's LoopStorage; no heap, any thread. Operands that are all contiguous and of one shape, and
// immediates beside them, take a fast path to one dimension.
#include "memory/loop.hpp"

#include <algorithm>
#include <cstdlib>

#include "record/dtype_rules.hpp"

namespace backplane::core {
namespace {

int64_t item_size(const bp_tensor& tensor) { return kItemSize[tensor.dtype]; }

void start(LoopStorage& out, int32_t n_operands, int32_t ndim) {
  BP_CHECK(n_operands <= kMaxLoopOperands, INTERNAL, "a loop over ", n_operands, " operands; at most ",
           kMaxLoopOperands, " are allowed");
  out.reserve(n_operands, std::max(ndim, 1));
  out.loop.header = BP_HEADER(bp_loop);
  out.loop.rank = 0;
  out.loop.n_operands = n_operands;
  out.loop.count = 1;
  out.loop.sizes = out.sizes;
  out.loop.strides = out.strides;
}

// An operand that is read along a broadcast dim again and again has stride 0 there.
int64_t broadcast_stride(const bp_tensor* tensor, int32_t dim, int32_t ndim) {
  const int32_t own = tensor ? dim - (ndim - tensor->dl.ndim) : -1;
  if (own < 0 || tensor->dl.shape[own] == 1) return 0;
  return tensor->dl.strides[own] * item_size(*tensor);
}

// Is dim `inner` better placed outside of `outer`? Only if an operand says so and none says the opposite.
bool should_swap(LoopStorage& out, int32_t outer, int32_t inner) {
  bool wanted = false;
  for (int32_t i = 0; i < out.loop.n_operands; ++i) {
    const int64_t a = std::abs(out.row(i)[outer]);
    const int64_t b = std::abs(out.row(i)[inner]);
    if (a == 0 || b == 0 || a == b) continue;
    if (a > b) return false;
    wanted = true;
  }
  return wanted;
}

void order_dims(LoopStorage& out) {
  for (int32_t d = 1; d < out.loop.rank; ++d) {
    for (int32_t k = d; k > 0 && should_swap(out, k - 1, k); --k) {
      std::swap(out.sizes[k - 1], out.sizes[k]);
      for (int32_t i = 0; i < out.loop.n_operands; ++i) std::swap(out.row(i)[k - 1], out.row(i)[k]);
    }
  }
}

bool can_merge(LoopStorage& out, int32_t outer, int32_t inner) {
  for (int32_t i = 0; i < out.loop.n_operands; ++i)
    if (out.row(i)[outer] != out.row(i)[inner] * out.sizes[inner]) return false;
  return true;
}

void merge_dims(LoopStorage& out) {
  int32_t last = 0;
  for (int32_t d = 1; d < out.loop.rank; ++d) {
    const bool merges = can_merge(out, last, d);
    if (!merges) ++last;
    out.sizes[last] = merges ? out.sizes[last] * out.sizes[d] : out.sizes[d];
    for (int32_t i = 0; i < out.loop.n_operands; ++i) out.row(i)[last] = out.row(i)[d];
  }
  if (out.loop.rank) out.loop.rank = last + 1;
}

// `ordered`: an operand that is contiguous and of the full shape would veto every change of order.
void finish(LoopStorage& out, bool ordered) {
  const int32_t n = out.loop.n_operands;
  if (out.loop.count == 0) {
    out.loop.rank = 1;
    out.sizes[0] = 0;
    std::fill_n(out.strides, n, 0);
    return;
  }
  if (!ordered) order_dims(out);
  merge_dims(out);
  const size_t rank = static_cast<size_t>(out.loop.rank);
  for (int32_t i = 1; i < n; ++i) std::copy_n(out.row(i), rank, out.strides + rank * static_cast<size_t>(i));
}

bool all_contiguous_alike(const bp_tensor& full, const bp_tensor* const* operands, int32_t n_operands) {
  const DLTensor& first = full.dl;
  for (int32_t i = 0; i < n_operands; ++i) {
    if (!operands[i]) continue;
    const DLTensor& dl = operands[i]->dl;
    if (!(operands[i]->flags & BP_TENSOR_CONTIGUOUS) || dl.ndim != first.ndim) return false;
    for (int32_t d = 0; d < dl.ndim; ++d)
      if (dl.shape[d] != first.shape[d]) return false;
  }
  return true;
}

void one_dim(const bp_tensor& full, const bp_tensor* const* operands, int32_t n_operands, LoopStorage& out) {
  const DLTensor& first = full.dl;
  int64_t count = 1;
  for (int32_t d = 0; d < first.ndim; ++d) count *= first.shape[d];
  out.loop.count = count;
  if (count == 1) return;
  out.loop.rank = 1;
  out.sizes[0] = count;
  for (int32_t i = 0; i < n_operands; ++i) out.strides[i] = operands[i] && count ? item_size(*operands[i]) : 0;
}

// Of a tensor without elements it may wrap around: nobody follows it then.
int64_t out_stride(const bp_tensor& out, int32_t dim) {
  return static_cast<int64_t>(static_cast<uint64_t>(out.dl.strides[dim]) * static_cast<uint64_t>(item_size(out)));
}

}  // namespace

void LoopStorage::reserve(int32_t n_operands, int32_t rank) {
  const auto n = static_cast<size_t>(rank) * static_cast<size_t>(n_operands + 1);
  if (n > std::size(few_)) many_.reset(new int64_t[n]);
  pitch = rank;
  sizes = many_ ? many_.get() : few_;
  strides = sizes + rank;
}

void build_elementwise_loop(const bp_tensor* const* operands, int32_t n_operands, LoopStorage& out) {
  const bp_tensor* const* full = std::find_if(operands, operands + n_operands, [](const bp_tensor* t) { return t; });
  const bool none = full == operands + n_operands;
  start(out, n_operands, none ? 0 : (*full)->dl.ndim);
  if (none) {
    std::fill_n(out.strides, n_operands, 0);
    return;
  }
  if (all_contiguous_alike(**full, operands, n_operands)) return one_dim(**full, operands, n_operands, out);
  const DLTensor& shape = (*full)->dl;
  for (int32_t d = 0; d < shape.ndim; ++d) {
    const int64_t size = shape.shape[d];
    out.loop.count *= size;
    if (size == 1) continue;
    const int32_t r = out.loop.rank++;
    out.sizes[r] = size;
    for (int32_t i = 0; i < n_operands; ++i) out.row(i)[r] = broadcast_stride(operands[i], d, shape.ndim);
  }
  finish(out, ((*full)->flags & BP_TENSOR_CONTIGUOUS) != 0);
}

void build_reduction_loop(const bp_tensor* const* outs, int32_t n_outs, const bp_tensor* const* inputs,
                          int32_t n_inputs, const int32_t* reduced_axes, int32_t n_reduced, LoopStorage& out) {
  const DLTensor& shape = inputs[0]->dl;
  start(out, n_outs + n_inputs, shape.ndim);
  uint64_t reduced = 0;
  for (int32_t i = 0; i < n_reduced; ++i) reduced |= uint64_t{1} << reduced_axes[i];
  if (n_inputs == 1 && n_reduced == shape.ndim && (inputs[0]->flags & BP_TENSOR_CONTIGUOUS)) {
    one_dim(*inputs[0], inputs, 1, out);
    out.strides[n_outs] = out.strides[0];
    std::fill_n(out.strides, n_outs, 0);
    return;
  }
  int32_t kept = 0;  // kept dims of the input passed so far
  for (int32_t d = 0; d < shape.ndim; ++d) {
    const bool gone = (reduced >> d) & 1;
    const int64_t size = shape.shape[d];
    out.loop.count *= size;
    if (size != 1) {
      const int32_t r = out.loop.rank++;
      out.sizes[r] = size;
      for (int32_t i = 0; i < n_outs; ++i)
        out.row(i)[r] = gone || !outs[i] ? 0 : out_stride(*outs[i], outs[i]->dl.ndim == shape.ndim ? d : kept);
      for (int32_t i = 0; i < n_inputs; ++i) out.row(n_outs + i)[r] = broadcast_stride(inputs[i], d, shape.ndim);
    }
    kept += gone ? 0 : 1;
  }
  finish(out, (inputs[0]->flags & BP_TENSOR_CONTIGUOUS) != 0);
}

}  // namespace backplane::core

// Builds loop descriptors; see loop.hpp for the rules.
//
// Writes only the caller's LoopStorage; no heap, any thread. Operands that are all contiguous and of one shape, and
// immediates beside them, take a fast path to one dimension.
#include "memory/tensors/loop.hpp"

#include <algorithm>
#include <cstdlib>

#include "record/dtype_rules.hpp"

namespace backplane::core {
namespace {

int64_t item_size(const bp_tensor& tensor) { return kItemSize[tensor.dtype]; }

void start(LoopStorage& out, int32_t n_operands, int32_t ndim) {
  out.reserve(n_operands, std::max(ndim, 1));
  out.loop = {BP_HEADER(bp_loop), 0, n_operands, 1, out.sizes, out.strides, nullptr, 0, 0, 0, 0, 0, 0};
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

// Dims [begin, end) become those from `to` on, which is not above `begin`. Gives their end.
int32_t merge_dims(LoopStorage& out, int32_t begin, int32_t end, int32_t to) {
  int32_t next = to;
  for (int32_t d = begin; d < end; ++d) {
    const bool merges = next > to && can_merge(out, next - 1, d);
    if (!merges) ++next;
    out.sizes[next - 1] = merges ? out.sizes[next - 1] * out.sizes[d] : out.sizes[d];
    for (int32_t i = 0; i < out.loop.n_operands; ++i) out.row(i)[next - 1] = out.row(i)[d];
  }
  return next;
}

// Rows of strides stand `pitch` apart while they are made, and `rank` apart as they are handed out.
void close_rows(LoopStorage& out) {
  const size_t rank = static_cast<size_t>(out.loop.rank);
  for (int32_t i = 1; i < out.loop.n_operands; ++i)
    std::copy_n(out.row(i), rank, out.strides + rank * static_cast<size_t>(i));
}

bool is_empty(LoopStorage& out) {
  if (out.loop.count != 0) return false;
  out.loop.rank = 1;
  out.sizes[0] = 0;
  std::fill_n(out.strides, out.loop.n_operands, 0);
  return true;
}

// `ordered`: an operand that is contiguous and of the full shape would veto every change of order.
void finish(LoopStorage& out, bool ordered) {
  if (is_empty(out)) return;
  if (!ordered) order_dims(out);
  out.loop.rank = merge_dims(out, 0, out.loop.rank, 0);
  close_rows(out);
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

namespace {

// The dims of what the indices select: of axes before the joint dims, the joint dims, of the axes after them.
struct IndexDims {
  int64_t joint[kMaxRank];
  int32_t joint_rank = 0;
  int32_t kept[kMaxRank];  // axes of the indexed tensor
  int32_t n_kept = 0, before = 0;
};

IndexDims index_dims(int32_t ndim, std::span<bp_tensor* const> list) {
  IndexDims dims;
  int32_t first = -1, last = -1, given = 0;
  for (int32_t axis = 0; axis < static_cast<int32_t>(list.size()); ++axis) {
    if (!list[static_cast<size_t>(axis)]) continue;
    if (given++ == 0) first = axis;
    last = axis;
    dims.joint_rank = std::max(dims.joint_rank, list[static_cast<size_t>(axis)]->dl.ndim);
  }
  std::fill_n(dims.joint, dims.joint_rank, int64_t{1});
  for (const bp_tensor* index : list)
    for (int32_t d = 0; index && d < index->dl.ndim; ++d)
      if (index->dl.shape[d] != 1) dims.joint[dims.joint_rank - index->dl.ndim + d] = index->dl.shape[d];
  const bool neighbours = last - first + 1 == given;
  for (int32_t axis = 0; axis < ndim; ++axis) {
    if (axis < static_cast<int32_t>(list.size()) && list[static_cast<size_t>(axis)]) continue;
    if (neighbours && axis < first) ++dims.before;
    dims.kept[dims.n_kept++] = axis;
  }
  return dims;
}

}  // namespace

void build_index_loop(const bp_tensor& out, const bp_tensor* x, std::span<bp_tensor* const> list, bool writes,
                      const bp_tensor* values, LoopStorage& loop) {
  const IndexDims dims = index_dims(x ? x->dl.ndim : 0, list);
  const int32_t rank = dims.n_kept + dims.joint_rank;
  const bp_tensor* selected = writes ? values : &out;  // has the dims of the loop, or broadcasts to them
  const bp_tensor* indexed = writes ? &out : x;
  const auto n_indices = static_cast<int32_t>(std::count_if(list.begin(), list.end(), [](auto* t) { return t; }));
  start(loop, 2 + n_indices + (writes ? 1 : 0), rank);
  const int32_t selected_at = writes ? 2 + n_indices : 0;
  loop.loop.indexed = writes ? 0 : 1;

  for (int32_t axis = 0; axis < static_cast<int32_t>(list.size()); ++axis)
    if (list[static_cast<size_t>(axis)])
      loop.indices.push_back(
          {2 + static_cast<int32_t>(loop.indices.size()), axis, x->dl.shape[axis], out_stride(*indexed, axis)});
  loop.loop.indices = loop.indices.data();
  loop.loop.n_indices = n_indices;
  loop.loop.index_stride = sizeof(bp_loop_index);

  int32_t ends[2] = {0, 0};  // of the dims before the joint ones, and of those
  for (int32_t d = 0; d < rank; ++d) {
    const int32_t joint = d >= dims.before && d < dims.before + dims.joint_rank ? d - dims.before : -1;
    const int32_t axis = joint >= 0 ? -1 : dims.kept[d < dims.before ? d : d - dims.joint_rank];
    const int64_t size = joint >= 0 ? dims.joint[joint] : x->dl.shape[axis];
    loop.loop.count *= size;
    if (size != 1) {
      const int32_t r = loop.loop.rank++;
      loop.sizes[r] = size;
      for (int32_t i = 0; i < loop.loop.n_operands; ++i) loop.row(i)[r] = 0;
      loop.row(selected_at)[r] = broadcast_stride(selected, d, rank);
      if (axis >= 0) {
        loop.row(1)[r] = out_stride(*x, axis);
        loop.row(loop.loop.indexed)[r] = out_stride(*indexed, axis);
      } else {
        for (const bp_loop_index& index : loop.indices)
          loop.row(index.operand)[r] = broadcast_stride(list[static_cast<size_t>(index.axis)], joint, dims.joint_rank);
      }
    }
    if (d + 1 == dims.before) ends[0] = loop.loop.rank;
    if (d + 1 == dims.before + dims.joint_rank) ends[1] = loop.loop.rank;
  }
  if (is_empty(loop)) return;
  loop.loop.joint_first = merge_dims(loop, 0, ends[0], 0);
  const int32_t joint_end = merge_dims(loop, ends[0], ends[1], loop.loop.joint_first);
  loop.loop.joint_rank = joint_end - loop.loop.joint_first;
  loop.loop.rank = merge_dims(loop, ends[1], loop.loop.rank, joint_end);
  close_rows(loop);
}

}  // namespace backplane::core

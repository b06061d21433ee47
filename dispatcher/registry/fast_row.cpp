// At registration: which calls of an op the fast path may serve, and which fields of a backend's best row it reads.
#include "registry/fast_row.hpp"

#include "registry/registry.hpp"

namespace backplane::core {

FastPath fast_path(const OpRecord& record) {
  if (record.n_alike == 0 || (record.def.flags & BP_OP_COMPOSITE) || !record.simple_tensors) return FastPath::kNone;
  for (const bp_result_def& result : record.results)
    if (result.flags & BP_ARG_LIST) return FastPath::kNone;
  const bool several = record.results.size() != 1;
  if (several &&
      (record.results.size() > kMaxFastResults || record.adds_in_stated || (record.def.flags & BP_OP_DYNAMIC)))
    return FastPath::kNone;
  if (record.def.flags & (BP_OP_VIEW | BP_OP_MAYBE_VIEW))
    return record.tensor_args == 1 && record.def.alias == 0 && record.shape_words[0] ? FastPath::kView
                                                                                     : FastPath::kNone;
  for (size_t i = 0; i < record.n_alike; ++i)
    if (record.args[i].type != BP_TYPE_TENSOR) return FastPath::kNone;
  if (several) {
    const bool one_shape = !(record.def.flags & BP_OP_ELEMENTWISE) || record.tensor_args == 1;
    return one_shape ? FastPath::kSeveral : FastPath::kNone;
  }
  if (record.def.flags & BP_OP_ELEMENTWISE) {
    const bool all_alike = record.tensor_args == (uint64_t{1} << record.n_alike) - 1;
    return all_alike && !record.shape_formula ? FastPath::kLikeOperands : FastPath::kNone;
  }
  return record.def.flags & BP_OP_DYNAMIC ? FastPath::kFromKernel : FastPath::kInferred;
}

FastRow fast_row(const OpEntry& op, const KernelRow& row, uint32_t backend) {
  constexpr uint32_t kSlow =
      BP_KERNEL_MAY_DECLINE | BP_KERNEL_CASTS | BP_KERNEL_CALLS_OPS | BP_KERNEL_OWN_RESULTS | BP_KERNEL_SEPARATE_BLOCKS;
  const uint32_t flags = row.def.flags;
  const bool elementwise = (op.flags & BP_OP_ELEMENTWISE) != 0;
  const bool plain = op.fast_path > FastPath::kView && !(flags & kSlow) && row.def.max_elements == 0 &&
                     row.def.revision >= op.record->def.revision && row.def.offset_alignment <= 1 &&
                     (!row.resolves || op.n_args <= kMaxFastArgs) &&
                     (elementwise || !(op.flags & BP_OP_REDUCTION) || !(flags & BP_KERNEL_LOOP));
  FastRow result{.fn = row.def.fn, .row = &row};
  if (plain) result.dtypes = row.def.dtypes & op.record->alike_dtypes;
  // A loop descriptor says more than strides, and is the slow path's to build; flat elementwise calls have none.
  if (!elementwise && (flags & (BP_KERNEL_STRIDED | BP_KERNEL_LOOP))) result.granted_flags = BP_TENSOR_CONTIGUOUS;
  result.immediates = (flags & BP_KERNEL_IMMEDIATES) != 0;
  result.inplace = op.fast_path == FastPath::kLikeOperands && (flags & BP_KERNEL_INPLACE);
  result.frame = frame_of(*op.record);
  result.frame.context = row.def.context;
  if (row.resolves) {
    result.fn = handlers.resolved;
    result.frame.context = const_cast<KernelRow*>(&row);
  }
  result.frame.backend = backend;
  return result;
}

}  // namespace backplane::core

// What the fast path (call/fast_call.hpp) knows of an op and of a row before any call: read once, at registration.
#pragma once

#include "backplane/abi/plugin.h"
#include "record/op_record.hpp"

namespace backplane::core {

struct KernelRow;  // registry/plan.hpp
struct OpEntry;    // registry/registry.hpp

inline constexpr int32_t kMaxFastArgs = 8;     // of a fast call whose arguments are resolved
inline constexpr int32_t kMaxFastResults = 4;  // of a fast call with several

// The fields that the fast path reads of the best row on a backend, in one place.
struct FastRow {
  bp_dtype_mask dtypes = 0;    // compute dtypes that it may serve so; 0: none, or there is no row
  uint32_t granted_flags = 0;  // BP_TENSOR_CONTIGUOUS: takes operands of any strides
  bool immediates = false;
  bool inplace = false;       // the output may be an operand
  bp_kernel_fn fn = nullptr;  // the row's, or what resolves its arguments first
  const KernelRow* row = nullptr;
  bp_frame frame{};  // of a call on ordinal 0, but for its keys and compute dtype
};

// Which of an op's calls may the fast path serve, and where does the result then come from?
enum class FastPath : uint8_t {
  kNone,
  kView,          // of its first argument, which is its only tensor
  kLikeOperands,  // elementwise: a fresh output of the operands' common shape
  kInferred,      // a fresh output by the entry's rules
  kFromKernel,    // dynamic: the kernel makes it
  kSeveral,       // fresh outputs by the entry's rules
  kCount
};

FastPath fast_path(const OpRecord& record);
FastRow fast_row(const OpEntry& op, const KernelRow& row, uint32_t backend);

}  // namespace backplane::core

// How a view was made, so that a change through it reaches its base: the record's life. One block per view, from a free
// list where it is small: the record, the call's arguments, and behind them what lists among these point to.
//
// The view owns its record, and the record a reference to the base. Any thread; one at a time per view.
#pragma once

#include "tensor/pool.hpp"
#include "transforms/tape.hpp"

namespace backplane::core {

inline constexpr size_t kSmallViewRecord = 256;
using ViewRecordPool = Pool<kSmallViewRecord>;

// Grows whenever views of the tensor must be taken anew; view_record.cpp.
uint64_t stamp_of(const TensorImpl& base);

// Remembers a call whose result is `view`. For views made while recording is on.
void remember_view(const OpEntry& op, const bp_value* args, int32_t n_args, TensorImpl* view);

// Ends a record. The reference to the base is then the caller's.
inline TensorImpl* end_view_record(ViewRecord* record) noexcept {
  TensorImpl* base = record->base;
  if (record->block_size == kSmallViewRecord) [[likely]]
    ViewRecordPool::give(record);
  else
    ::operator delete (record, std::align_val_t{16});
  return base;
}

}  // namespace backplane::core

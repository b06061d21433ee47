// Arguments as kernels receive them: what a caller may write in several ways arrives in one, so that no kernel repeats
// NumPy's rules.
//
// An Axis or Axes argument counts from the front: of the tensor or the result whose dims the op's shape rule counts. Of
// a reduction, absent axes arrive as all of them. Of a slice (the word `slice_put`) the lists hold, per axis, start,
// count and step: element i lies at start + i * step. An axis that the entry's rules do not normalise arrives as it was
// given.
#pragma once

#include <memory>
#include <vector>

#include "record/op_record.hpp"

namespace backplane::core {

// Which arguments of an op are resolved, and how; made when it is registered.
struct ResolvedArg {
  enum class Kind : uint8_t { kAxes, kAllAxes, kSlice };
  Kind kind;
  uint8_t arg;     // kSlice: the axes; starts, stops and steps follow
  uint8_t tensor;  // whose dims the axes are
  int8_t beyond;   // how many dims more than that
};
std::vector<ResolvedArg> resolved_args(const OpRecord& op);

// Lists that resolved arguments point to, for as long as the call.
class ResolvedLists {
 public:
  ResolvedLists() {}  // leaves the room as it is
  int64_t* take(size_t count) {
    if (used_ + count <= kRoom) {
      used_ += count;
      return room_ + used_ - count;
    }
    return more_.emplace_back(new int64_t[count]).get();
  }

 private:
  static constexpr size_t kRoom = 24;
  size_t used_ = 0;
  int64_t room_[kRoom];
  std::vector<std::unique_ptr<int64_t[]>> more_;
};

// In place. The shape rule has accepted them.
void resolve_args(const OpRecord& op, bp_value* args, ResolvedLists& lists);

}  // namespace backplane::core

// Walks several tensors of one shape along one axis: a lane has the elements at one position of the other axes.
//
// Operands give a base and byte strides, 0 where they repeat. Pure.
#pragma once

#include <algorithm>

#include "loops/elementwise.hpp"
#include "loops/loop.hpp"

namespace backplane::cpu {

struct LaneOperand {
  char* base;
  const int64_t* strides;  // in elements, one per axis of the shape
  int64_t item;
};

inline LaneOperand lane_operand(const bp_tensor* t) { return {data_of(t), t->dl.strides, plugin::kItemSize[t->dtype]}; }

template <int Operands>
class Lanes {
 public:
  // `axis` is left out; -1 leaves out none, so that a lane is one element.
  Lanes(const int64_t* shape, int32_t rank, int32_t axis, const LaneOperand (&operands)[Operands]) {
    loop_.header = BP_HEADER(bp_loop);
    for (int32_t d = 0; d < rank; ++d)
      if (d != axis) sizes_[loop_.rank++] = shape[d];
    int32_t at = 0;
    for (int i = 0; i < Operands; ++i) {
      bases_[i] = operands[i].base;
      for (int32_t d = 0; d < rank; ++d)
        if (d != axis) strides_[at++] = operands[i].strides[d] * operands[i].item;
    }
    loop_.n_operands = Operands;
    loop_.sizes = sizes_;
    loop_.strides = strides_;
    loop_.count = 1;
    for (int32_t d = 0; d < loop_.rank; ++d) loop_.count *= sizes_[d];
  }
  Lanes(const Lanes&) = delete;

  int64_t count() const { return loop_.count; }

  // lane(pointers) for the lanes [begin, end); returns what the first failing lane returned, else NULL.
  template <class Lane>
  const char* for_each(int64_t begin, int64_t end, Lane&& lane) const {
    if (begin >= end) return nullptr;
    return for_each_row<Operands>(loop_, bases_, begin, end,
                                  [&](char* const* p, const int64_t* s, int64_t n) -> const char* {
                                    char* pointers[Operands];
                                    std::copy(p, p + Operands, pointers);
                                    for (int64_t i = 0; i < n; ++i) {
                                      if (const char* fault = lane(pointers)) return fault;
                                      for (int k = 0; k < Operands; ++k) pointers[k] += s[k];
                                    }
                                    return nullptr;
                                  });
  }

  // The same over all lanes, in parallel above `cost` elements of work per lane.
  template <class Lane>
  void run(const bp_frame* frame, int64_t cost, Lane&& lane) const {
    const int64_t grain = std::max<int64_t>(kCheapGrain / std::max<int64_t>(cost, 1), 1);
    const auto range = [&](int64_t begin, int64_t end) {
      const char* fault = for_each(begin, end, lane);
      BP_CHECK(fault == nullptr, DATA, frame->op->name, ": ", fault);
    };
    if (count() <= grain) return range(0, count());
    plugin::parallel_for(frame, 0, count(), grain, range);
  }

 private:
  bp_loop loop_{};
  char* bases_[Operands];
  int64_t sizes_[kMaxRank];
  int64_t strides_[Operands * kMaxRank];
};

// Of an Axis argument, which arrives counted from the front.
inline int32_t axis_of(const bp_value& axis) { return static_cast<int32_t>(plugin::as_int(axis)); }

}  // namespace backplane::cpu

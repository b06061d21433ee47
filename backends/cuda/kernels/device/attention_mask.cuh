// The mask of attention by tiles of scores.
#pragma once

#include "kernels/attention_arguments.hpp"
#include "kernels/device/element.cuh"

namespace backplane::cuda {

enum class Orientation { kRowsOfQueries, kRowsOfKeys };  // of a tile of scores

template <class Tiles>
class AttentionMask {
  using T = typename Tiles::Element;
  using C = typename Tiles::C;
  using Scores = typename Tiles::Scores;

 public:
  // `offset`: of the block's matrix in the batch.
  __device__ AttentionMask(const AttentionTiles& call, int64_t offset) : call_(call), offset_(offset) {}

  // Whether it says which scores count, not what is added to them.
  __device__ bool chooses() const { return call_.mask_dtype == kBool; }

  // use(score, what the mask adds to it), as an element of the dtype of attention; of a mask of bool, 0 or -infinity.
  template <Orientation kOrientation, class F>
  __device__ void each_added(Scores& scores, int32_t row, int32_t column, F use) const {
    switch (call_.mask_dtype) {
      case kBool:
        return each_of<kOrientation, bool>(scores, row, column, use);
      case kFloat16:
        return each_of<kOrientation, float16>(scores, row, column, use);
      case kBfloat16:
        return each_of<kOrientation, bfloat16>(scores, row, column, use);
      case kFloat32:
        return each_of<kOrientation, float>(scores, row, column, use);
      default:
        return each_of<kOrientation, double>(scores, row, column, use);
    }
  }

 private:
  enum Dtype : int32_t { kBool = 0, kFloat16 = 9, kBfloat16 = 10, kFloat32 = 11 };

  // kMaskTogether elements are on their way before the first of them is looked at. What lies beyond the last query or
  // key is hidden later.
  template <Orientation kOrientation, class In, class F>
  __device__ void each_of(Scores& scores, int32_t row, int32_t column, F use) const {
    const AttentionTiles::Operand& mask = call_.operands[kMask];
    const In* const matrix = reinterpret_cast<const In*>(mask.data) + offset_;
    const auto at = [&](int i, int j) {
      const int32_t r = row + Tiles::row(i), c = column + Tiles::column(j);
      const int32_t q = kOrientation == Orientation::kRowsOfQueries ? r : c;
      const int32_t k = kOrientation == Orientation::kRowsOfQueries ? c : r;
      if constexpr (Tiles::kMaskTogether > 1)  // without a branch between them
        return matrix[min(q, call_.queries - 1) * mask.row + min(k, call_.keys - 1) * mask.column];
      else
        return q < call_.queries && k < call_.keys && !(call_.causal && k > q) ? matrix[q * mask.row + k * mask.column]
                                                                               : In{};
    };
#pragma unroll
    for (int i = 0; i < Tiles::kHeldRows; ++i)
#pragma unroll
      for (int first = 0; first < Tiles::kHeldColumns; first += Tiles::kMaskTogether) {
        In found[Tiles::kMaskTogether];
#pragma unroll
        for (int j = 0; j < Tiles::kMaskTogether; ++j) found[j] = at(i, first + j);
#pragma unroll
        for (int j = 0; j < Tiles::kMaskTogether; ++j) {
          if constexpr (kSame<In, bool>)
            use(scores(i, first + j), found[j] ? C{} : -static_cast<C>(__builtin_huge_valf()));
          else
            use(scores(i, first + j), C{widen(narrow<T>(convert<C>(found[j])))});
        }
      }
  }

  const AttentionTiles& call_;
  const int64_t offset_;
};

}  // namespace backplane::cuda

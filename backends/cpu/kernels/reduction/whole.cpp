#include "kernels/reduction/whole.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "kernels/reduction/reduce_plan.hpp"
#include "loops/whole_reduction.hpp"

namespace backplane::cpu {
namespace {

static_assert(kLongestLeaf == 2 * kPairwiseBlock);

int64_t piece_of(int64_t n) { return n > 2 * kPieceElements ? kPieceElements : n; }
int64_t half_of(int64_t n) { return n / 2 / kPairwiseBlock * kPairwiseBlock; }

void add_leaves(int64_t begin, int64_t n, std::vector<int64_t>& starts) {
  if (n <= kLongestLeaf) return starts.push_back(begin);
  add_leaves(begin, half_of(n), starts);
  add_leaves(begin + half_of(n), n - half_of(n), starts);
}

// Takes the leaves of n elements from `next` on; their accumulator is in the first one's place.
char* fold(const Reducer& reducer, int64_t item, int64_t n, char*& next) {
  if (n <= kLongestLeaf) return std::exchange(next, next + item);
  char* const left = fold(reducer, item, half_of(n), next);
  reducer.merge(left, fold(reducer, item, n - half_of(n), next), 1);
  return left;
}

}  // namespace

std::vector<int64_t> leaves_of_whole(int64_t n) {
  std::vector<int64_t> starts;
  for (int64_t at = 0; at < n; at += piece_of(n)) add_leaves(at, std::min(piece_of(n), n - at), starts);
  starts.push_back(n);
  return starts;
}

void fold_leaves(const Reducer& reducer, int64_t item, char* leaves, int64_t n) {
  std::vector<char*> pieces;
  for (int64_t at = 0; at < n; at += piece_of(n))
    pieces.push_back(fold(reducer, item, std::min(piece_of(n), n - at), leaves));
  for (size_t apart = 1; apart < pieces.size(); apart *= 2)
    for (size_t i = 0; i + apart < pieces.size(); i += 2 * apart) reducer.merge(pieces[i], pieces[i + apart], 1);
}

}  // namespace backplane::cpu

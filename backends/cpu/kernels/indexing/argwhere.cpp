// argwhere(Tensor x): one row of coordinates per element other than 0. How many there are is found out by a first pass;
// each piece of the second then knows where its rows begin.
#include <algorithm>
#include <numeric>
#include <vector>

#include "kernels/families.hpp"
#include "kernels/indexing/marks.hpp"

namespace backplane::cpu {
namespace {

constexpr int64_t kBlock = Marks::kBlock;
constexpr int64_t kPiece = 128 * kBlock;

// Without a branch, which would be guessed wrong half the time. `found` has room for one more than n.
int64_t places_of(const uint8_t* marks, int64_t first, int64_t n, int64_t* found) {
  int64_t hits = 0;
  for (int64_t i = 0; i < n; ++i) {
    found[hits] = first + i;
    hits += marks[i] != 0;
  }
  return hits;
}

// The coordinates of elements by their numbers, which rise: from one to the next most often the last one alone moves.
class Coordinates {
 public:
  explicit Coordinates(const bp_tensor* x) : rank_(x->dl.ndim), shape_(x->dl.shape) {}

  int64_t* write(const int64_t* numbers, int64_t n, int64_t* row) {
    if (rank_ == 1) return std::copy_n(numbers, n, row);
    for (int64_t i = 0; i < n && rank_ > 0; ++i, row += rank_) {
      advance(numbers[i] - number_);
      number_ = numbers[i];
      for (int32_t d = 0; d < rank_; ++d) row[d] = at_[d];
    }
    return row;
  }

 private:
  void advance(int64_t steps) {
    for (int32_t d = rank_ - 1; d >= 0 && steps > 0; --d) {
      at_[d] += steps;
      if (at_[d] < shape_[d]) return;
      steps = at_[d] / shape_[d];
      at_[d] %= shape_[d];
    }
  }

  int32_t rank_;
  const int64_t* shape_;
  int64_t number_ = 0;
  int64_t at_[kMaxRank] = {};
};

// Visits the blocks of piece `piece`: visit(its marks, the number of its first element, how many).
template <class Visit>
void for_each_block(const Marks& marks, int64_t piece, Visit&& visit) {
  uint8_t room[kBlock];
  const int64_t end = std::min((piece + 1) * kPiece, marks.count());
  for (int64_t first = piece * kPiece; first < end; first += kBlock) {
    const int64_t n = std::min(kBlock, end - first);
    visit(marks.read(first, n, room), first, n);
  }
}

// The number of hits in the tensor. The hits of piece i begin at starts[i].
int64_t count_hits(const bp_frame* frame, const Marks& marks, std::vector<int64_t>& starts) {
  plugin::parallel_for(frame, 0, static_cast<int64_t>(starts.size()), 1, [&](int64_t begin, int64_t end) {
    for (int64_t piece = begin; piece < end; ++piece) {
      int64_t hits = 0;
      for_each_block(marks, piece, [&](const uint8_t* block, int64_t, int64_t n) { hits += count_true(block, n); });
      starts[static_cast<size_t>(piece)] = hits;
    }
  });
  const int64_t hits = std::accumulate(starts.begin(), starts.end(), int64_t{0});
  std::exclusive_scan(starts.begin(), starts.end(), starts.begin(), int64_t{0});
  return hits;
}

int64_t* make_rows(const bp_frame* frame, bp_value* out, int64_t hits, int64_t rank) {
  const int64_t shape[2] = {hits, rank};
  return static_cast<int64_t*>(plugin::OutSlot(frame, out).allocate(BP_INT64, shape).data());
}

bp_status BP_CALL argwhere(const bp_frame* frame, const bp_value* args, int32_t, bp_value* outs, int32_t) {
  return plugin::guard(frame, [&] {
    const bp_tensor* x = plugin::as_tensor(args[0]);
    const int32_t rank = x->dl.ndim;
    const Marks marks(x);
    if (marks.count() <= kBlock) {
      uint8_t room[kBlock];
      int64_t found[kBlock + 1];
      const int64_t hits = places_of(marks.read(0, marks.count(), room), 0, marks.count(), found);
      Coordinates(x).write(found, hits, make_rows(frame, &outs[0], hits, rank));
      return;
    }
    const int64_t pieces = (marks.count() + kPiece - 1) / kPiece;
    std::vector<int64_t> starts(static_cast<size_t>(pieces));
    int64_t* rows = make_rows(frame, &outs[0], count_hits(frame, marks, starts), rank);
    plugin::parallel_for(frame, 0, pieces, 1, [&](int64_t begin, int64_t end) {
      for (int64_t piece = begin; piece < end; ++piece) {
        Coordinates coordinates(x);
        int64_t* row = rows + starts[static_cast<size_t>(piece)] * rank;
        for_each_block(marks, piece, [&](const uint8_t* block, int64_t first, int64_t n) {
          int64_t found[kBlock + 1];
          row = coordinates.write(found, places_of(block, first, n, found), row);
        });
      }
    });
  });
}

}  // namespace

const Family kArgwhere([](const Registrar& registrar) {
  registrar.kernel(BP_KERNEL("bp::argwhere", "cpu", argwhere, .flags = BP_KERNEL_STRIDED));
});

}  // namespace backplane::cpu

#include "fuse/wholes.hpp"

#include <algorithm>
#include <cstring>

namespace backplane::cpu::fuse {

WholePart::WholePart(WholeResults& results, size_t whole, int64_t begin)
    : results_(results),
      whole_(whole),
      at_(begin),
      leaf_(static_cast<size_t>(std::upper_bound(results.leaves_.begin(), results.leaves_.end(), begin) -
                                results.leaves_.begin()) -
            1) {}

void WholePart::add(const char* x, int64_t step, int64_t rows, int64_t columns) {
  if (step == columns * static_cast<int64_t>(results_.item(whole_))) return add_run(x, rows * columns);
  for (int64_t i = 0; i < rows; ++i) add_run(x + i * step, columns);
}

void WholePart::add_run(const char* x, int64_t n) {
  const Whole& whole = results_.program_.wholes[whole_];
  const auto item = static_cast<int64_t>(results_.item(whole_));
  while (n > 0) {
    const int64_t begin = results_.leaves_[leaf_], end = results_.leaves_[leaf_ + 1], some = std::min(n, end - at_);
    if (some == end - begin) {
      whole.reduction->leaf(whole.dtype, x, some, results_.accumulator(whole_, leaf_));
    } else {
      char* const shared = results_.shared(whole_, leaf_);
      if (shared == nullptr && pending_ == nullptr) pending_.reset(new char[static_cast<size_t>(kLongestLeaf * item)]);
      char* const into = shared != nullptr ? shared : pending_.get();
      std::memcpy(into + (at_ - begin) * item, x, static_cast<size_t>(some * item));
      if (shared == nullptr && at_ + some == end)
        whole.reduction->leaf(whole.dtype, into, end - begin, results_.accumulator(whole_, leaf_));
    }
    at_ += some;
    x += some * item;
    n -= some;
    if (at_ == end) ++leaf_;
  }
}

WholeResults::WholeResults(const Program& program, std::vector<int64_t> units)
    : program_(program), units_(std::move(units)), leaves_(leaves_of_whole(units_.back())) {
  for (const int64_t begin : units_) {
    const auto at = std::lower_bound(leaves_.begin(), leaves_.end(), begin);
    if (*at == begin) continue;
    const auto leaf = static_cast<size_t>(at - leaves_.begin()) - 1;
    if (shared_leaves_.empty() || shared_leaves_.back() != leaf) shared_leaves_.push_back(leaf);
  }
  for (size_t i = 0; i < program.wholes.size(); ++i) {
    accumulators_.emplace_back(new char[(leaves_.size() - 1) * item(i)]);
    shared_.emplace_back(new char[shared_leaves_.size() * kLongestLeaf * item(i)]);
  }
}

char* WholeResults::shared(size_t whole, size_t leaf) const {
  const auto found = std::lower_bound(shared_leaves_.begin(), shared_leaves_.end(), leaf);
  if (found == shared_leaves_.end() || *found != leaf) return nullptr;
  return shared_[whole].get() + static_cast<size_t>(found - shared_leaves_.begin()) * kLongestLeaf * item(whole);
}

std::vector<WholePart> WholeResults::part(size_t u) {
  std::vector<WholePart> parts;
  for (size_t i = 0; i < program_.wholes.size(); ++i) parts.emplace_back(*this, i, units_[u]);
  return parts;
}

void WholeResults::store(bp_value* outs) {
  for (size_t i = 0; i < program_.wholes.size(); ++i) {
    const Whole& whole = program_.wholes[i];
    if (outs[whole.output].tag != BP_TAG_TENSOR) continue;
    for (const size_t leaf : shared_leaves_)
      whole.reduction->leaf(whole.dtype, shared(i, leaf), leaves_[leaf + 1] - leaves_[leaf], accumulator(i, leaf));
    const bp_tensor* out = outs[whole.output].u.t;
    whole.reduction->store(whole.dtype, accumulator(i, 0), units_.back(), data_of(out));
  }
}

}  // namespace backplane::cpu::fuse

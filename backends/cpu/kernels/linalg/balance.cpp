// See balance.hpp.
#include "kernels/linalg/balance.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace backplane::cpu {
namespace {

constexpr int kNone = std::numeric_limits<int>::min() / 4;  // the exponent of 0

// Strongly connected components of the graph with an edge i -> j for each element (i, j) that is not 0, by Tarjan's
// algorithm (1972) with a stack of its own. A component comes after all that it leads to.
class Components {
 public:
  Components(const std::vector<int>& exponents, int64_t n)
      : exponents_(exponents), n_(n), order_(size(), -1), low_(size(), 0), next_(size(), 0), held_(size(), false) {
    for (int64_t i = 0; i < n; ++i)
      if (order_[at(i)] < 0) visit(i);
  }
  const std::vector<std::vector<int64_t>>& all() const { return found_; }

 private:
  static size_t at(int64_t i) { return static_cast<size_t>(i); }
  size_t size() const { return static_cast<size_t>(n_); }

  void enter(int64_t i) {
    order_[at(i)] = low_[at(i)] = count_++;
    path_.push_back(i);
    waiting_.push_back(i);
    held_[at(i)] = true;
  }
  void visit(int64_t root) {
    enter(root);
    while (!path_.empty()) {
      const int64_t i = path_.back();
      int64_t& j = next_[at(i)];
      while (j < n_ && (j == i || exponents_[at(i * n_ + j)] == kNone || order_[at(j)] >= 0)) {
        if (j != i && exponents_[at(i * n_ + j)] != kNone && held_[at(j)])
          low_[at(i)] = std::min(low_[at(i)], order_[at(j)]);
        ++j;
      }
      if (j < n_) {
        enter(j);
        continue;
      }
      path_.pop_back();
      if (!path_.empty()) low_[at(path_.back())] = std::min(low_[at(path_.back())], low_[at(i)]);
      if (low_[at(i)] == order_[at(i)]) close(i);
    }
  }
  void close(int64_t root) {
    std::vector<int64_t>& component = found_.emplace_back();
    int64_t i;
    do {
      i = waiting_.back();
      waiting_.pop_back();
      held_[at(i)] = false;
      component.push_back(i);
    } while (i != root);
  }

  const std::vector<int>& exponents_;
  int64_t n_;
  std::vector<int64_t> order_, low_, next_;
  std::vector<bool> held_;
  std::vector<int64_t> path_, waiting_;
  std::vector<std::vector<int64_t>> found_;
  int64_t count_ = 0;
};

class Balance {
 public:
  Balance(const double* magnitudes, int64_t n)
      : n_(n), exponents_(static_cast<size_t>(n * n), kNone), scale_(static_cast<size_t>(n), 0) {
    for (size_t k = 0; k < exponents_.size(); ++k)
      if (magnitudes[k] > 0) std::frexp(magnitudes[k], &exponents_[k]);
  }

  std::vector<int> run() {
    const Components components(exponents_, n_);
    for (const auto& component : components.all()) balance_within(component);
    const std::vector<int> within = scale_;
    int most = -static_cast<int>(std::ceil(std::log2(static_cast<double>(n_)))) - 1;
    for (int step = 8;; most += step, step *= 2) {
      for (const auto& component : components.all()) separate(component, most);
      const auto [least, largest] = std::minmax_element(scale_.begin(), scale_.end());
      if (*largest - *least <= kMostSpread) return scale_;
      scale_ = within;
    }
  }

 private:
  int& scale(int64_t i) { return scale_[static_cast<size_t>(i)]; }
  int exponent(int64_t i, int64_t j) const { return exponents_[static_cast<size_t>(i * n_ + j)]; }

  // Makes the largest elements of a row and its column alike, one index after the other, until nothing moves.
  void balance_within(const std::vector<int64_t>& component) {
    constexpr int kSweeps = 20, kMostOfOne = kMostSpread / 4;
    for (int sweep = 0; sweep < kSweeps; ++sweep) {
      bool moved = false;
      for (int64_t i : component) {
        int row = kNone, column = kNone;
        for (int64_t j : component) {
          if (j == i) continue;
          if (exponent(i, j) != kNone) row = std::max(row, exponent(i, j) + scale(j));
          if (exponent(j, i) != kNone) column = std::max(column, exponent(j, i) - scale(j));
        }
        if (row == kNone || column == kNone) continue;
        const int best = std::clamp((row - column) / 2, -kMostOfOne, kMostOfOne);
        if (std::abs(best - scale(i)) < 2) continue;
        scale(i) = best;
        moved = true;
      }
      if (!moved) return;
    }
  }
  // Lifts a component until no element that leads out of it exceeds 2^most.
  void separate(const std::vector<int64_t>& component, int most) {
    std::vector<bool> inside(static_cast<size_t>(n_), false);
    for (int64_t i : component) inside[static_cast<size_t>(i)] = true;
    int lift = 0;
    for (int64_t i : component)
      for (int64_t j = 0; j < n_; ++j)
        if (!inside[static_cast<size_t>(j)] && exponent(i, j) != kNone)
          lift = std::max(lift, exponent(i, j) + scale(j) - scale(i) - most);
    for (int64_t i : component) scale(i) += lift;
  }

  int64_t n_;
  std::vector<int> exponents_, scale_;
};

}  // namespace

std::vector<int> balancing_exponents(const double* magnitudes, int64_t n) { return Balance(magnitudes, n).run(); }

}  // namespace backplane::cpu

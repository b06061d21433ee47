#include "graph/dim.hpp"

#include <algorithm>

#include "backplane/error.hpp"

namespace backplane::core::graph {
namespace {

int64_t checked_add(int64_t a, int64_t b) {
  int64_t sum;
  BP_CHECK(!__builtin_add_overflow(a, b, &sum), OVERFLOW, "a size of a graph is beyond 64 bits: ", a, " + ", b);
  return sum;
}
int64_t checked_multiply(int64_t a, int64_t b) {
  int64_t product;
  BP_CHECK(!__builtin_mul_overflow(a, b, &product), OVERFLOW, "a size of a graph is beyond 64 bits: ", a, " * ", b);
  return product;
}

bool before(const DimTerm& a, const DimTerm& b) {
  return a.symbols.size() != b.symbols.size() ? a.symbols.size() > b.symbols.size() : a.symbols < b.symbols;
}

}  // namespace

Dim DimTable::from(DimTerms terms) {
  for (DimTerm& term : terms) std::sort(term.symbols.begin(), term.symbols.end());
  std::sort(terms.begin(), terms.end(), before);
  DimTerms kept;
  for (DimTerm& term : terms) {
    if (!kept.empty() && kept.back().symbols == term.symbols)
      kept.back().coefficient = checked_add(kept.back().coefficient, term.coefficient);
    else
      kept.push_back(std::move(term));
  }
  std::erase_if(kept, [](const DimTerm& term) { return term.coefficient == 0; });
  if (kept.empty()) return 0;
  if (kept.size() == 1 && kept[0].symbols.empty()) return kept[0].coefficient;
  const auto [place, is_new] = index_.try_emplace(kept, static_cast<uint32_t>(expressions_.size()));
  if (is_new) expressions_.push_back(std::move(kept));
  return Dim::expression(place->second);
}

DimTerms DimTable::terms(Dim dim) const {
  if (!dim.is_number()) return expressions_.at(dim.index());
  if (dim.number() == 0) return {};
  return {{dim.number(), {}}};
}

Dim DimTable::add(Dim a, Dim b, int64_t factor_of_b) {
  DimTerms sum = terms(a);
  for (DimTerm& term : terms(b))
    sum.push_back({checked_multiply(term.coefficient, factor_of_b), std::move(term.symbols)});
  return from(std::move(sum));
}

Dim DimTable::multiply(Dim a, Dim b) {
  DimTerms product;
  for (const DimTerm& left : terms(a)) {
    for (const DimTerm& right : terms(b)) {
      DimTerm term{checked_multiply(left.coefficient, right.coefficient), left.symbols};
      term.symbols.insert(term.symbols.end(), right.symbols.begin(), right.symbols.end());
      product.push_back(std::move(term));
    }
  }
  return from(std::move(product));
}

int64_t DimTable::evaluate(Dim dim, std::span<const int64_t> values) const {
  if (dim.is_number()) return dim.number();
  int64_t sum = 0;
  for (const DimTerm& term : expressions_.at(dim.index())) {
    int64_t product = term.coefficient;
    for (SymbolId symbol : term.symbols) product = checked_multiply(product, values[symbol]);
    sum = checked_add(sum, product);
  }
  return sum;
}

std::string DimTable::text(Dim dim, std::span<const std::string> names) const {
  if (dim.is_number()) return std::to_string(dim.number());
  std::string text;
  for (const DimTerm& term : expressions_.at(dim.index())) {
    const bool negative = term.coefficient < 0;
    text += text.empty() ? (negative ? "-" : "") : negative ? " - " : " + ";
    const std::string digits = std::to_string(term.coefficient).substr(negative);
    if (term.symbols.empty() || digits != "1") text += digits;
    for (size_t i = 0; i < term.symbols.size(); ++i) {
      if (i > 0 || digits != "1") text += "*";
      text += names[term.symbols[i]];
    }
  }
  return text;
}

}  // namespace backplane::core::graph

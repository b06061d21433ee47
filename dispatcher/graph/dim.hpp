// Sizes of a graph: numbers, or polynomials in named symbols.
//
// A Dim is eight bytes: a number, or the index of an expression in the table of its graph. Expressions are kept in one
// form (terms by symbols, none with coefficient zero), so equal ones have equal Dims. No locks: a table belongs to its
// graph.
#pragma once

#include <compare>
#include <cstdint>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace backplane::core::graph {

using SymbolId = uint32_t;

class Dim {
 public:
  constexpr Dim() = default;
  constexpr Dim(int64_t number) : code_(number) {}
  static constexpr Dim expression(uint32_t index) { return Dim(kFirst + index); }

  constexpr bool is_number() const { return code_ >= kFirst + (int64_t{1} << 32); }
  constexpr int64_t number() const { return code_; }  // where it is one
  constexpr uint32_t index() const { return static_cast<uint32_t>(code_ - kFirst); }
  constexpr int64_t code() const { return code_; }  // as it lies in an Argument's list
  constexpr bool operator==(const Dim&) const = default;

 private:
  static constexpr int64_t kFirst = std::numeric_limits<int64_t>::min();
  int64_t code_ = 0;
};

struct DimTerm {
  int64_t coefficient;
  std::vector<SymbolId> symbols;  // ascending, one per power; none: the constant
  auto operator<=>(const DimTerm&) const = default;
};
using DimTerms = std::vector<DimTerm>;  // by descending degree, then by symbols

class DimTable {
 public:
  Dim symbol(SymbolId symbol) { return from({{1, {symbol}}}); }
  // In any order; equal terms are added up. Throws BP_ERROR_OVERFLOW.
  Dim from(DimTerms terms);
  DimTerms terms(Dim dim) const;
  Dim add(Dim a, Dim b, int64_t factor_of_b = 1);
  Dim multiply(Dim a, Dim b);

  // `values`: of every symbol. Throws BP_ERROR_OVERFLOW.
  int64_t evaluate(Dim dim, std::span<const int64_t> values) const;
  // "2*batch + 1"; `names`: of every symbol.
  std::string text(Dim dim, std::span<const std::string> names) const;
  size_t size() const { return expressions_.size(); }

 private:
  std::vector<DimTerms> expressions_;
  std::map<DimTerms, uint32_t> index_;
};

}  // namespace backplane::core::graph

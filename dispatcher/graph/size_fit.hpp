// From numbers to expressions: which size in the symbols of a graph has these values at several choices of them.
//
// Looked for, in this order: a number, a multiple of a product of symbols and a number, two such products, the
// quotient of a multiple of one symbol by a number up to 16, a multiple of such a quotient and a number, and three
// products. Quotients that are found become symbols of the graph.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <vector>

#include "graph/graph.hpp"

namespace backplane::core::graph {

class SizeFit {
 public:
  // `choices`: the values of the graph's symbols at each choice. A user named all symbols.
  SizeFit(Graph& graph, std::span<const std::vector<int64_t>> choices);
  // `values`: one per choice.
  std::optional<Dim> fit(const std::vector<int64_t>& values);
  // Numbers that vary so are this expression, which nobody has to look for.
  void know(const std::vector<int64_t>& values, Dim expression);
  // The quotient, whose values these are, as a symbol of the graph.
  Dim quotient_of(Dim numerator, int64_t divisor, const std::vector<int64_t>& values);

 private:
  struct Product {
    std::vector<SymbolId> symbols;
    std::vector<int64_t> values;
  };
  std::optional<Dim> find(const std::vector<int64_t>& values);
  std::optional<Dim> multiple(const std::vector<int64_t>& values, bool with_constant);
  std::optional<Dim> two_products(const std::vector<int64_t>& values);
  std::optional<Dim> three_products(const std::vector<int64_t>& values);
  std::optional<Dim> quotient(const std::vector<int64_t>& values);
  std::optional<Dim> multiple_of_quotient(const std::vector<int64_t>& values);
  std::optional<Dim> remainder(const std::vector<int64_t>& values);
  void add_symbol(std::vector<int64_t> values);
  Dim sum(std::initializer_list<std::pair<int64_t, const Product*>> terms, int64_t constant);

  Graph& graph_;
  std::vector<std::vector<int64_t>> symbols_;  // values at each choice
  std::vector<Product> products_;              // by degree
  std::map<std::vector<int64_t>, std::optional<Dim>> known_;
};

}  // namespace backplane::core::graph

#include "graph/size_fit.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "graph/sizes.hpp"

namespace backplane::core::graph {
namespace {

constexpr size_t kMaxDegree = 3, kMaxProducts = 200;
constexpr int64_t kLargest = int64_t{1} << 55;  // of a product's values: two of them multiply within 128 bits
constexpr int64_t kMaxDivisor = 16;
constexpr int64_t kMostFactor = 128;  // kLargest times that is an int64_t
__extension__ typedef __int128 Wide;

}  // namespace

SizeFit::SizeFit(Graph& graph, std::span<const std::vector<int64_t>> choices) : graph_(graph) {
  for (size_t s = 0; s < graph.symbols().size(); ++s) {
    std::vector<int64_t> values;
    for (const std::vector<int64_t>& choice : choices) values.push_back(choice[s]);
    add_symbol(std::move(values));
  }
}

// With its products with all that are known.
void SizeFit::add_symbol(std::vector<int64_t> values) {
  const auto id = static_cast<SymbolId>(symbols_.size());
  symbols_.push_back(values);
  const auto add = [&](const Product* with) {
    Product made{with ? with->symbols : std::vector<SymbolId>{}, values};
    made.symbols.push_back(id);
    bool small = products_.size() < kMaxProducts;
    for (size_t i = 0; with && i < values.size(); ++i)
      small = small && !__builtin_mul_overflow(values[i], with->values[i], &made.values[i]);
    for (const int64_t v : made.values) small = small && std::abs(v) < kLargest;
    if (small) products_.push_back(std::move(made));
  };
  add(nullptr);
  // Those that the loop adds count too: the symbol's powers.
  for (size_t i = 0; i < products_.size(); ++i) {
    const Product with = products_[i];
    if (with.symbols.size() < kMaxDegree) add(&with);
  }
  std::stable_sort(products_.begin(), products_.end(),
                   [](const Product& a, const Product& b) { return a.symbols.size() < b.symbols.size(); });
}

Dim SizeFit::sum(std::initializer_list<std::pair<int64_t, const Product*>> terms, int64_t constant) {
  DimTerms all{{constant, {}}};
  for (const auto& [coefficient, product] : terms) all.push_back({coefficient, product->symbols});
  return graph_.sizes.from(std::move(all));
}

std::optional<Dim> SizeFit::fit(const std::vector<int64_t>& values) {
  const auto [place, is_new] = known_.try_emplace(values);
  if (is_new) place->second = find(values);
  return place->second;
}

void SizeFit::know(const std::vector<int64_t>& values, Dim expression) {
  if (std::any_of(values.begin(), values.end(), [&](int64_t v) { return v != values[0]; })) known_[values] = expression;
}

Dim SizeFit::quotient_of(Dim numerator, int64_t divisor, const std::vector<int64_t>& values) {
  const Dim made = graph_.quotient(numerator, divisor);
  if (symbols_.size() < graph_.symbols().size()) add_symbol(values);
  return made;
}

std::optional<Dim> SizeFit::find(const std::vector<int64_t>& values) {
  if (std::all_of(values.begin(), values.end(), [&](int64_t v) { return v == values[0]; }))
    return Dim(values[0]).is_number() ? std::optional(Dim(values[0])) : std::nullopt;
  if (const auto found = multiple(values, false)) return found;
  if (const auto found = multiple(values, true)) return found;
  if (const auto found = two_products(values)) return found;
  if (const auto found = quotient(values)) return found;
  if (const auto found = multiple_of_quotient(values)) return found;
  if (const auto found = remainder(values)) return found;
  return three_products(values);
}

std::optional<Dim> SizeFit::multiple(const std::vector<int64_t>& values, bool with_constant) {
  for (const Product& p : products_) {
    const auto low = static_cast<size_t>(std::min_element(p.values.begin(), p.values.end()) - p.values.begin());
    const auto high = static_cast<size_t>(std::max_element(p.values.begin(), p.values.end()) - p.values.begin());
    const Wide rise = Wide{values[high]} - values[low], run = Wide{p.values[high]} - p.values[low];
    if (run == 0 || rise == 0 || rise % run != 0) continue;
    const Wide factor = rise / run, constant = values[low] - factor * p.values[low];
    if (!with_constant && constant != 0) continue;
    bool all = constant > -kLargest && constant < kLargest;
    for (size_t i = 0; i < values.size(); ++i) all = all && values[i] == factor * p.values[i] + constant;
    if (all) return sum({{static_cast<int64_t>(factor), &p}}, static_cast<int64_t>(constant));
  }
  return {};
}

// Both factors from two rows of differences, where these are independent; the other rows must agree.
std::optional<Dim> SizeFit::two_products(const std::vector<int64_t>& values) {
  const size_t n = values.size();
  if (n < 5) return {};
  const auto row = [](const std::vector<int64_t>& v, size_t i) { return Wide{v[i]} - v[0]; };
  for (size_t a = 0; a < products_.size(); ++a) {
    for (size_t b = a + 1; b < products_.size(); ++b) {
      const auto &x = products_[a].values, &y = products_[b].values;
      size_t second = 2;
      const auto determinant = [&](size_t i) { return row(x, 1) * row(y, i) - row(x, i) * row(y, 1); };
      while (second < n && determinant(second) == 0) ++second;
      if (second == n) continue;
      const Wide d = determinant(second);
      const Wide of_x = row(values, 1) * row(y, second) - row(values, second) * row(y, 1);
      const Wide of_y = row(x, 1) * row(values, second) - row(x, second) * row(values, 1);
      if (of_x % d != 0 || of_y % d != 0) continue;
      const Wide fx = of_x / d, fy = of_y / d, constant = values[0] - fx * x[0] - fy * y[0];
      const auto small = [](Wide v) { return v > -kLargest && v < kLargest; };
      bool all = small(fx) && small(fy) && small(constant);
      for (size_t i = 0; all && i < n; ++i) all = values[i] == fx * x[i] + fy * y[i] + constant;
      if (all)
        return sum({{static_cast<int64_t>(fx), &products_[a]}, {static_cast<int64_t>(fy), &products_[b]}},
                   static_cast<int64_t>(constant));
    }
  }
  return {};
}

// As (h - 1) * (w - 1): the factor of a product of two symbols from where that is largest, the rest as above.
std::optional<Dim> SizeFit::three_products(const std::vector<int64_t>& values) {
  if (std::any_of(values.begin(), values.end(), [](int64_t v) { return v <= -kLargest || v >= kLargest; })) return {};
  for (const Product& p : products_) {
    if (p.symbols.size() != 2) continue;
    const auto at = static_cast<size_t>(std::max_element(p.values.begin(), p.values.end()) - p.values.begin());
    if (p.values[at] == 0) continue;
    const auto factor =
        static_cast<int64_t>(std::round(static_cast<double>(values[at]) / static_cast<double>(p.values[at])));
    if (factor == 0 || std::abs(factor) > kMostFactor) continue;
    std::vector<int64_t> rest = values;
    for (size_t i = 0; i < rest.size(); ++i) rest[i] -= factor * p.values[i];
    if (const auto found = two_products(rest)) return graph_.sizes.add(*found, sum({{factor, &p}}, 0));
  }
  return {};
}

// (a * s + b) // q: q and a from the slope over the widest range, b from what every value leaves for it. Over a short
// range, which tells no slopes apart, the division has to come out even at every size, or more sizes than q to be
// known.
std::optional<Dim> SizeFit::quotient(const std::vector<int64_t>& values) {
  for (SymbolId s = 0; s < symbols_.size(); ++s) {
    const std::vector<int64_t> of = symbols_[s];
    const auto low = static_cast<size_t>(std::min_element(of.begin(), of.end()) - of.begin());
    const auto high = static_cast<size_t>(std::max_element(of.begin(), of.end()) - of.begin());
    const int64_t run = of[high] - of[low], rise = values[high] - values[low];
    const bool is_short = run < 2 * kMaxDivisor;
    if (run == 0 || (is_short && values.size() < 3)) continue;
    for (int64_t q = 2; q <= kMaxDivisor; ++q) {
      const auto a = static_cast<int64_t>((Wide{2} * q * rise + (rise < 0 ? -run : run)) / (Wide{2} * run));
      if (a == 0 || std::gcd(a, q) != 1) continue;
      Wide least = -kLargest, most = kLargest;
      bool even = true;
      const auto rest_of = [&](size_t i) { return Wide{q} * values[i] - Wide{a} * of[i]; };
      for (size_t i = 0; i < values.size(); ++i) {
        const Wide rest = rest_of(i);
        even = even && rest == rest_of(0);
        least = std::max(least, rest);
        most = std::min(most, rest + q - 1);
      }
      if (least > most || (is_short && !even && values.size() <= static_cast<size_t>(q))) continue;
      const auto b = static_cast<int64_t>(std::clamp(Wide{0}, least, most));
      const Dim made = graph_.quotient(graph_.sizes.from({{a, {s}}, {b, {}}}), q);
      if (symbols_.size() < graph_.symbols().size()) add_symbol(values);
      return made;
    }
  }
  return {};
}

// As n // 2 * 2: the factor divides every difference of two values.
std::optional<Dim> SizeFit::multiple_of_quotient(const std::vector<int64_t>& values) {
  int64_t factor = 0;
  for (const int64_t v : values) {
    if (std::abs(v) >= kLargest) return {};
    factor = std::gcd(factor, v - values[0]);
  }
  if (factor < 2) return {};
  const int64_t constant = values[0] - floor_divide(values[0], factor) * factor;
  std::vector<int64_t> quotients;
  for (const int64_t v : values) quotients.push_back((v - constant) / factor);
  const auto found = quotient(quotients);
  return found ? std::optional(graph_.sizes.add(Dim(constant), *found, factor)) : std::nullopt;
}

// As the padding that fills a last window: a multiple of (s + b) % q and a constant, where every remainder was seen.
std::optional<Dim> SizeFit::remainder(const std::vector<int64_t>& values) {
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  if (*low < -kLargest || *high > kLargest) return {};
  for (SymbolId s = 0; s < symbols_.size(); ++s) {
    const std::vector<int64_t> of = symbols_[s];
    if (*std::min_element(of.begin(), of.end()) < 0) continue;
    for (int64_t q = 2; q <= kMaxDivisor; ++q) {
      std::vector<std::optional<int64_t>> by_remainder(static_cast<size_t>(q));
      bool same = values.size() > static_cast<size_t>(q);
      for (size_t i = 0; same && i < values.size(); ++i) {
        std::optional<int64_t>& known = by_remainder[static_cast<size_t>(of[i] % q)];
        same = !known || *known == values[i];
        known = values[i];
      }
      if (!same || std::count(by_remainder.begin(), by_remainder.end(), std::nullopt) > 0) continue;
      for (int64_t b = 0; b < q; ++b) {
        const auto value = [&](int64_t rest) { return *by_remainder[static_cast<size_t>((rest + q - b) % q)]; };
        const int64_t factor = value(1) - value(0);
        bool all = true;
        for (int64_t rest = 0; rest < q; ++rest) all = all && value(rest) == value(0) + factor * rest;
        if (!all) continue;
        const Dim numerator = graph_.sizes.from({{1, {s}}, {b, {}}});
        std::vector<int64_t> quotients;
        for (const int64_t v : of) quotients.push_back((v + b) / q);
        const Dim rest = graph_.sizes.add(numerator, quotient_of(numerator, q, quotients), -q);
        return graph_.sizes.add(Dim(value(0)), rest, factor);
      }
    }
  }
  return {};
}

}  // namespace backplane::core::graph

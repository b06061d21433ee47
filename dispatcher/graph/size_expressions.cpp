#include "graph/size_expressions.hpp"

#include <algorithm>

#include "graph/sizes.hpp"

namespace backplane::core::graph {
namespace {

using Kind = SizeUse::Kind;

Location location_of(const SizeUse& use) { return {use.line.file, use.line.function, use.line.line}; }

}  // namespace

std::optional<TraceDifference> difference_of_uses(std::span<const SizeUse> first, std::span<const SizeUse> other) {
  const size_t common = std::min(first.size(), other.size());
  for (size_t i = 0; i < common; ++i) {
    const SizeUse &a = first[i], &b = other[i];
    if (a.kind != b.kind || a.left != b.left || a.right != b.right || a.what != b.what)
      return TraceDifference{"the function computes something else of the sizes", location_of(b)};
    if (a.is_comparison() && a.value != b.value)
      return TraceDifference{"the function compares sizes, which has another outcome", location_of(b)};
  }
  if (first.size() == other.size()) return {};
  return TraceDifference{"the function computes more or less of the sizes",
                         location_of(first.size() > common ? first[common] : other[common])};
}

SizeExpressions::SizeExpressions(Graph& graph, SizeFit& fit, std::span<const std::span<const SizeUse>> runs)
    : graph_(graph), fit_(fit), runs_(runs) {
  for (size_t use = 0; !runs.empty() && use < runs[0].size(); ++use) {
    try {
      found_.push_back(find(use));
    } catch (const Error&) {  // beyond 64 bits
      found_.push_back({});
    }
    if (found_.back() && !found_.back()->is_number()) fit_.know(values(use), *found_.back());
  }
}

std::vector<int64_t> SizeExpressions::values(size_t use) const {
  std::vector<int64_t> values;
  for (const std::span<const SizeUse> run : runs_) values.push_back(run[use].value);
  return values;
}

std::optional<Dim> SizeExpressions::of(const SizeUse::Operand& operand) const {
  return operand.use == SizeUse::Operand::kNone ? Dim(operand.number) : found_[operand.use];
}

bool SizeExpressions::is_steady(size_t use) const {
  if (found_[use]) return found_[use]->is_number();
  const std::vector<int64_t> all = values(use);
  return std::all_of(all.begin(), all.end(), [&](int64_t v) { return v == all[0]; }) && is_steady(runs_[0][use].left) &&
         is_steady(runs_[0][use].right);
}

bool SizeExpressions::is_steady(const SizeUse::Operand& operand) const {
  return operand.use == SizeUse::Operand::kNone || is_steady(operand.use);
}

std::optional<Dim> SizeExpressions::find(size_t use) {
  const SizeUse& own = runs_[0][use];
  if (own.kind == Kind::kSize) return fit_.fit(values(use));
  if (own.kind > Kind::kRemainder) return {};
  const std::optional<Dim> left = of(own.left), right = of(own.right);
  if (!left || !right) return {};
  switch (own.kind) {
    case Kind::kAdd:
      return graph_.sizes.add(*left, *right);
    case Kind::kSubtract:
      return graph_.sizes.add(*left, *right, -1);
    case Kind::kMultiply:
      return graph_.sizes.multiply(*left, *right);
    default:
      break;
  }
  if (!right->is_number() || right->number() <= 0) return {};
  if (own.kind == Kind::kQuotient) return fit_.quotient_of(*left, right->number(), values(use));
  if (left->is_number()) return left->number() - right->number() * floor_divide(left->number(), right->number());
  std::vector<int64_t> quotients = values(own.left.use);
  for (size_t run = 0; run < runs_.size(); ++run)
    quotients[run] = (quotients[run] - runs_[run][use].value) / right->number();
  const Dim quotient = fit_.quotient_of(*left, right->number(), quotients);
  return graph_.sizes.add(*left, graph_.sizes.multiply(quotient, *right), -1);
}

}  // namespace backplane::core::graph

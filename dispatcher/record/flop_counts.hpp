// Where a primitive computes, by its family: the elements that count one operation each.
#pragma once

#include <optional>
#include <string_view>
#include <utility>

namespace backplane::core {

enum class Counts { kNothing, kResult, kArgument, kProduct };

inline std::optional<Counts> counts_of(std::string_view family) {
  static constexpr std::pair<std::string_view, Counts> kFamilies[] = {
      {"unary", Counts::kResult},    {"binary", Counts::kResult},       {"compare", Counts::kResult},
      {"ternary", Counts::kResult},  {"cumulative", Counts::kResult},   {"random_bits", Counts::kResult},
      {"reduce", Counts::kArgument}, {"arg_reduce", Counts::kArgument}, {"matmul", Counts::kProduct},
      {"full", Counts::kNothing},    {"iota", Counts::kNothing},        {"cast", Counts::kNothing},
      {"copy", Counts::kNothing},    {"index", Counts::kNothing},       {"index_put", Counts::kNothing},
      {"concat", Counts::kNothing},  {"slice_put", Counts::kNothing},   {"sort", Counts::kNothing}};
  for (const auto& [name, counts] : kFamilies)
    if (name == family) return counts;
  return std::nullopt;
}

}  // namespace backplane::core

// Ints that are the same in every call: arithmetic on constants, as record/builtin_numbers.cpp does it, for mistakes
// that no call survives.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "check/program.hpp"

namespace backplane::codegen {

__extension__ typedef __int128 WideInt;  // holds what two ints of formulas give, but for products and powers

// nullopt for other types.
std::optional<WideInt> int_of(const Const& value);
// As a constant; of one that exceeds the ints of formulas, nullopt.
std::optional<Const> const_of(WideInt value);

struct KnownInt {
  std::optional<WideInt> value;  // nullopt: it depends on the call, or there is none
  std::string fault;             // why no call computes it
};
// The builtin `op` (add, mul, floordiv, ...) of two ints. Either may depend on the call.
KnownInt compute(std::string_view op, std::optional<WideInt> a, std::optional<WideInt> b);

// The number of elements that the list `node` has at most; nullopt where that depends on the call.
std::optional<size_t> most_elements(const Program& program, uint32_t node);

}  // namespace backplane::codegen

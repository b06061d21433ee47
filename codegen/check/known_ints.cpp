// See known_ints.hpp.
#include "check/known_ints.hpp"

namespace backplane::codegen {
namespace {

constexpr size_t kMaxRank = 64;  // of a Tensor; record/shape_rules.hpp
constexpr int kMaxJoined = 8;    // lists that are looked into, joined by +
constexpr const char* kBeyond =
    "the result exceeds the ints of formulas, which go from -2**63 to 2**64 - 1; write a float";

bool fits(WideInt value) { return value >> 64 == 0 || value >> 63 == -1; }

bool power(WideInt base, WideInt exponent, WideInt* result) {
  for (*result = 1; exponent > 0; exponent >>= 1) {
    if ((exponent & 1) && __builtin_mul_overflow(*result, base, result)) return false;
    if (exponent > 1 && __builtin_mul_overflow(base, base, &base)) return false;
  }
  return true;
}

std::optional<size_t> joined(const Program& program, uint32_t node, int& left) {
  const Node& n = program.nodes()[node];
  if (n.kind == BP_NODE_LIST) return n.inputs.size();
  if (n.kind == BP_NODE_SHAPE) return kMaxRank;
  if (n.kind != BP_NODE_BUILTIN || program.names()[static_cast<size_t>(n.imm)] != "concat" || --left < 0)
    return std::nullopt;
  size_t count = 0;
  for (const uint32_t input : n.inputs) {
    const std::optional<size_t> part = joined(program, input, left);
    if (!part) return std::nullopt;
    count += *part;
  }
  return count;
}

}  // namespace

std::optional<WideInt> int_of(const Const& value) {
  if (value.tag != BP_TAG_INT) return std::nullopt;
  return value.large ? WideInt{static_cast<uint64_t>(value.integer)} : WideInt{value.integer};
}

std::optional<Const> const_of(WideInt value) {
  if (!fits(value)) return std::nullopt;
  return Const{BP_TAG_INT, static_cast<int64_t>(value), 0, {}, value >> 63 == 1};
}

KnownInt compute(std::string_view op, std::optional<WideInt> a, std::optional<WideInt> b) {
  const bool divides = op == "floordiv" || op == "mod";
  if (divides && b && *b == 0)
    return {{}, std::string(op == "mod" ? "'%'" : "'//'") + " divides by 0 in every call; give another divisor"};
  if (!a || !b) return {};
  WideInt value = 0;
  bool ok = true;
  if (op == "add") {
    value = *a + *b;
  } else if (op == "sub") {
    value = *a - *b;
  } else if (op == "mul") {
    ok = !__builtin_mul_overflow(*a, *b, &value);
  } else if (op == "pow") {
    if (*b < 0) return {};
    ok = power(*a, *b, &value);
  } else if (divides) {
    const WideInt rest = *a % *b;
    const bool down = rest != 0 && (rest < 0) != (*b < 0);
    value = op == "mod" ? rest + (down ? *b : 0) : *a / *b - (down ? 1 : 0);
  } else {
    return {};
  }
  if (!ok || !fits(value)) return {{}, kBeyond};
  return {value, {}};
}

std::optional<size_t> most_elements(const Program& program, uint32_t node) {
  int left = kMaxJoined;
  return joined(program, node, left);
}

}  // namespace backplane::codegen

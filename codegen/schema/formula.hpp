// The syntax tree of a formula, before names and types are looked up. Grammar: docs/reference/ops-yaml.md.
//
// Trees are owned by unique_ptr; offsets count within the Text that was parsed.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "schema/lexer.hpp"

namespace backplane::codegen {

struct Expr;
using ExprPtr = std::unique_ptr<Expr>;

struct Keyword {
  std::string name;
  size_t offset = 0;
  ExprPtr value;
};

struct Expr {
  enum class Kind : uint8_t {
    kInt,        // number
    kFloat,      // number
    kString,     // name
    kName,       // name (also true, false, none, inf, nan, pi and dtype names)
    kAttribute,  // children[0] . name
    kCall,       // name(children..., keywords); dotted names and ns::name allowed
    kUnary,      // name is the builtin that computes it on numbers: neg, not
    kBinary,     // name likewise: add, mul, eq, and, ...; matmul is none
    kIf,         // children: condition, then, else
    kList,       // children
    kIndex,      // children: list, index
    kSlice,      // children: list, begin or null, end or null
    kLet,        // name = children[0]; children[1]
    kMap,        // name in children[0]: children[1]
    kFold        // accumulator `name` = children[0], `element` in children[1]: children[2]
  };
  Kind kind = Kind::kName;
  uint16_t depth = 1;  // of the tree below, which the parser bounds
  size_t offset = 0;
  std::string name;
  std::string element;
  std::string_view symbol;  // of an operator, as written; kUnary and kBinary
  double number = 0;
  int64_t integer = 0;
  bool large = false;  // of an int: `integer` holds the bits of one from 2^63 on
  std::vector<ExprPtr> children;
  std::vector<Keyword> keywords;  // of a call
};

// nullptr with a diagnostic if the text is not a formula.
ExprPtr parse_formula(const Text& text, Diagnostics& diagnostics);

// A deep copy, for formulas that serve twice.
ExprPtr copy(const Expr& expr);

}  // namespace backplane::codegen

// What the code around the ops of a traced function did with sizes: arithmetic, comparisons, anything else.
//
// A run of the function gives a list of these. Two runs at other sizes are the same kind of call only if their lists
// have the same form and their comparisons the same outcomes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace backplane {

// Where in a program somebody called an op.
struct SourceLine {
  std::string file;
  std::string function;
  int32_t line = 0;
};

struct SizeUse {
  enum class Kind : uint8_t {
    kSize,  // read of a tensor
    kAdd,
    kSubtract,
    kMultiply,
    kQuotient,  // rounded down
    kRemainder,
    kEqual,
    kLess,
    kLessEqual,
    kFloat,  // a floating number that was computed of sizes
    kOther   // a use whose outcome is unknown at other sizes
  };
  // Another use, or a number.
  struct Operand {
    static constexpr uint32_t kNone = 0xffffffffu;
    uint32_t use = kNone;
    int64_t number = 0;
    bool operator==(const Operand&) const = default;
  };
  Kind kind;
  Operand left, right;
  int64_t value = 0;  // the result: of a comparison 0 or 1, of kFloat its bits
  std::string what;   // kOther: "calls hash() of a size"
  SourceLine line;

  bool is_comparison() const { return kind >= Kind::kEqual && kind <= Kind::kLessEqual; }
};

// The uses of one run, and the facts about them that the graph for any size determines.
struct SizeNotes {
  std::vector<SizeUse> uses;
  // Per use: its expression in the graph's sizes, for Graph::size_at. Absent: it is not an integer, or not known.
  std::vector<std::optional<int64_t>> expressions;
  // The first use whose outcome is not known at other sizes, with its line. If empty, the graph is valid at every size
  // that its constraints accept.
  std::string unknown;
};

}  // namespace backplane

// Which ops are links of the fuser's chains (fuse/chains.hpp): arithmetic of float32 and float64 that is rounded once.
//
// The file of an op's row makes it known through a ChainLink at namespace scope.
#pragma once

#include <cstdint>
#include <string_view>

namespace backplane::cpu {

// What a link makes of the result so far and the next operand; "swapped": of the operand and the result. A square root
// has no further operand: it is a link of machine code alone (fuse/machine_code.hpp).
enum class Link : uint8_t { kNone, kAdd, kMultiply, kSubtract, kDivide, kSubtractSwapped, kDivideSwapped, kSquareRoot };

// Lives as long as the process.
class ChainLink {
 public:
  // What the link's second operand is: the op's second one, the first again, or a number.
  enum class Second : uint8_t { kOperand, kFirst, kNumber, kNone };
  ChainLink(const char* op, Link link_of_op, Second second_operand = Second::kOperand, double second_number = 0)
      : link(link_of_op), second(second_operand), number(second_number), op_(op), next_(first_) {
    first_ = this;
  }
  ChainLink(const ChainLink&) = delete;
  ChainLink& operator=(const ChainLink&) = delete;

  static const ChainLink* find(std::string_view op) {
    const ChainLink* each = first_;
    while (each != nullptr && each->op_ != op) each = each->next_;
    return each;
  }
  const Link link;
  const Second second;
  const double number;

 private:
  static inline constinit const ChainLink* first_ = nullptr;
  std::string_view op_;
  const ChainLink* next_;
};

}  // namespace backplane::cpu

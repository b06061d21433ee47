// Which ops are links of the fuser's chains (fuse/chains.hpp): arithmetic of float32 and float64 that is rounded once.
//
// The file of an op's row makes it known through a ChainLink at namespace scope.
#pragma once

#include <cstdint>
#include <string_view>

namespace backplane::cpu {

// What a link makes of the result so far and the next operand; "swapped": of the operand and the result.
enum class Link : uint8_t { kNone, kAdd, kMultiply, kSubtract, kDivide, kSubtractSwapped, kDivideSwapped };

// Lives as long as the process.
class ChainLink {
 public:
  // squares: the op has one operand, which is both of the link's.
  ChainLink(const char* op, Link link, bool squares = false) : squares(squares), link(link), op_(op), next_(first_) {
    first_ = this;
  }
  ChainLink(const ChainLink&) = delete;
  ChainLink& operator=(const ChainLink&) = delete;

  static const ChainLink* find(std::string_view op) {
    const ChainLink* each = first_;
    while (each != nullptr && each->op_ != op) each = each->next_;
    return each;
  }
  const bool squares;
  const Link link;

 private:
  static inline constinit const ChainLink* first_ = nullptr;
  std::string_view op_;
  const ChainLink* next_;
};

}  // namespace backplane::cpu

// setp in every comparison and type, logic on predicates (PTX ISA, section "Comparison and Selection").
#include <functional>

#include "lanes.hpp"

namespace emulator {
namespace {

enum class Logic { kNone, kAnd, kOr, kXor };

template <class T, auto F, Logic kLogic>
void set(Warp& warp, const Instruction& instruction) {
  const uint64_t *a = warp.column(instruction.in[0]), *b = warp.column(instruction.in[1]);
  uint32_t bits = 0, others = 0;
  each_lane(warp.mask(), [&](int lane) {
    const bool holds = F(slot<T>(a, lane), slot<T>(b, lane));
    bits |= uint32_t{holds} << lane;
  });
  others = ~bits;
  if constexpr (kLogic != Logic::kNone) {
    const auto with = static_cast<uint32_t>(*warp.column(instruction.in[2]));
    const auto join = [&](uint32_t x) {
      return kLogic == Logic::kAnd ? x & with : kLogic == Logic::kOr ? x | with : x ^ with;
    };
    bits = join(bits), others = join(others);
  }
  set_predicate(warp, instruction.out[0], bits);
  if (instruction.count == 2) set_predicate(warp, instruction.out[1], others);  // setp p|q
}

template <class T, auto F>
void add(Handlers& h, const std::string& compare, const std::string& type) {
  h["setp." + compare + "." + type] = set<T, F, Logic::kNone>;
  h["setp." + compare + ".and." + type] = set<T, F, Logic::kAnd>;
  h["setp." + compare + ".or." + type] = set<T, F, Logic::kOr>;
  h["setp." + compare + ".xor." + type] = set<T, F, Logic::kXor>;
}

template <class T>
bool less(T a, T b) {
  return a < b;
}
template <class T>
bool less_equal(T a, T b) {
  return a <= b;
}
template <class T>
bool greater(T a, T b) {
  return b < a;
}
template <class T>
bool greater_equal(T a, T b) {
  return b <= a;
}
template <class T>
bool equal(T a, T b) {
  return a == b;
}
// With one NaN: false of "ne", true of the unordered comparisons.
template <class T>
bool ordered(T a, T b) {
  return a == a && b == b;
}
template <class T>
bool unequal(T a, T b) {
  return ordered(a, b) && a != b;
}
template <class T, bool (*F)(T, T)>
bool unordered_or(T a, T b) {
  return !ordered(a, b) || F(a, b);
}
template <class T>
bool unordered(T a, T b) {
  return !ordered(a, b);
}

template <class T>
void add_order(Handlers& h, const std::string& t) {
  add<T, equal<T>>(h, "eq", t), add<T, unequal<T>>(h, "ne", t);
  add<T, less<T>>(h, "lt", t), add<T, less_equal<T>>(h, "le", t);
  add<T, greater<T>>(h, "gt", t), add<T, greater_equal<T>>(h, "ge", t);
  if constexpr (std::is_unsigned_v<T>) {
    add<T, less<T>>(h, "lo", t), add<T, less_equal<T>>(h, "ls", t);
    add<T, greater<T>>(h, "hi", t), add<T, greater_equal<T>>(h, "hs", t);
  }
  if constexpr (std::is_floating_point_v<T>) {
    add<T, unordered_or<T, equal<T>>>(h, "equ", t), add<T, unordered_or<T, unequal<T>>>(h, "neu", t);
    add<T, unordered_or<T, less<T>>>(h, "ltu", t), add<T, unordered_or<T, less_equal<T>>>(h, "leu", t);
    add<T, unordered_or<T, greater<T>>>(h, "gtu", t), add<T, unordered_or<T, greater_equal<T>>>(h, "geu", t);
    add<T, ordered<T>>(h, "num", t), add<T, unordered<T>>(h, "nan", t);
  }
}

// Of predicates, whose 32 bits lie in one word.
template <auto F>
void logic(Warp& warp, const Instruction& instruction) {
  const auto a = static_cast<uint32_t>(*warp.column(instruction.in[0]));
  const auto b = static_cast<uint32_t>(*warp.column(instruction.in[1]));
  set_predicate(warp, instruction.out[0], F(a, b));
}
void invert(Warp& warp, const Instruction& instruction) {
  set_predicate(warp, instruction.out[0], ~static_cast<uint32_t>(*warp.column(instruction.in[0])));
}
void move(Warp& warp, const Instruction& instruction) {
  set_predicate(warp, instruction.out[0], static_cast<uint32_t>(*warp.column(instruction.in[0])));
}

}  // namespace

void add_compare_handlers(Handlers& h) {
  add_order<int16_t>(h, "s16"), add_order<uint16_t>(h, "u16"), add_order<int32_t>(h, "s32"),
      add_order<uint32_t>(h, "u32");
  add_order<int64_t>(h, "s64"), add_order<uint64_t>(h, "u64"), add_order<float>(h, "f32"), add_order<double>(h, "f64");
  add_order<uint16_t>(h, "b16"), add_order<uint32_t>(h, "b32"), add_order<uint64_t>(h, "b64");
  h["and.pred"] = logic<std::bit_and<uint32_t>{}>;
  h["or.pred"] = logic<std::bit_or<uint32_t>{}>;
  h["xor.pred"] = logic<std::bit_xor<uint32_t>{}>;
  h["not.pred"] = invert;
  h["mov.pred"] = move;
}

}  // namespace emulator

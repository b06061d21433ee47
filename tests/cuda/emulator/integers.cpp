// Integer arithmetic, logic and shifts (PTX ISA, sections "Integer Arithmetic", "Extended-Precision" and "Logic and
// Shift").
#include <limits>

#include "lanes.hpp"

namespace emulator {
namespace {

__extension__ typedef __int128 Int128;
__extension__ typedef unsigned __int128 Uint128;

template <class T>
using Wide =
    std::conditional_t<sizeof(T) == 8, std::conditional_t<std::is_signed_v<T>, Int128, Uint128>,
                       std::conditional_t<sizeof(T) == 4, std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>,
                                          std::conditional_t<std::is_signed_v<T>, int32_t, uint32_t>>>;
template <class T>
using Unsigned = std::make_unsigned_t<T>;

template <class T>
T wrap(uint64_t value) {
  return static_cast<T>(value);
}

// A division by zero is undefined in PTX; devices give all ones, and the dividend as the rest.
template <class T>
T quotient(T a, T b) {
  if (b == 0) return static_cast<T>(~T{0});
  if (std::is_signed_v<T> && b == static_cast<T>(-1)) return wrap<T>(0 - static_cast<uint64_t>(a));
  return static_cast<T>(a / b);
}
template <class T>
T rest(T a, T b) {
  if (b == 0) return a;
  if (std::is_signed_v<T> && b == static_cast<T>(-1)) return 0;
  return static_cast<T>(a % b);
}

template <class T>
void add_of(Handlers& h, const std::string& t) {
  enter_handler<[](T a, T b) { return wrap<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b)); }, T, T, T>(
      h, "add." + t);
  enter_handler<[](T a, T b) { return wrap<T>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b)); }, T, T, T>(
      h, "sub." + t);
  enter_handler<[](T a, T b) { return wrap<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b)); }, T, T, T>(
      h, "mul.lo." + t);
  enter_handler<[](T a, T b) { return static_cast<T>(Wide<T>{a} * Wide<T>{b} >> 8 * sizeof(T)); }, T, T, T>(
      h, "mul.hi." + t);
  enter_handler<[](T a, T b, T c) {
    return wrap<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b) + static_cast<uint64_t>(c));
  },
                T, T, T, T>(h, "mad.lo." + t);
  enter_handler<[](T a, T b, T c) {
    return wrap<T>(static_cast<uint64_t>(Wide<T>{a} * Wide<T>{b} >> 8 * sizeof(T)) + static_cast<uint64_t>(c));
  },
                T, T, T, T>(h, "mad.hi." + t);
  if constexpr (sizeof(T) < 8) {
    enter_handler<[](T a, T b) { return Wide<T>{a} * Wide<T>{b}; }, Wide<T>, T, T>(h, "mul.wide." + t);
    enter_handler<[](T a, T b, Wide<T> c) {
      return wrap<Wide<T>>(static_cast<uint64_t>(Wide<T>{a} * Wide<T>{b}) + static_cast<uint64_t>(c));
    },
                  Wide<T>, T, T, Wide<T>>(h, "mad.wide." + t);
  }
  enter_handler<quotient<T>, T, T, T>(h, "div." + t);
  enter_handler<rest<T>, T, T, T>(h, "rem." + t);
  enter_handler<[](T a, T b) { return a < b ? a : b; }, T, T, T>(h, "min." + t);
  enter_handler<[](T a, T b) { return b < a ? a : b; }, T, T, T>(h, "max." + t);
  if constexpr (std::is_signed_v<T>) {
    enter_handler<[](T a) { return wrap<T>(0 - static_cast<uint64_t>(a)); }, T, T>(h, "neg." + t);
    enter_handler<[](T a) { return wrap<T>(a < 0 ? 0 - static_cast<uint64_t>(a) : static_cast<uint64_t>(a)); }, T, T>(
        h, "abs." + t);
  }
  // Shifts by the width and more leave zeros, or signs.
  enter_handler<[](T a, uint32_t n) {
    constexpr uint32_t kBits = 8 * sizeof(T);
    return static_cast<T>(n < kBits ? a >> n : std::is_signed_v<T> ? a >> (kBits - 1) : 0);
  },
                T, T, uint32_t>(h, "shr." + t);
}

template <class T>
void add_bits(Handlers& h, const std::string& t) {
  constexpr uint32_t kBits = 8 * sizeof(T);
  enter_handler<[](T a, T b) { return a & b; }, T, T, T>(h, "and." + t);
  enter_handler<[](T a, T b) { return a | b; }, T, T, T>(h, "or." + t);
  enter_handler<[](T a, T b) { return a ^ b; }, T, T, T>(h, "xor." + t);
  enter_handler<[](T a) { return static_cast<T>(~a); }, T, T>(h, "not." + t);
  enter_handler<[](T a, uint32_t n) { return n < kBits ? static_cast<T>(a << n) : T{0}; }, T, T, uint32_t>(h,
                                                                                                           "shl." + t);
  h["shr." + t] = apply<[](T a, uint32_t n) { return n < kBits ? static_cast<T>((a >> n)) : T{0}; }, T, T, uint32_t>;
  if constexpr (sizeof(T) >= 4) {
    enter_handler<[](T a) { return std::countl_zero(a); }, uint32_t, T>(h, "clz." + t);
    enter_handler<[](T a) { return std::popcount(a); }, uint32_t, T>(h, "popc." + t);
    enter_handler<[](T a) {
      T reversed = 0;
      for (uint32_t k = 0; k < kBits; ++k) reversed |= (a >> k & 1) << (kBits - 1 - k);
      return reversed;
    },
                  T, T>(h, "brev." + t);
    enter_handler<[](T a, T b, uint32_t from, uint32_t length) {
      from &= 255, length &= 255;
      const T ones = length >= kBits ? ~T{0} : (T{1} << length) - 1;
      const T field = from < kBits ? ones << from : 0;
      return (b & ~field) | ((from < kBits ? a << from : 0) & field);
    },
                  T, T, T, uint32_t, uint32_t>(h, "bfi." + t);
  }
}

template <class T>
void add_extract(Handlers& h, const std::string& t) {
  enter_handler<[](T a, uint32_t from, uint32_t length) {
    constexpr uint32_t kBits = 8 * sizeof(T);
    from &= 255, length &= 255;
    using U = Unsigned<T>;
    const U bits = from < kBits ? (static_cast<U>(a) >> from) : 0;
    const uint32_t last = std::min(from + length - 1, kBits - 1);
    const bool sign = std::is_signed_v<T> && length != 0 && ((static_cast<U>(a) >> last) & 1);
    const uint32_t kept = from < kBits ? std::min(length, kBits - from) : 0;
    const U ones = kept >= kBits ? ~U{0} : (U{1} << kept) - 1;
    return static_cast<T>((bits & ones) | (sign ? ~ones : 0));
  },
                T, T, uint32_t, uint32_t>(h, "bfe." + t);
}

uint32_t permuted(uint32_t a, uint32_t b, uint32_t choice) {
  const uint64_t bytes = uint64_t{b} << 32 | a;
  uint32_t result = 0;
  for (int k = 0; k < 4; ++k) {
    const uint32_t which = choice >> 4 * k & 15;
    auto byte = static_cast<uint8_t>(bytes >> 8 * (which & 7));
    if (which & 8) byte = byte & 0x80 ? 0xff : 0;
    result |= uint32_t{byte} << 8 * k;
  }
  return result;
}

// Sums with a carry: one bit per lane, kept by the warp. kTakes: adds it; kGives: sets it.
template <class T, bool kTakes, bool kGives, class F>
void with_carry(Warp& warp, const Instruction& instruction, F terms) {
  uint64_t* out = warp.column(instruction.out[0]);
  each_lane(warp.mask(), [&](int lane) {
    const uint32_t bit = 1u << lane;
    const bool carried = kTakes && (warp.carry() & bit);
    const auto [value, carry] = terms(lane, carried);
    set_slot<T>(out, lane, value);
    if (kGives) warp.carry() = carry ? warp.carry() | bit : warp.carry() & ~bit;
  });
}

template <class T, bool kTakes, bool kGives, bool kSubtracts,
          int kProduct>  // kProduct: 0 none, 1 its low part, 2 its high
void extended(Warp& warp, const Instruction& instruction) {
  const uint64_t *a = warp.column(instruction.in[0]), *b = warp.column(instruction.in[1]);
  const uint64_t* c = kProduct ? warp.column(instruction.in[2]) : b;
  with_carry<T, kTakes, kGives>(warp, instruction, [&](int lane, bool carried) {
    T x = slot<T>(a, lane), y = slot<T>(b, lane);
    if constexpr (kProduct != 0) {
      const Wide<T> product = Wide<T>{x} * y;
      x = static_cast<T>(kProduct == 1 ? product : product >> 8 * sizeof(T));
      y = slot<T>(c, lane);
    }
    const Uint128 sum = kSubtracts ? (Uint128{x} - y) - carried : Uint128{x} + y + carried;
    return std::pair<T, bool>(static_cast<T>(sum), (sum >> 8 * sizeof(T) & 1) != 0);
  });
}

template <class T>
void add_extended(Handlers& h, const std::string& t) {
  h["add.cc." + t] = extended<T, false, true, false, 0>;
  h["addc." + t] = extended<T, true, false, false, 0>;
  h["addc.cc." + t] = extended<T, true, true, false, 0>;
  h["sub.cc." + t] = extended<T, false, true, true, 0>;
  h["subc." + t] = extended<T, true, false, true, 0>;
  h["subc.cc." + t] = extended<T, true, true, true, 0>;
  h["mad.lo.cc." + t] = extended<T, false, true, false, 1>;
  h["mad.hi.cc." + t] = extended<T, false, true, false, 2>;
  h["madc.lo." + t] = extended<T, true, false, false, 1>;
  h["madc.lo.cc." + t] = extended<T, true, true, false, 1>;
  h["madc.hi." + t] = extended<T, true, false, false, 2>;
  h["madc.hi.cc." + t] = extended<T, true, true, false, 2>;
}

}  // namespace

void add_integer_handlers(Handlers& h) {
  add_of<int16_t>(h, "s16"), add_of<uint16_t>(h, "u16"), add_of<int32_t>(h, "s32"), add_of<uint32_t>(h, "u32");
  add_of<int64_t>(h, "s64"), add_of<uint64_t>(h, "u64");
  add_bits<uint16_t>(h, "b16"), add_bits<uint32_t>(h, "b32"), add_bits<uint64_t>(h, "b64");
  add_extract<int32_t>(h, "s32"), add_extract<uint32_t>(h, "u32"), add_extract<int64_t>(h, "s64"),
      add_extract<uint64_t>(h, "u64");
  add_extended<uint32_t>(h, "u32"), add_extended<int32_t>(h, "s32");
  enter_handler<permuted, uint32_t, uint32_t, uint32_t, uint32_t>(h, "prmt.b32");
  enter_handler<[](uint32_t a, uint32_t b, uint32_t n) {
    return static_cast<uint32_t>(((uint64_t{b} << 32 | a) << (n & 31) >> 32));
  },
                uint32_t, uint32_t, uint32_t, uint32_t>(h, "shf.l.wrap.b32");
  enter_handler<[](uint32_t a, uint32_t b, uint32_t n) {
    return static_cast<uint32_t>(((uint64_t{b} << 32 | a) >> (n & 31)));
  },
                uint32_t, uint32_t, uint32_t, uint32_t>(h, "shf.r.wrap.b32");
  enter_handler<[](uint32_t a, uint32_t b, uint32_t c, uint32_t table) {
    uint32_t result = 0;
    for (uint32_t k = 0; k < 8; ++k)
      if ((table >> k) & 1) result |= (k & 4 ? a : ~a) & (k & 2 ? b : ~b) & (k & 1 ? c : ~c);
    return result;
  },
                uint32_t, uint32_t, uint32_t, uint32_t, uint32_t>(h, "lop3.b32");
}

}  // namespace emulator

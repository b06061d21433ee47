// cvt between all types, selp, mov and the parts of a register (PTX ISA, section "Data Movement and Conversion").
#include <immintrin.h>

#include <cfenv>
#include <cmath>
#include <limits>

#include "lanes.hpp"

namespace emulator {
namespace {

struct Half {
  uint16_t bits;
};
float wide(Half x) { return _cvtsh_ss(x.bits); }
Half half(float x) {
  if (x != x) return {0x7fff};
  return {static_cast<uint16_t>(_cvtss_sh(x, _MM_FROUND_TO_NEAREST_INT))};
}

uint16_t brain_half(float x) {
  if (x != x) return 0x7fff;
  const auto bits = std::bit_cast<uint32_t>(x);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
// The first operand in the upper half.
template <auto F>
uint32_t two_halves(float high, float low) {
  return uint32_t{F(high)} << 16 | F(low);
}

// Out of range: the nearest that there is. NaN: zero, or the top bit alone where 64 bits take part.
template <class D, class S>
D to_integer(S x) {
  using Limits = std::numeric_limits<D>;
  if (x != x) return sizeof(S) == 8 || sizeof(D) == 8 ? static_cast<D>(uint64_t{1} << (8 * sizeof(D) - 1)) : D{0};
  if (x <= static_cast<S>(Limits::min())) return Limits::min();
  if (x >= std::ldexp(S{1}, Limits::digits)) return Limits::max();
  return static_cast<D>(x);
}

template <class T>
T integral(T x, char direction) {
  switch (direction) {
    case 'n':
      return std::nearbyint(x);
    case 'z':
      return std::trunc(x);
    case 'm':
      return std::floor(x);
    default:
      return std::ceil(x);
  }
}
template <class D, class S, char kDirection>
D toward(S x) {
  if constexpr (std::is_floating_point_v<D>)
    return integral(x, kDirection);
  else
    return to_integer<D>(integral(x, kDirection));
}
template <class S>
S saturated(S x) {
  return x > 0 ? x < 1 ? x : S{1} : S{0};
}

template <class D, class S, int kRound>
D converted(S x) {
  if constexpr (kRound != FE_TONEAREST) std::fesetround(kRound);
  volatile S from = x;
  volatile D to = static_cast<D>(from);
  if constexpr (kRound != FE_TONEAREST) std::fesetround(FE_TONEAREST);
  const D result = to;
  if constexpr (std::is_same_v<D, float>)
    if (result != result) return std::bit_cast<float>(0x7fffffffu);
  return result;
}

template <class D, class S>
void add_pair(Handlers& h, const std::string& to, const std::string& from) {
  const std::string pair = "." + to + "." + from;
  constexpr bool kToFloat = std::is_floating_point_v<D>, kFromFloat = std::is_floating_point_v<S>;
  if constexpr (!kToFloat && !kFromFloat) {
    enter_handler<[](S x) { return x; }, D, S>(h, "cvt" + pair);
  } else if constexpr (kToFloat && !(std::is_same_v<D, S>)) {
    enter_handler<converted<D, S, FE_TONEAREST>, D, S>(h, "cvt.rn" + pair);
    enter_handler<converted<D, S, FE_TOWARDZERO>, D, S>(h, "cvt.rz" + pair);
    enter_handler<converted<D, S, FE_DOWNWARD>, D, S>(h, "cvt.rm" + pair);
    enter_handler<converted<D, S, FE_UPWARD>, D, S>(h, "cvt.rp" + pair);
    h["cvt" + pair] = h["cvt.rn" + pair];
  } else if constexpr (kFromFloat) {
    enter_handler<toward<D, S, 'n'>, D, S>(h, "cvt.rni" + pair);
    enter_handler<toward<D, S, 'z'>, D, S>(h, "cvt.rzi" + pair);
    enter_handler<toward<D, S, 'm'>, D, S>(h, "cvt.rmi" + pair);
    enter_handler<toward<D, S, 'p'>, D, S>(h, "cvt.rpi" + pair);
    if constexpr (kToFloat) enter_handler<saturated<S>, D, S>(h, "cvt.sat" + pair);
  }
}

template <class D>
void add_to(Handlers& h, const std::string& to) {
  add_pair<D, int8_t>(h, to, "s8"), add_pair<D, int16_t>(h, to, "s16"), add_pair<D, int32_t>(h, to, "s32");
  add_pair<D, int64_t>(h, to, "s64"), add_pair<D, uint8_t>(h, to, "u8"), add_pair<D, uint16_t>(h, to, "u16");
  add_pair<D, uint32_t>(h, to, "u32"), add_pair<D, uint64_t>(h, to, "u64"), add_pair<D, float>(h, to, "f32");
  add_pair<D, double>(h, to, "f64");
}

template <class T>
void select(Warp& warp, const Instruction& instruction) {
  uint64_t* out = warp.column(instruction.out[0]);
  const uint64_t *a = warp.column(instruction.in[0]), *b = warp.column(instruction.in[1]);
  const auto holds = static_cast<uint32_t>(*warp.column(instruction.in[2]));
  each_lane(warp.mask(), [&](int lane) { set_slot<T>(out, lane, slot<T>(holds >> lane & 1 ? a : b, lane)); });
}

template <class T>
void move(Warp& warp, const Instruction& instruction) {
  uint64_t* out = warp.column(instruction.out[0]);
  const uint64_t* in = warp.column(instruction.in[0]);
  each_lane(warp.mask(), [&](int lane) { set_slot<T>(out, lane, slot<T>(in, lane)); });
}

// {a, b, ...} as one register, and back.
template <class Whole, class Part, int kParts>
void pack(Warp& warp, const Instruction& instruction) {
  uint64_t* out = warp.column(instruction.out[0]);
  each_lane(warp.mask(), [&](int lane) {
    Whole whole = 0;
    for (size_t k = 0; k < kParts; ++k)
      whole |= static_cast<Whole>(Whole{slot<Part>(warp.column(instruction.in[k]), lane)} << 8 * sizeof(Part) * k);
    set_slot<Whole>(out, lane, whole);
  });
}
template <class Whole, class Part, int kParts>
void unpack(Warp& warp, const Instruction& instruction) {
  const uint64_t* in = warp.column(instruction.in[0]);
  each_lane(warp.mask(), [&](int lane) {
    const Whole whole = slot<Whole>(in, lane);
    for (size_t k = 0; k < kParts; ++k)
      set_slot<Part>(warp.column(instruction.out[k]), lane, static_cast<Part>(whole >> 8 * sizeof(Part) * k));
  });
}

// Between the generic addresses and a space's own.
template <uint64_t kWindowAt, bool kInto>
void cvta(Warp& warp, const Instruction& instruction) {
  uint64_t* out = warp.column(instruction.out[0]);
  const uint64_t* in = warp.column(instruction.in[0]);
  each_lane(warp.mask(), [&](int lane) { out[lane] = kInto ? in[lane] - kWindowAt : in[lane] + kWindowAt; });
}

}  // namespace

void add_conversion_handlers(Handlers& h) {
  add_to<int8_t>(h, "s8"), add_to<int16_t>(h, "s16"), add_to<int32_t>(h, "s32"), add_to<int64_t>(h, "s64");
  add_to<uint8_t>(h, "u8"), add_to<uint16_t>(h, "u16"), add_to<uint32_t>(h, "u32"), add_to<uint64_t>(h, "u64");
  add_to<float>(h, "f32"), add_to<double>(h, "f64");
  enter_handler<wide, float, Half>(h, "cvt.f32.f16");
  enter_handler<half, Half, float>(h, "cvt.rn.f16.f32");
  enter_handler<two_halves<[](float x) { return half(x).bits; }>, uint32_t, float, float>(h, "cvt.rn.f16x2.f32");
  enter_handler<two_halves<brain_half>, uint32_t, float, float>(h, "cvt.rn.bf16x2.f32");
  for (const char* t : {"b16", "u16", "s16"})
    h[std::string("selp.") + t] = select<uint16_t>, h[std::string("mov.") + t] = move<uint16_t>;
  for (const char* t : {"b32", "u32", "s32", "f32"})
    h[std::string("selp.") + t] = select<uint32_t>, h[std::string("mov.") + t] = move<uint32_t>;
  for (const char* t : {"b64", "u64", "s64", "f64"})
    h[std::string("selp.") + t] = select<uint64_t>, h[std::string("mov.") + t] = move<uint64_t>;
  h["pack2.b64"] = pack<uint64_t, uint32_t, 2>, h["unpack2.b64"] = unpack<uint64_t, uint32_t, 2>;
  h["pack4.b64"] = pack<uint64_t, uint16_t, 4>, h["unpack4.b64"] = unpack<uint64_t, uint16_t, 4>;
  h["pack2.b32"] = pack<uint32_t, uint16_t, 2>, h["unpack2.b32"] = unpack<uint32_t, uint16_t, 2>;
  for (const std::string space : {"global", "param", "const"})
    h["cvta." + space + ".u64"] = cvta<0, false>, h["cvta.to." + space + ".u64"] = cvta<0, true>;
  h["cvta.shared.u64"] = cvta<kSharedWindow, false>, h["cvta.to.shared.u64"] = cvta<kSharedWindow, true>;
  h["cvta.local.u64"] = cvta<kLocalWindow, false>, h["cvta.to.local.u64"] = cvta<kLocalWindow, true>;
}

}  // namespace emulator

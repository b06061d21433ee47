// Floating-point arithmetic (PTX ISA, section "Floating-Point Instructions"). Approximations are computed exactly and
// rounded: within every bound that the manual gives.
#include <cfenv>
#include <cmath>

#include "lanes.hpp"

namespace emulator {
namespace {

// F in another direction of rounding; volatile keeps the compiler from computing it beforehand.
template <int kRound, class T, class F>
T rounded(F f) {
  if constexpr (kRound == FE_TONEAREST) return f();
  std::fesetround(kRound);
  volatile T result = f();
  std::fesetround(FE_TONEAREST);
  return result;
}
template <class T>
T kept(T x) {
  volatile T same = x;
  return same;
}
// A device's NaN has one form.
template <class T>
T canonical(T x) {
  if (x == x) return x;
  if constexpr (sizeof(T) == 4)
    return std::bit_cast<float>(0x7fffffffu);
  else
    return std::bit_cast<double>(uint64_t{0x7ff8000000000000});
}
template <class T>
T flushed(T x) {
  return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(T{0}, x) : x;
}

template <class T, int kRound>
void add_rounded(Handlers& h, const std::string& r, const std::string& t) {
  enter_handler<[](T a, T b) { return canonical(rounded<kRound, T>([&] { return kept(a) + kept(b); })); }, T, T, T>(
      h, "add" + r + t);
  enter_handler<[](T a, T b) { return canonical(rounded<kRound, T>([&] { return kept(a) - kept(b); })); }, T, T, T>(
      h, "sub" + r + t);
  enter_handler<[](T a, T b) { return canonical(rounded<kRound, T>([&] { return kept(a) * kept(b); })); }, T, T, T>(
      h, "mul" + r + t);
  enter_handler<[](T a, T b) { return canonical(rounded<kRound, T>([&] { return kept(a) / kept(b); })); }, T, T, T>(
      h, "div" + r + t);
  enter_handler<[](T a, T b, T c) {
    return canonical(rounded<kRound, T>([&] { return std::fma(kept(a), kept(b), kept(c)); }));
  },
                T, T, T, T>(h, "fma" + r + t);
  enter_handler<[](T a) { return canonical(rounded<kRound, T>([&] { return std::sqrt(kept(a)); })); }, T, T>(
      h, "sqrt" + r + t);
  enter_handler<[](T a) { return canonical(rounded<kRound, T>([&] { return T{1} / kept(a); })); }, T, T>(h,
                                                                                                         "rcp" + r + t);
}

template <class T>
T smaller(T a, T b) {
  if (a != a) return b != b ? canonical(a) : b;
  if (b != b) return a;
  return a < b || (a == b && std::signbit(a)) ? a : b;
}
template <class T>
T larger(T a, T b) {
  if (a != a) return b != b ? canonical(a) : b;
  if (b != b) return a;
  return a > b || (a == b && !std::signbit(a)) ? a : b;
}

template <class T>
void add_of(Handlers& h, const std::string& t) {
  add_rounded<T, FE_TONEAREST>(h, ".rn.", t);
  add_rounded<T, FE_TOWARDZERO>(h, ".rz.", t);
  add_rounded<T, FE_DOWNWARD>(h, ".rm.", t);
  add_rounded<T, FE_UPWARD>(h, ".rp.", t);
  for (const char* name : {"add", "sub", "mul"}) h[name + ("." + t)] = h[name + (".rn." + t)];
  enter_handler<[](T a) { return std::copysign(a, std::signbit(a) ? T{1} : T{-1}); }, T, T>(h, "neg." + t);
  enter_handler<[](T a) { return std::fabs(a); }, T, T>(h, "abs." + t);
  enter_handler<smaller<T>, T, T, T>(h, "min." + t);
  enter_handler<larger<T>, T, T, T>(h, "max." + t);
  enter_handler<[](T a, T b) { return std::copysign(b, a); }, T, T, T>(h, "copysign." + t);
  for (const std::string kind : {".approx.", ".approx.ftz."}) {
    enter_handler<[](T a) { return canonical(T{1} / flushed(a)); }, T, T>(h, "rcp" + kind + t);
    enter_handler<[](T a) { return canonical(T{1} / std::sqrt(flushed(a))); }, T, T>(h, "rsqrt" + kind + t);
    enter_handler<[](T a) { return canonical(std::sqrt(flushed(a))); }, T, T>(h, "sqrt" + kind + t);
    enter_handler<[](T a, T b) { return canonical(a / b); }, T, T, T>(h, "div" + kind + t);
  }
}

}  // namespace

void add_float_handlers(Handlers& h) {
  add_of<float>(h, "f32");
  add_of<double>(h, "f64");
  enter_handler<[](float a) { return canonical(std::exp2(a)); }, float, float>(h, "ex2.approx.f32");
  enter_handler<[](float a) { return canonical(std::log2(a)); }, float, float>(h, "lg2.approx.f32");
  enter_handler<[](float a) { return canonical(std::sin(a)); }, float, float>(h, "sin.approx.f32");
  enter_handler<[](float a) { return canonical(std::cos(a)); }, float, float>(h, "cos.approx.f32");
  enter_handler<[](float a) { return canonical(flushed(std::exp2(flushed(a)))); }, float, float>(h,
                                                                                                 "ex2.approx.ftz.f32");
  enter_handler<[](float a) { return canonical(std::log2(flushed(a))); }, float, float>(h, "lg2.approx.ftz.f32");
}

}  // namespace emulator

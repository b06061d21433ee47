// See cast_row.hpp: 15 x 15 conversions as plain loops, compiled for each target. One table is chosen at the
// first use.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "loops/cast_row.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include "loops/cast_row.hpp"

#include <complex>
#include <type_traits>
#include <utility>

#include "backplane/plugin.hpp"
#include "simd/chosen_table.hpp"
#include "simd/half_rounding.hpp"
#include "simd/half_vectors-inl.hpp"

#ifndef BACKPLANE_CPU_CAST_TYPES
#define BACKPLANE_CPU_CAST_TYPES
namespace backplane::cpu {
struct CastTable {
  CastLoop loop[BP_DTYPE_COUNT][BP_DTYPE_COUNT];  // [from][to]
};
}  // namespace backplane::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace backplane::cpu {
namespace HWY_NAMESPACE {

using plugin::bfloat16;
using plugin::float16;
struct Bool {
  uint8_t byte;
};

template <class T>
struct IsComplex : std::false_type {};
template <class T>
struct IsComplex<std::complex<T>> : std::true_type {};

// Inlined into loops of this target, so that they vectorise.
template <class To, class From>
HWY_INLINE To convert(From x) {
  if constexpr (std::is_same_v<To, From>) {
    return x;
  } else if constexpr (std::is_same_v<From, Bool>) {
    return convert<To>(static_cast<uint8_t>(x.byte != 0));
  } else if constexpr (std::is_same_v<From, float16> || std::is_same_v<From, bfloat16>) {
    if constexpr (std::is_same_v<To, Bool>) {
      return Bool{static_cast<uint8_t>((x.bits & 0x7fff) != 0)};
    } else {
      return convert<To>(static_cast<float>(x));
    }
  } else if constexpr (std::is_same_v<To, Bool>) {
    if constexpr (IsComplex<From>::value) {
      return Bool{static_cast<uint8_t>((x.real() != 0) | (x.imag() != 0))};
    } else {
      return Bool{static_cast<uint8_t>(x != From(0))};
    }
  } else if constexpr (IsComplex<To>::value) {
    using Part = typename To::value_type;
    if constexpr (IsComplex<From>::value) {
      return To(static_cast<Part>(x.real()), static_cast<Part>(x.imag()));
    } else {
      return To(convert<Part>(x), Part(0));
    }
  } else if constexpr (IsComplex<From>::value) {
    return convert<To>(x.real());
  } else if constexpr (std::is_same_v<To, float16> || std::is_same_v<To, bfloat16>) {
    return To(before_half<To>(x));
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    // Through a wide signed integer, whose low bits are kept: defined for every value in its range, and a vector
    // instruction for the narrow ones.
    if constexpr (sizeof(To) < 4 || std::is_same_v<To, int32_t>) {
      return static_cast<To>(x >= From(-2147483648.0) && x < From(2147483648.0) ? static_cast<int32_t>(x) : INT32_MIN);
    } else if constexpr (std::is_same_v<To, uint64_t>) {
      return x >= From(9223372036854775808.0)
                 ? (x < From(18446744073709551616.0) ? static_cast<uint64_t>(x) : uint64_t{1} << 63)
                 : static_cast<uint64_t>(x >= From(-9223372036854775808.0) ? static_cast<int64_t>(x) : INT64_MIN);
    } else {
      return static_cast<To>(
          x >= From(-9223372036854775808.0) && x < From(9223372036854775808.0) ? static_cast<int64_t>(x) : INT64_MIN);
    }
  } else {
    return static_cast<To>(x);
  }
}

#if HWY_TARGET != HWY_SCALAR
// Half floats by vectors of float32: most calls on half floats are these loops around a float32 kernel.
template <class T>
inline constexpr bool kIsByte = std::is_same_v<T, Bool> || std::is_same_v<T, int8_t> || std::is_same_v<T, uint8_t>;
template <class T>
inline constexpr bool kIsSmallInteger = kIsByte<T> || std::is_same_v<T, int16_t> || std::is_same_v<T, uint16_t>;
template <class T>
inline constexpr bool kIsSingle = std::is_same_v<T, float> || std::is_same_v<T, int32_t> || plugin::kIsHalf<T>;

// Integers that float32 does not hold, to odd with 24 bits: half_rounding.hpp. The least one is exact.
template <class DI, class V = hn::Vec<DI>>
HWY_INLINE V odd_integers(DI di, V v) {
  const auto large = hn::Gt(hn::Abs(v), hn::Set(di, 1 << 24));
  if (HWY_LIKELY(hn::AllFalse(di, large))) return v;
  const auto dropped = hn::Set(di, 127);
  const auto odd = hn::AndNot(dropped, hn::Or(v, hn::Add(hn::And(v, dropped), dropped)));
  return hn::IfThenElse(large, odd, v);
}
template <class To, class D, class T>
HWY_INLINE hn::Vec<D> take_vector(D d, const T* x) {
  const hn::RebindToSigned<D> di;
  if constexpr (std::is_same_v<T, Bool>) {
    const hn::Rebind<uint8_t, D> bytes;
    const auto byte = hn::Min(hn::LoadU(bytes, &x->byte), hn::Set(bytes, uint8_t{1}));
    return hn::ConvertTo(d, hn::PromoteTo(di, byte));
  } else if constexpr (kIsSmallInteger<T>) {
    return hn::ConvertTo(d, hn::PromoteTo(di, hn::LoadU(hn::Rebind<T, D>(), x)));
  } else if constexpr (std::is_same_v<T, int32_t>) {
    const auto v = hn::LoadU(di, x);
    if constexpr (std::is_same_v<To, bfloat16>)
      return hn::ConvertTo(d, odd_integers(di, v));
    else
      return hn::ConvertTo(d, v);
  } else {
    return widen(d, x);
  }
}
template <class D, class T>
HWY_INLINE void put_vector(D d, hn::Vec<D> v, T* out) {
  if constexpr (std::is_same_v<T, int32_t>) {  // as `convert`
    const hn::RebindToSigned<D> di;
    const auto low = hn::Set(d, -2147483648.0f);
    const auto whole = hn::ConvertTo(di, hn::IfThenElse(hn::Lt(v, hn::Neg(low)), v, low));
    hn::StoreU(whole, di, out);
  } else {
    narrow(d, v, out);
  }
}
template <class From, class D, class V = hn::Vec<D>, class To>
HWY_INLINE void put_two_vectors(D d, V a, V b, To* out) {
  if constexpr (std::is_same_v<To, bfloat16> && kIsByte<From>) {
    const hn::Repartition<uint16_t, D> d16;  // bytes are exact
    hn::StoreU(hn::ConcatOdd(d16, hn::BitCast(d16, b), hn::BitCast(d16, a)), d16, reinterpret_cast<uint16_t*>(out));
    return;
  }
  if constexpr (std::is_same_v<To, bfloat16>)
    if (!kIsSingle<From> || std::is_same_v<From, int32_t> || hn::AllFalse(d, hn::Or(hn::IsNaN(a), hn::IsNaN(b))))
      return narrow_two(d, a, b, out);
  put_vector(d, a, out);
  put_vector(d, b, out + hn::Lanes(d));
}
// Returns how many elements it converted; the caller does the rest.
template <class From, class To>
HWY_INLINE int64_t convert_vectors(const From* in, To* out, int64_t n) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes)
    put_two_vectors<From>(d, take_vector<To>(d, in + i), take_vector<To>(d, in + i + lanes), out + i);
  return i;
}
// Integers of 64 bits on their way to half floats: seldom is one among them that float32 rounds.
template <class To, class From>
HWY_INLINE void wide_integers(const From* in, float* row, int64_t n) {
  uint64_t sizes = 0;
  for (int64_t i = 0; i < n; ++i)
    sizes |= in[i] < From(0) ? ~static_cast<uint64_t>(in[i]) : static_cast<uint64_t>(in[i]);
  if (sizes >> 24 == 0) {
    for (int64_t i = 0; i < n; ++i) row[i] = static_cast<float>(in[i]);
  } else {
    for (int64_t i = 0; i < n; ++i) row[i] = before_half<To>(in[i]);
  }
}
// The rest meets half floats in rows of float32, which the compiler converts by vectors, and bools are made 0 or 1 in
// rows of bytes.
template <class Between, class From, class To>
HWY_INLINE int64_t convert_rows(const From* in, To* out, int64_t n) {
  constexpr int64_t kRow = 256;
  Between row[kRow];
  int64_t at = 0;
  for (; at + kRow <= n; at += kRow) {
    if constexpr (plugin::kIsHalf<From>)
      convert_vectors(in + at, row, kRow);
    else if constexpr (plugin::kIsHalf<To> && IsComplex<From>::value)
      for (int64_t i = 0; i < kRow; ++i) row[i] = before_half<To>(in[at + i].real());
    else if constexpr (std::is_same_v<To, bfloat16> && std::is_integral_v<From> && sizeof(From) == 8)
      wide_integers<To>(in + at, row, kRow);
    else if constexpr (plugin::kIsHalf<To> && !std::is_same_v<From, Bool>)
      for (int64_t i = 0; i < kRow; ++i) row[i] = before_half<To>(in[at + i]);
    else
      for (int64_t i = 0; i < kRow; ++i) row[i] = convert<Between>(in[at + i]);
    if constexpr (plugin::kIsHalf<To>)
      convert_vectors(row, out + at, kRow);
    else
      for (int64_t i = 0; i < kRow; ++i) out[at + i] = convert<To>(row[i]);
  }
  return at;
}
template <class From, class To>
int64_t convert_by_vectors(const From* in, To* out, int64_t n) {
  constexpr bool kHalf = plugin::kIsHalf<From> || plugin::kIsHalf<To>;
  if constexpr (std::is_same_v<From, To> || std::is_same_v<To, Bool>)
    return 0;
  else if constexpr (std::is_same_v<From, Bool> ? kIsSingle<To>
                                                : kHalf && kIsSingle<To> && (kIsSingle<From> || kIsSmallInteger<From>))
    return convert_vectors(in, out, n);
  else if constexpr (std::is_same_v<From, Bool>)
    return convert_rows<uint8_t>(in, out, n);
  else if constexpr (kHalf)
    return convert_rows<float>(in, out, n);
  else
    return 0;
}
#else
template <class From, class To>
int64_t convert_by_vectors(const From*, To*, int64_t) {
  return 0;
}
#endif

template <class From, class To>
void cast_loop(const char* source, int64_t source_stride, char* destination, int64_t destination_stride, int64_t n) {
  if (source_stride == int64_t{sizeof(From)} && destination_stride == int64_t{sizeof(To)}) {
    const From* in = reinterpret_cast<const From*>(source);
    To* out = reinterpret_cast<To*>(destination);
#pragma GCC ivdep
    for (int64_t i = convert_by_vectors(in, out, n); i < n; ++i) out[i] = convert<To>(in[i]);
    return;
  }
  // Half floats far apart are brought together first, in blocks, so that vectors convert them.
  if constexpr (plugin::kIsHalf<From> && !std::is_same_v<From, To>) {
    constexpr int64_t kBlock = 64;
    if (source_stride != int64_t{sizeof(From)} && source_stride != 0 && n >= 8) {
      uint16_t block[kBlock];
      for (int64_t at = 0; at < n; at += kBlock) {
        const int64_t count = n - at < kBlock ? n - at : kBlock;
        gather_halves(source + at * source_stride, source_stride, block, count);
        cast_loop<From, To>(reinterpret_cast<const char*>(block), sizeof(From), destination + at * destination_stride,
                            destination_stride, count);
      }
      return;
    }
  }
  for (int64_t i = 0; i < n; ++i) {
    *reinterpret_cast<To*>(destination) = convert<To>(*reinterpret_cast<const From*>(source));
    source += source_stride;
    destination += destination_stride;
  }
}

template <class... T>
struct Types {
  template <class From>
  static void fill_row(CastLoop* row) {
    size_t i = 0;
    ((row[i++] = &cast_loop<From, T>), ...);
  }
  static void fill(CastTable& table) {
    size_t i = 0;
    (fill_row<T>(table.loop[i++]), ...);
  }
};

void fill_casts(CastTable& table) {
  Types<Bool, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t, float16, bfloat16, float,
        double, std::complex<float>, std::complex<double>>::fill(table);
}

}  // namespace HWY_NAMESPACE
}  // namespace backplane::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace backplane::cpu {
HWY_EXPORT(fill_casts);
namespace {

const CastTable& casts() {
  return chosen_table<CastTable>([](CastTable& t) { HWY_DYNAMIC_DISPATCH(fill_casts)(t); });
}

}  // namespace

CastLoop cast_loop_of(bp_dtype from, bp_dtype to) { return casts().loop[from][to]; }

void cast_row(bp_dtype from, const char* source, int64_t source_stride, bp_dtype to, char* destination,
              int64_t destination_stride, int64_t n) {
  cast_loop_of(from, to)(source, source_stride, destination, destination_stride, n);
}

}  // namespace backplane::cpu
#endif

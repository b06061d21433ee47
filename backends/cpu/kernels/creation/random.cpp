// random_bits: Philox 4x32-10 (Salmon, Moraes, Dror and Shaw, "Parallel Random Numbers: As Easy as 1, 2, 3", SC 2011).
//
// Element i is word i % 4 of the block at counter + i / 4; a uint64 takes two words, the low one first. So any piece of
// the output can be computed by itself, and every backend gives the same bits.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/creation/random.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include <algorithm>
#include <array>

#include "backplane/plugin/philox.hpp"
#include "kernels/families.hpp"
#include "loops/elementwise.hpp"

HWY_BEFORE_NAMESPACE();
namespace backplane::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_SCALAR
int64_t fill_blocks(uint64_t, uint64_t, uint32_t*, int64_t) { return 0; }
#else

// The halves of the products of all lanes with a number.
template <class V>
HWY_INLINE void multiply_wide(V x, V number, V& high, V& low) {
  const hn::DFromV<V> d;
  const hn::Repartition<uint64_t, decltype(d)> wide;
  const auto even = hn::MulEven(x, number);
  const auto odd = hn::MulEven(hn::BitCast(d, hn::ShiftRight<32>(hn::BitCast(wide, x))), number);
  high = hn::OddEven(hn::BitCast(d, odd), hn::BitCast(d, hn::ShiftRight<32>(even)));
  low = hn::OddEven(hn::BitCast(d, hn::ShiftLeft<32>(odd)), hn::BitCast(d, even));
}

// As many of the blocks from `counter` on as fill vectors, a block to a lane; how many these were.
int64_t fill_blocks(uint64_t key, uint64_t counter, uint32_t* out, int64_t blocks) {
  const hn::ScalableTag<uint32_t> d;
  using V = hn::Vec<decltype(d)>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const V multiplier0 = hn::Set(d, plugin::kPhiloxMultipliers[0]),
          multiplier1 = hn::Set(d, plugin::kPhiloxMultipliers[1]);
  int64_t done = 0;
  for (; done + 2 * lanes <= blocks; done += 2 * lanes) {
    V a0, a1, a2 = hn::Zero(d), a3 = a2, b0, b1, b2 = a2, b3 = a2;
    const auto start = [&](int64_t at, V& low, V& high) HWY_ATTR {
      const uint64_t first = counter + static_cast<uint64_t>(at);
      const V base = hn::Set(d, static_cast<uint32_t>(first));
      low = hn::Add(base, hn::Iota(d, 0));
      const V carry = hn::VecFromMask(d, hn::Lt(low, base));  // -1 where the low half went round
      high = hn::Sub(hn::Set(d, static_cast<uint32_t>(first >> 32)), carry);
    };
    start(done, a0, a1);
    start(done + lanes, b0, b1);
    V k0 = hn::Set(d, static_cast<uint32_t>(key)), k1 = hn::Set(d, static_cast<uint32_t>(key >> 32));
    const auto round = [&](V& c0, V& c1, V& c2, V& c3) HWY_ATTR {
      V high0, low0, high1, low1;
      multiply_wide(c0, multiplier0, high0, low0);
      multiply_wide(c2, multiplier1, high1, low1);
      c0 = hn::Xor(hn::Xor(high1, c1), k0);
      c2 = hn::Xor(hn::Xor(high0, c3), k1);
      c1 = low1;
      c3 = low0;
    };
    for (int i = 0; i < plugin::kPhiloxRounds; ++i) {
      round(a0, a1, a2, a3);
      round(b0, b1, b2, b3);
      k0 = hn::Add(k0, hn::Set(d, plugin::kPhiloxWeyl[0]));
      k1 = hn::Add(k1, hn::Set(d, plugin::kPhiloxWeyl[1]));
    }
    hn::StoreInterleaved4(a0, a1, a2, a3, d, out + 4 * done);
    hn::StoreInterleaved4(b0, b1, b2, b3, d, out + 4 * (done + lanes));
  }
  return done;
}
#endif

}  // namespace HWY_NAMESPACE
}  // namespace backplane::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace backplane::cpu {
HWY_EXPORT(fill_blocks);

namespace {

// Words [begin, end) of the sequence.
void fill_words(const bp_generator_state& state, uint32_t* out, int64_t begin, int64_t end) {
  int64_t at = begin;
  const auto counter = [&] { return state.counter + static_cast<uint64_t>(at / 4); };
  const auto fill_to = [&](int64_t stop) {
    while (at < stop) {
      const std::array<uint32_t, 4> block = plugin::philox(state.key, counter());
      for (int64_t word = at % 4; word < 4 && at < stop; ++word, ++at)
        out[at - begin] = block[static_cast<size_t>(word)];
    }
  };
  fill_to(std::min((begin + 3) / 4 * 4, end));
  at += 4 * HWY_DYNAMIC_DISPATCH(fill_blocks)(state.key, counter(), out + (at - begin), (end - at) / 4);
  fill_to(end);
}

// random_bits(Shape shape, *, Dtype dtype, Device? device, Generator generator); the row takes a contiguous output.
bp_status BP_CALL random_bits(const bp_frame* frame, const bp_value* args, int32_t, bp_value* outs, int32_t) {
  return plugin::guard(frame, [&] {
    const bp_generator_state state = plugin::Unpack<bp_generator_state>::get(args[3]);
    const bp_tensor* out = outs[0].u.t;
    // Words have the processor's order in memory: little-endian, so the low word of a uint64 comes first.
    auto* words = reinterpret_cast<uint32_t*>(data_of(out));
    const auto count = static_cast<int64_t>(out->nbytes / sizeof(uint32_t));
    plugin::parallel_for(frame, 0, count, kCheapGrain,
                         [&](int64_t begin, int64_t end) { fill_words(state, words + begin, begin, end); });
  });
}

}  // namespace

const Family kRandom([](const Registrar& registrar) {
  registrar.kernel(
      BP_KERNEL("bp::random_bits", "cpu", random_bits, .dtypes = BP_DTYPE_BIT(BP_UINT32) | BP_DTYPE_BIT(BP_UINT64)));
});

}  // namespace backplane::cpu
#endif

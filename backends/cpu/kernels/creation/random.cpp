// random_bits: Philox 4x32-10 (Salmon, Moraes, Dror and Shaw, "Parallel Random Numbers: As Easy as 1, 2, 3", SC 2011).
//
// Element i is word i % 4 of the block at counter + i / 4; a uint64 takes two words, the low one first. So any piece of
// the output can be computed by itself, and every backend gives the same bits.
#include <array>

#include "kernels/families.hpp"
#include "loops/elementwise.hpp"

namespace backplane::cpu {
namespace {

using Block = std::array<uint32_t, 4>;

Block philox(uint64_t key, uint64_t counter) {
  constexpr uint64_t kMultiplier0 = 0xD2511F53u, kMultiplier1 = 0xCD9E8D57u;
  constexpr uint32_t kWeyl0 = 0x9E3779B9u, kWeyl1 = 0xBB67AE85u;
  Block c{static_cast<uint32_t>(counter), static_cast<uint32_t>(counter >> 32), 0, 0};
  auto k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t product0 = kMultiplier0 * c[0], product1 = kMultiplier1 * c[2];
    c = {static_cast<uint32_t>(product1 >> 32) ^ c[1] ^ k0, static_cast<uint32_t>(product1),
         static_cast<uint32_t>(product0 >> 32) ^ c[3] ^ k1, static_cast<uint32_t>(product0)};
    k0 += kWeyl0;
    k1 += kWeyl1;
  }
  return c;
}

// Words [begin, end) of the sequence.
void fill_words(const bp_generator_state& state, uint32_t* out, int64_t begin, int64_t end) {
  for (int64_t at = begin; at < end;) {
    const Block block = philox(state.key, state.counter + static_cast<uint64_t>(at / 4));
    for (int64_t word = at % 4; word < 4 && at < end; ++word, ++at) *out++ = block[static_cast<size_t>(word)];
  }
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

// random_bits: blocks of Philox 4x32-10, one after the other.
#include "backplane/plugin/philox.hpp"
#include "kernels.hpp"

namespace sim {
namespace {

void random_bits(const Call& call) {
  const Operand out = call.output(0);
  const bp_generator_state state = *call.value(3).u.g;
  const int64_t words = out.count() * (out.dtype == BP_UINT64 ? 2 : 1);  // little-endian: the low word comes first
  call.record([first = reinterpret_cast<uint32_t*>(out.data), words, state] {
    for (int64_t i = 0; i < words; i += 4) {
      const auto block = backplane::plugin::philox(state.key, state.counter + static_cast<uint64_t>(i / 4));
      for (int64_t k = 0; k < 4 && i + k < words; ++k) first[i + k] = block[static_cast<size_t>(k)];
    }
  });
}

constexpr Row kRows[] = {{"bp::random_bits", kernel<random_bits>, BP_MASK_ANY, 0}};

}  // namespace

Table random_kernels() { return {__FILE__, kRows}; }

}  // namespace sim

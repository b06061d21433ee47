// Products of matrices of half floats by a whole warp, their operands from shared memory, and copies into it that
// arrive later (PTX ISA, sections "Warp Level Matrix Instructions" and "Asynchronous copy"). Products are summed in
// double and rounded once.
#include <immintrin.h>

#include <limits>

#include "lanes.hpp"

namespace emulator {
namespace {

constexpr int kMisaligned = 716, kLaunchFailed = 719;

float of_half(uint16_t bits) { return _cvtsh_ss(bits); }
float of_brain_half(uint16_t bits) { return std::bit_cast<float>(uint32_t{bits} << 16); }

void check_whole(Warp& warp, const Instruction& instruction) {
  if (warp.mask() != UINT32_MAX)
    warp.fail(instruction, std::countr_zero(warp.mask()), kLaunchFailed, "not all lanes of the warp take part");
}

// Lane l gives the address of row l % 8 of matrix l / 8, and gets of each matrix two elements of row l / 4; transposed,
// of column l / 4.
template <bool kTransposed>
void load_matrices(Warp& warp, const Instruction& instruction) {
  check_whole(warp, instruction);
  uint16_t rows[kLanes][8];
  const uint64_t* at = warp.column(instruction.in[0]);
  each_lane(warp.mask(), [&](int lane) {
    warp.read(instruction, lane, static_cast<uint32_t>(at[lane] + static_cast<uint64_t>(instruction.offset)),
              rows[lane], 16);
  });
  each_lane(warp.mask(), [&](int lane) {
    for (int matrix = 0; matrix < 4; ++matrix) {
      const int line = lane / 4, pair = lane % 4 * 2;
      const auto element = [&](int k) { return kTransposed ? rows[matrix * 8 + k][line] : rows[matrix * 8 + line][k]; };
      set_slot<uint32_t>(warp.column(instruction.out[static_cast<size_t>(matrix)]), lane,
                         uint32_t{element(pair + 1)} << 16 | element(pair));
    }
  });
}

// d = a b + c, of 16 by 16, 16 by 8 and 16 by 8 elements: in[0..3], in[4..5], in[6..9].
template <auto F>
void multiply_add(Warp& warp, const Instruction& instruction) {
  check_whole(warp, instruction);
  float a[16][16], b[16][8], sums[16][8];
  const auto halves = [&](size_t k, int lane) { return slot<uint32_t>(warp.column(instruction.in[k]), lane); };
  for (int lane = 0; lane < kLanes; ++lane) {
    const int line = lane / 4, pair = lane % 4 * 2;
    for (int k = 0; k < 4; ++k)
      for (int e = 0; e < 2; ++e)
        a[line + k % 2 * 8][pair + k / 2 * 8 + e] =
            F(static_cast<uint16_t>(halves(static_cast<size_t>(k), lane) >> 16 * e));
    for (int k = 0; k < 2; ++k)
      for (int e = 0; e < 2; ++e)
        b[pair + k * 8 + e][line] = F(static_cast<uint16_t>(halves(static_cast<size_t>(k) + 4, lane) >> 16 * e));
  }
  for (int lane = 0; lane < kLanes; ++lane)
    for (int k = 0; k < 4; ++k) {
      const int row = lane / 4 + k / 2 * 8, column = lane % 4 * 2 + k % 2;
      double sum = slot<float>(warp.column(instruction.in[static_cast<size_t>(k) + 6]), lane);
      for (int i = 0; i < 16; ++i) sum += double{a[row][i]} * b[i][column];
      sums[row][column] = sum == sum ? static_cast<float>(sum) : std::bit_cast<float>(0x7fffffffu);
    }
  for (int lane = 0; lane < kLanes; ++lane)
    for (int k = 0; k < 4; ++k)
      set_slot<float>(warp.column(instruction.out[static_cast<size_t>(k)]), lane,
                      sums[lane / 4 + k / 2 * 8][lane % 4 * 2 + k % 2]);
}

// The bytes are read now, and arrive at the wait.
void copy_later(Warp& warp, const Instruction& instruction) {
  Instruction from = instruction;
  from.space = Space::kGlobal;
  const uint64_t *target = warp.column(instruction.in[0]), *source = warp.column(instruction.in[1]);
  const uint64_t *size = warp.column(instruction.in[2]), *taken = warp.column(instruction.in[3]);
  each_lane(warp.mask(), [&](int lane) {
    const auto count = static_cast<uint32_t>(taken[lane]);
    if (size[lane] != 16 || (count != 0 && count != 16))
      warp.fail(instruction, lane, kLaunchFailed, "copies other than 16 bytes or zeros are not emulated");
    if (source[lane] % 16 != 0)
      warp.fail(instruction, lane, kMisaligned, "a copy from an address that is no multiple of 16");
    std::array<uint8_t, 16> bytes{};
    if (count != 0) warp.read(from, lane, source[lane], bytes.data(), count);
    warp.copy_later(instruction, lane, static_cast<uint32_t>(target[lane] + static_cast<uint64_t>(instruction.offset)),
                    bytes);
  });
}
void wait_for_copies(Warp& warp, const Instruction&) {
  each_lane(warp.mask(), [&](int lane) { warp.wait_for_copies(lane); });
}

}  // namespace

void add_tensor_handlers(Handlers& h) {
  h["ldmatrix.sync.aligned.m8n8.x4.shared.b16"] = load_matrices<false>;
  h["ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16"] = load_matrices<true>;
  h["mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"] = multiply_add<of_half>;
  h["mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"] = multiply_add<of_brain_half>;
  h["cp.async.cg.shared.global"] = copy_later, h["cp.async.wait_all"] = wait_for_copies;
}

}  // namespace emulator

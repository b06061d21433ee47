// Kernels that move elements by their width, that of call.out, and random bits.
#include "device/arguments.cuh"

namespace minimal {

struct alignas(8) Wide {
  uint64_t half[2];
};
constexpr uint64_t kShifts = 0x433211321032100;  // log2 of an element's bytes, four bits per dtype

__device__ void move_element(const Arguments& call, char* to, const char* from) {
  switch (kShifts >> (call.out * 4) & 15) {
    case 0:
      *to = *from;
      break;
    case 1:
      *reinterpret_cast<uint16_t*>(to) = *reinterpret_cast<const uint16_t*>(from);
      break;
    case 2:
      *reinterpret_cast<uint32_t*>(to) = *reinterpret_cast<const uint32_t*>(from);
      break;
    case 3:
      *reinterpret_cast<uint64_t*>(to) = *reinterpret_cast<const uint64_t*>(from);
      break;
    default:
      *reinterpret_cast<Wide*>(to) = *reinterpret_cast<const Wide*>(from);
  }
}

__device__ void move_item(const Arguments& call, int64_t i) {
  const Offsets o = offsets_of(call, i, 0);
  move_element(call, operand(call, 0, o.of[0]), operand(call, 1, o.of[1]));
}

__device__ void choose_item(const Arguments& call, int64_t i) {
  const Offsets o = offsets_of(call, i, 0);
  const bool holds = *operand(call, 1, o.of[1]) != 0;
  move_element(call, operand(call, 0, o.of[0]), holds ? operand(call, 2, o.of[2]) : operand(call, 3, o.of[3]));
}

// n: the bits of the element.
__device__ void fill_item(const Arguments& call, int64_t i) {
  const Wide bits{{static_cast<uint64_t>(call.n[0]), static_cast<uint64_t>(call.n[1])}};
  const int64_t at = i << (kShifts >> (call.out * 4) & 15);
  move_element(call, operand(call, 0, at), reinterpret_cast<const char*>(&bits));
}

// Of the two that follow the first loop is over the joint positions of the indices, the second over the kept axes; its
// operands are the selected elements, then the indexed ones. at: result, the other one, offsets of the joint positions.
// n: positions of the inner loop.
__device__ void gather_item(const Arguments& call, int64_t i) {
  const Offsets joint = offsets_of(call, i / call.n[0], 0), kept = offsets_of(call, i % call.n[0], 1);
  move_element(call, operand(call, 0, joint.of[0] + kept.of[0]),
               operand(call, 1, places(call, 2)[i / call.n[0]] + kept.of[1]));
}

// An item per kept element, which takes the joint positions in their order: the last value stays. n: begin and end of
// the joint positions that this launch takes.
__device__ void put_selected_item(const Arguments& call, int64_t i) {
  const Offsets kept = offsets_of(call, i, 1);
  for (int64_t j = call.n[0]; j < call.n[1]; ++j)
    move_element(call, operand(call, 0, places(call, 2)[j] + kept.of[1]),
                 operand(call, 1, offsets_of(call, j, 0).of[0] + kept.of[0]));
}

// Philox 4x32-10: word k of the block at counter + i is word 4 i + k. n: words, key, counter.
__device__ void draw_item(const Arguments& call, int64_t i) {
  const uint64_t key = call.n[1], at = static_cast<uint64_t>(call.n[2]) + i;
  uint32_t low = key, high = key >> 32;
  uint32_t block[4] = {static_cast<uint32_t>(at), static_cast<uint32_t>(at >> 32), 0, 0};
  for (int round = 0; round < 10; ++round) {
    const uint32_t first = block[0], second = block[2];
    block[0] = __umulhi(0xCD9E8D57u, second) ^ block[1] ^ low;
    block[1] = 0xCD9E8D57u * second;
    block[2] = __umulhi(0xD2511F53u, first) ^ block[3] ^ high;
    block[3] = 0xD2511F53u * first;
    low += 0x9E3779B9u;
    high += 0xBB67AE85u;
  }
  for (int k = 0; k < 4 && i * 4 + k < call.n[0]; ++k) reinterpret_cast<uint32_t*>(call.at[0])[i * 4 + k] = block[k];
}

}  // namespace minimal

MINIMAL_MOVING_KERNELS(MINIMAL_KERNEL)

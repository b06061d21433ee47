// Loads, stores and atomics; what lanes of a warp tell each other (PTX ISA, sections "Data Movement" and "Parallel
// Synchronization").
#include <cmath>

#include "lanes.hpp"

namespace emulator {
namespace {

constexpr int kLaunchFailed = 719;

uint64_t address_of(Warp& warp, const Instruction& instruction, int lane) {
  return warp.column(instruction.in[0])[lane] + static_cast<uint64_t>(instruction.offset);
}

void load(Warp& warp, const Instruction& instruction) {
  each_lane(warp.mask(), [&](int lane) {
    uint8_t bytes[16];
    warp.read(instruction, lane, address_of(warp, instruction, lane), bytes,
              uint32_t{instruction.width} * instruction.count);
    for (uint32_t k = 0; k < instruction.count; ++k) {
      uint64_t value = 0;
      std::memcpy(&value, bytes + k * instruction.width, instruction.width);
      const int spare = 64 - 8 * instruction.width;
      if (instruction.is_signed) value = static_cast<uint64_t>(static_cast<int64_t>(value << spare) >> spare);
      warp.column(instruction.out[k])[lane] = value;
    }
  });
}

void store(Warp& warp, const Instruction& instruction) {
  each_lane(warp.mask(), [&](int lane) {
    uint8_t bytes[16];
    for (uint32_t k = 0; k < instruction.count; ++k)
      std::memcpy(bytes + k * instruction.width, warp.column(instruction.in[k + 1]) + lane, instruction.width);
    warp.write(instruction, lane, address_of(warp, instruction, lane), bytes,
               uint32_t{instruction.width} * instruction.count);
  });
}

// Lanes one after the other: any order is allowed.
template <class T, auto F>
void atomic(Warp& warp, const Instruction& instruction) {
  each_lane(warp.mask(), [&](int lane) {
    const uint64_t address = address_of(warp, instruction, lane);
    T before;
    warp.read(instruction, lane, address, &before, sizeof(T));
    const T a = slot<T>(warp.column(instruction.in[1]), lane);
    T b{};
    if (instruction.in[2].fixed || instruction.in[2].reg != 0) b = slot<T>(warp.column(instruction.in[2]), lane);
    const T after = F(before, a, b);
    warp.write(instruction, lane, address, &after, sizeof(T));
    set_slot<T>(warp.column(instruction.out[0]), lane, before);
  });
}

template <class T>
void add_atomics(Handlers& h, const std::string& t) {
  h["atom.add." + t] = atomic<T, [](T x, T a, T) { return static_cast<T>(x + a); }>;
  h["atom.min." + t] = atomic<T, [](T x, T a, T) { return a < x ? a : x; }>;
  h["atom.max." + t] = atomic<T, [](T x, T a, T) { return x < a ? a : x; }>;
}
template <class T>
void add_atomic_bits(Handlers& h, const std::string& t) {
  h["atom.and." + t] = atomic<T, [](T x, T a, T) { return x & a; }>;
  h["atom.or." + t] = atomic<T, [](T x, T a, T) { return x | a; }>;
  h["atom.xor." + t] = atomic<T, [](T x, T a, T) { return x ^ a; }>;
  h["atom.exch." + t] = atomic<T, [](T, T a, T) { return a; }>;
  h["atom.cas." + t] = atomic<T, [](T x, T a, T b) { return x == a ? b : x; }>;
}

// The lanes that a mask names must all be there, and no other.
void check_members(Warp& warp, const Instruction& instruction, uint32_t members) {
  if (members == warp.mask()) return;
  const auto named = [](uint32_t lanes) {
    std::string text;
    for (uint32_t m = lanes; m; m &= m - 1) text += (text.empty() ? "" : " ") + std::to_string(std::countr_zero(m));
    return text;
  };
  const uint32_t missing = members & ~warp.mask(), strange = warp.mask() & ~members;
  if (missing && (missing & warp.launched()) == missing)
    warp.fail(instruction, std::countr_zero(warp.mask()), kLaunchFailed,
              "wrong mask of lanes: it names " + named(missing) + ", which do not take part");
  if (missing)
    warp.fail(instruction, std::countr_zero(warp.mask()), kLaunchFailed,
              "wrong mask of lanes: it names " + named(missing) + ", which the block has not");
  if (strange)
    warp.fail(instruction, std::countr_zero(strange), kLaunchFailed,
              "wrong mask of lanes: " + named(strange) + " take part unnamed");
}

enum class Shuffle { kUp, kDown, kButterfly, kIndex };

template <Shuffle kMode>
void shuffle(Warp& warp, const Instruction& instruction) {
  const uint64_t *value = warp.column(instruction.in[0]), *step = warp.column(instruction.in[1]);
  const uint64_t *clamp = warp.column(instruction.in[2]), *members = warp.column(instruction.in[3]);
  uint32_t taken[kLanes] = {}, bits = 0;
  each_lane(warp.mask(), [&](int lane) {
    check_members(warp, instruction, static_cast<uint32_t>(members[lane]));
    const int b = static_cast<int>(step[lane] & 31), c = static_cast<int>(clamp[lane] & 31);
    const int segment = static_cast<int>(clamp[lane] >> 8 & 31);
    const int first = lane & segment, last = (lane & segment) | (c & ~segment);
    int from = 0;
    bool inside = false;
    if (kMode == Shuffle::kUp) from = lane - b, inside = from >= last;
    if (kMode == Shuffle::kDown) from = lane + b, inside = from <= last;
    if (kMode == Shuffle::kButterfly) from = lane ^ b, inside = from <= last;
    if (kMode == Shuffle::kIndex) from = first | (b & ~segment), inside = from <= last;
    if (!inside) from = lane;
    if (!(warp.mask() >> from & 1))
      warp.fail(instruction, lane, kLaunchFailed,
                "reads lane " + std::to_string(from) + ", which does not take part in the shuffle");
    taken[lane] = static_cast<uint32_t>(value[from]);
    bits |= uint32_t{inside} << lane;
  });
  uint64_t* out = warp.column(instruction.out[0]);
  each_lane(warp.mask(), [&](int lane) { out[lane] = taken[lane]; });
  if (instruction.count == 2) set_predicate(warp, instruction.out[1], bits);
}

enum class Vote { kAll, kAny, kUniform, kBallot };

template <Vote kVote>
void vote(Warp& warp, const Instruction& instruction) {
  check_members(warp, instruction,
                static_cast<uint32_t>(warp.column(instruction.in[1])[std::countr_zero(warp.mask())]));
  const uint32_t votes = static_cast<uint32_t>(*warp.column(instruction.in[0])) & warp.mask();
  if (kVote == Vote::kBallot) {
    uint64_t* out = warp.column(instruction.out[0]);
    each_lane(warp.mask(), [&](int lane) { out[lane] = votes; });
    return;
  }
  const bool all = votes == warp.mask(), any = votes != 0;
  set_predicate(warp, instruction.out[0],
                (kVote == Vote::kAll   ? all
                 : kVote == Vote::kAny ? any
                                       : all || !any)
                    ? ~0u
                    : 0);
}

void active_mask(Warp& warp, const Instruction& instruction) {
  uint64_t* out = warp.column(instruction.out[0]);
  each_lane(warp.mask(), [&](int lane) { out[lane] = warp.mask(); });
}
void nothing(Warp&, const Instruction&) {}
void sync_warp(Warp& warp, const Instruction& instruction) {
  check_members(warp, instruction,
                static_cast<uint32_t>(warp.column(instruction.in[0])[std::countr_zero(warp.mask())]));
  warp.sync_warp();
}
void trap(Warp& warp, const Instruction& instruction) {
  warp.fail(instruction, std::countr_zero(warp.mask()), kLaunchFailed, "trap");
}

}  // namespace

void add_memory_handlers(Handlers& h) {
  h["ld"] = load, h["st"] = store;
  add_atomics<int32_t>(h, "s32"), add_atomics<uint32_t>(h, "u32"), add_atomics<uint64_t>(h, "u64"),
      add_atomics<float>(h, "f32");
  add_atomics<double>(h, "f64"), add_atomics<int64_t>(h, "s64");
  add_atomic_bits<uint32_t>(h, "b32"), add_atomic_bits<uint64_t>(h, "b64");
}

void add_warp_handlers(Handlers& h) {
  h["shfl.sync.up.b32"] = shuffle<Shuffle::kUp>, h["shfl.sync.down.b32"] = shuffle<Shuffle::kDown>;
  h["shfl.sync.bfly.b32"] = shuffle<Shuffle::kButterfly>, h["shfl.sync.idx.b32"] = shuffle<Shuffle::kIndex>;
  h["vote.sync.all.pred"] = vote<Vote::kAll>, h["vote.sync.any.pred"] = vote<Vote::kAny>;
  h["vote.sync.uni.pred"] = vote<Vote::kUniform>, h["vote.sync.ballot.b32"] = vote<Vote::kBallot>;
  h["activemask.b32"] = active_mask, h["bar.warp.sync"] = sync_warp, h["trap"] = trap;
  for (const char* fence :
       {"membar.gl", "membar.cta", "membar.sys", "fence.acq_rel.gpu", "fence.sc.gpu", "fence.acq_rel.cta"})
    h[fence] = nothing;
}

}  // namespace emulator

// Memory that the ranks of a group share: what each of them is calling. Before data moves, every rank compares its own
// call with the others'. So a call that does not match is found before anybody waits for data that never comes.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "roll.hpp"

namespace backplane::collectives {

inline constexpr int kMostDims = 8;

// A call, as far as it has to agree between ranks.
struct Notice {
  uint32_t kind = 0;
  uint32_t reduce = 0;
  uint32_t dtype = 0;
  int32_t peer = 0;
  int32_t ndim = 0;
  uint32_t on_device = 0;  // a device provider does it
  int64_t shape[kMostDims] = {};
  uint64_t elements = 0;
  char op[24] = {};
  char site[112] = {};

  void set_site(std::string_view text) {
    if (text.size() >= sizeof site) text = text.substr(text.size() - sizeof site + 1);  // the end has the line
    std::memcpy(site, text.data(), text.size());
    site[text.size()] = 0;
  }
  bool agrees(const Notice& other) const {
    return kind == other.kind && reduce == other.reduce && dtype == other.dtype && peer == other.peer &&
           ndim == other.ndim && on_device == other.on_device && elements == other.elements &&
           std::memcmp(shape, other.shape, sizeof shape) == 0;
  }
  // A hash of all that has to agree: notices with one digest agree.
  uint64_t digest() const {
    uint64_t mixed = 0;
    const auto mix = [&](uint64_t word) {
      mixed = (mixed ^ word) * 0x9e3779b97f4a7c15u;
      mixed ^= mixed >> 32;
    };
    mix(kind | uint64_t{reduce} << 32);
    mix(dtype | uint64_t{on_device} << 32);
    mix(static_cast<uint32_t>(peer) | static_cast<uint64_t>(static_cast<uint32_t>(ndim)) << 32);
    mix(elements);
    for (int32_t i = 0; i < ndim && i < kMostDims; ++i) mix(static_cast<uint64_t>(shape[i]));
    return mixed;
  }
};

// Written by one rank: `count` grows to n + 1 once notice n lies in its place. What others read of most calls comes
// first, in one line of the cache; they read the notice where the digests differ. A small operand lies beside them.
struct alignas(64) Slot {
  static constexpr uint64_t kMostBytes = 240;
  std::atomic<uint64_t> count;
  uint64_t digest;
  alignas(16) char operand[kMostBytes];
  Notice notice;
};

// The calls of one rank. Two places are enough: who writes notice n + 2 has seen everybody's notice n + 1, which each
// rank writes after it has read all notices n.
struct RankSlots {
  Slot slots[2];
};

// The messages from one rank to another. The receiver counts the messages that it has read.
struct Pair {
  static constexpr uint64_t kPlaces = 4;
  std::atomic<uint64_t> sent, read;
  Notice notices[kPlaces];
};

// The parts of a group's shared memory, for n ranks.
class Board {
 public:
  Board() = default;
  Board(void* memory, int32_t n) : base_(at_line(memory)), n_(n) {}
  static uint64_t bytes(int32_t n) {
    return kLine + at_pairs(n) + (n <= kMostPaired ? sizeof(Pair) * static_cast<uint64_t>(n * n) : 0);
  }

  explicit operator bool() const { return base_ != nullptr; }
  Slot& slot(int32_t rank, uint64_t number) const {
    return reinterpret_cast<RankSlots*>(base_)[rank].slots[number % 2];
  }
  // Pairs take memory by the square of n: a larger group does not compare messages.
  bool has_pairs() const { return base_ != nullptr && n_ <= kMostPaired; }
  Pair& pair(int32_t from, int32_t to) const { return reinterpret_cast<Pair*>(base_ + at_pairs(n_))[from * n_ + to]; }

 private:
  static constexpr int32_t kMostPaired = 64;
  static uint64_t at_pairs(int32_t n) { return sizeof(RankSlots) * static_cast<uint64_t>(n); }

  char* base_ = nullptr;
  int32_t n_ = 0;
};

// "all_reduce of float32 (2, 3), with op sum at FILE:LINE"
std::string described(const Notice& notice);

}  // namespace backplane::collectives
